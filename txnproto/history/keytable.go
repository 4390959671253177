package history

import (
	"math/bits"
	"sort"
)

// keyTable numbers the written keys from 0 in key order. Its memory follows the
// number of keys written, not how many there could be. It has three forms: all keys
// of an interval; an interval with a bit for each written key; and, when keys are
// spread far, a sorted list with a hash table.
type keyTable struct {
	n    int // numbers given
	base Key
	span int // places

	words  []uint64 // bit per key from base on
	before []uint32 // by word: bits set in the words before it

	sorted []Key
	slots  []uint32 // 1 + number, at the key's hash or soon after; 0: free
	shift  uint     // of the hash
}

// tryInterval numbers the whole interval when it has hardly more keys than were
// written, and reports whether it did.
func (t *keyTable) tryInterval(lo, hi Key, writes int) bool {
	if uint64(hi-lo) >= uint64(writes)+1024 {
		return false
	}
	t.base, t.span = lo, int(hi-lo)+1
	t.n = t.span
	return true
}

// tryBits prepares for mark when a bit per key of the interval is not much for the
// number of writes, and reports whether it did.
func (t *keyTable) tryBits(lo, hi Key, writes int) bool {
	if uint64(hi-lo) >= min(128*uint64(writes)+1<<16, 1<<32-64) {
		return false
	}
	t.base, t.span = lo, int(hi-lo)+1
	t.words = make([]uint64, uint64(hi-lo)/64+1)
	return true
}

func (t *keyTable) mark(k Key) {
	d := uint64(k - t.base)
	t.words[d/64] |= 1 << (d % 64)
}

// marked numbers the marked keys.
func (t *keyTable) marked() {
	t.before = make([]uint32, len(t.words))
	for i, w := range t.words {
		t.before[i] = uint32(t.n)
		t.n += bits.OnesCount64(w)
	}
}

// list numbers the keys of a sorted list, which it keeps.
func (t *keyTable) list(sorted []Key) {
	t.n, t.span, t.sorted = len(sorted), len(sorted), sorted
	size := 1
	t.shift = 64
	for size < 2*len(sorted) {
		size *= 2
		t.shift--
	}
	t.slots = make([]uint32, size)
	for i, k := range sorted {
		h := t.hash(k)
		for t.slots[h] != 0 {
			h = (h + 1) & (size - 1)
		}
		t.slots[h] = uint32(i) + 1
	}
}

// hash spreads keys by multiplication with 2^64 over the golden ratio (Knuth, The Art of
// Computer Programming, volume 3, 6.4).
func (t *keyTable) hash(k Key) int { return int(uint64(k) * 0x9e3779b97f4a7c15 >> t.shift) }

// place returns where a key stands in key order, below span: its number, or its
// distance from the first. It is false where the key is known to have no number.
// Where many keys are asked for, sorting places first and asking for numbers then
// keeps to the cache.
func (t *keyTable) place(k Key) (uint32, bool) {
	if t.sorted == nil {
		d := uint64(k - t.base)
		return uint32(d), d < uint64(t.span)
	}
	for h := t.hash(k); t.slots[h] != 0; h = (h + 1) & (len(t.slots) - 1) {
		if id := t.slots[h] - 1; t.sorted[id] == k {
			return id, true
		}
	}
	return 0, false
}

// number returns the number of the key at a place below span, if it has one; if not,
// that of the next key.
func (t *keyTable) number(place uint32) (uint32, bool) {
	if t.words == nil {
		return place, true
	}
	w, bit := t.words[place/64], uint64(1)<<(place%64)
	return t.before[place/64] + uint32(bits.OnesCount64(w&(bit-1))), w&bit != 0
}

// id returns the number of a key, if it has one.
func (t *keyTable) id(k Key) (uint32, bool) {
	p, ok := t.place(k)
	if !ok {
		return 0, false
	}
	return t.number(p)
}

// key returns the key of a number.
func (t *keyTable) key(id uint32) Key {
	switch {
	case t.words != nil:
		i := sort.Search(len(t.before), func(i int) bool { return t.before[i] > id }) - 1
		w := t.words[i]
		for range id - t.before[i] {
			w &= w - 1
		}
		return t.base + Key(64*i+bits.TrailingZeros64(w))
	case t.sorted == nil:
		return t.base + Key(id)
	default:
		return t.sorted[id]
	}
}

// lower returns the number of the first numbered key that is not below k, or n.
func (t *keyTable) lower(k Key) uint32 {
	if t.sorted != nil {
		return uint32(sort.Search(t.n, func(i int) bool { return t.sorted[i] >= k }))
	}
	if k <= t.base {
		return 0
	}
	return t.from(min(uint64(k-t.base), uint64(t.span)))
}

// from returns the number of the first key at a place or after it, n at span.
func (t *keyTable) from(place uint64) uint32 {
	if place >= uint64(t.span) {
		return uint32(t.n)
	}
	id, _ := t.number(uint32(place))
	return id
}
