package history

// table maps ids that are mostly dense to nodes.
type table struct {
	base   uint64
	direct []uint32 // value + 1, or 0
	hashed map[uint64]uint32
}

// size prepares the table for about n ids between lo and hi.
func (t *table) size(lo, hi uint64, n int) {
	if n > 0 && hi-lo < uint64(8*n)+1024 {
		t.base = lo
		t.direct = make([]uint32, hi-lo+1)
		return
	}
	t.hashed = make(map[uint64]uint32, n)
}

// put sets the value of an id and reports whether the id was new; if not, the old
// value stays.
func (t *table) put(id uint64, v uint32) bool {
	if t.direct != nil {
		p := &t.direct[id-t.base]
		if *p != 0 {
			return false
		}
		*p = v + 1
		return true
	}
	if _, ok := t.hashed[id]; ok {
		return false
	}
	t.hashed[id] = v
	return true
}

func (t *table) get(id uint64) (uint32, bool) {
	if t.direct != nil {
		v := t.direct[id-t.base]
		return v - 1, v != 0
	}
	v, ok := t.hashed[id]
	return v, ok
}

// bitset is a set of numbers, kept as bits where they are small for their number.
type bitset struct {
	words []uint64
	limit uint64
	large map[uint64]struct{}
}

// size prepares the set for about n numbers.
func (b *bitset) size(n int) { b.limit = uint64(256*n) + 1024 }

// add adds a number and reports whether it was new.
func (b *bitset) add(v uint64) bool {
	if v >= b.limit {
		if b.large == nil {
			b.large = make(map[uint64]struct{})
		}
		if _, ok := b.large[v]; ok {
			return false
		}
		b.large[v] = struct{}{}
		return true
	}
	w := int(v / 64)
	for w >= len(b.words) {
		b.words = append(b.words, 0)
	}
	bit := uint64(1) << (v % 64)
	if b.words[w]&bit != 0 {
		return false
	}
	b.words[w] |= bit
	return true
}
