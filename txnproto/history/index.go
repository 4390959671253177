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

// keyTable numbers keys from 0 in key order: all of an interval, or a sorted list.
type keyTable struct {
	n      int
	base   Key
	sorted []Key // when sparse
	ids    map[Key]uint32
}

// tryDense numbers the whole interval when that is not much more than the ops
// that touch it, and reports whether it did.
func (t *keyTable) tryDense(lo, hi Key, ops int) bool {
	if uint64(hi-lo) >= uint64(4*ops)+1024 {
		return false
	}
	t.base, t.n = lo, int(hi-lo)+1
	return true
}

// sparse numbers the keys of a sorted list, which it keeps.
func (t *keyTable) sparse(sorted []Key) {
	t.n, t.sorted = len(sorted), sorted
	t.ids = make(map[Key]uint32, len(sorted))
	for i, k := range sorted {
		t.ids[k] = uint32(i)
	}
}

// id returns the number of a key, if it has one.
func (t *keyTable) id(k Key) (uint32, bool) {
	if t.sorted == nil {
		d := k - t.base
		return uint32(d), uint64(d) < uint64(t.n)
	}
	id, ok := t.ids[k]
	return id, ok
}

// key returns the key of a number.
func (t *keyTable) key(id uint32) Key {
	if t.sorted == nil {
		return t.base + Key(id)
	}
	return t.sorted[id]
}

// lower returns the number of the first numbered key that is not below k, or n.
func (t *keyTable) lower(k Key) uint32 {
	if t.sorted == nil {
		if k <= t.base {
			return 0
		}
		return uint32(min(uint64(k-t.base), uint64(t.n)))
	}
	lo, hi := 0, len(t.sorted)
	for lo < hi {
		if m := (lo + hi) / 2; t.sorted[m] < k {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return uint32(lo)
}
