package event

// item is one pending event, 24 bytes. It carries no sequence number: every
// structure that holds items keeps those of one instant in the order in which
// they were scheduled, so the number would only repeat the place.
type item struct {
	at   Time
	arg  uint64
	h    HandlerID
	slot uint32 // timer slot, or 0 when the event cannot be cancelled
}

// chunkItems makes a chunk exactly 1 KiB: long enough that appending rarely
// leaves it, short enough that a bucket of a few events wastes little.
const chunkItems = 42

// chunk is a piece of a bucket's list. next stands first so that the collector
// has one word to look at in it.
type chunk struct {
	next  *chunk
	n     uint32 // items in it; not kept up for the tail of a bucket
	items [chunkItems]item
}

// chunkPool hands out chunks and takes them back. It grows to the most that
// were ever in use at once and then allocates nothing.
type chunkPool struct{ free *chunk }

// slabChunks is how many chunks are allocated together.
const slabChunks = 64

func (p *chunkPool) get() *chunk {
	c := p.free
	if c == nil {
		slab := new([slabChunks]chunk)
		for i := range slab[:slabChunks-1] {
			slab[i].next = &slab[i+1]
		}
		c = &slab[0]
	}
	p.free = c.next
	c.next = nil
	return c
}

func (p *chunkPool) put(c *chunk) {
	c.next = p.free
	p.free = c
}

// bucket is an unsorted list of items in the order in which they were added.
// fill counts the items of the tail chunk: kept here, appending touches the
// bucket and the item's own cache line, and no chunk header.
type bucket struct {
	head, tail *chunk
	n          uint32
	fill       uint32
}

func (b *bucket) add(p *chunkPool, it item) {
	t := b.tail
	if t == nil || b.fill == chunkItems {
		t = b.grow(p)
	}
	t.items[b.fill] = it
	b.fill++
	b.n++
}

func (b *bucket) grow(p *chunkPool) *chunk {
	c := p.get()
	if b.tail == nil {
		b.head = c
	} else {
		b.tail.n = b.fill
		b.tail.next = c
	}
	b.tail = c
	b.fill = 0
	return c
}

// of returns the items of c, a chunk of b.
func (b *bucket) of(c *chunk) []item {
	if c == b.tail {
		return c.items[:b.fill]
	}
	return c.items[:c.n]
}

// prepend puts items, at most a chunk of them, before the others of b.
func (b *bucket) prepend(p *chunkPool, items []item) {
	if len(items) == 0 {
		return
	}
	c := p.get()
	c.n = uint32(copy(c.items[:], items))
	c.next = b.head
	b.head = c
	if b.tail == nil {
		b.tail = c
		b.fill = c.n
	}
	b.n += uint32(len(items))
}

// join appends the whole list of o to b and empties o.
func (b *bucket) join(o *bucket) {
	if o.head == nil {
		return
	}
	if b.tail == nil {
		*b = *o
	} else {
		b.tail.n = b.fill
		b.tail.next = o.head
		b.tail = o.tail
		b.fill = o.fill
		b.n += o.n
	}
	*o = bucket{}
}

// popChunk takes the first chunk off b. REQUIRES: b is not empty.
func (b *bucket) popChunk() (c *chunk, n uint32) {
	c = b.head
	n = uint32(len(b.of(c)))
	b.head = c.next
	b.n -= n
	if c == b.tail {
		*b = bucket{}
	}
	return c, n
}

// span returns the earliest and the latest time in b. REQUIRES: b is not empty.
func (b *bucket) span() (lo, hi Time) {
	lo, hi = Never, 0
	for c := b.head; c != nil; c = c.next {
		items := b.of(c)
		for i := range items {
			lo = min(lo, items[i].at)
			hi = max(hi, items[i].at)
		}
	}
	return lo, hi
}

// sweep removes the items for which dead says so, keeping the order of the rest.
func (b *bucket) sweep(p *chunkPool, dead func(item) bool) {
	old := *b
	*b = bucket{}
	for c := old.head; c != nil; {
		items := old.of(c)
		for i := range items {
			if !dead(items[i]) {
				b.add(p, items[i])
			}
		}
		next := c.next
		p.put(c)
		c = next
	}
}
