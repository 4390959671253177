package nodes

import (
	"math/bits"
	"unsafe"

	"interleave/internal/memory"
	"interleave/txnproto"
)

// rows holds the newest versions of the rows of one shard that have been written
// since the start, at one or more of its replicas. A slot is a run of cells: the row's
// key, then the row as each replica has it.
//
//	slot:  key │ replica 0 │ replica 1 │ replica 2
//
// Replicas keep a table together where they run in one event loop. Each writes
// its own cells only, so what one holds does not depend on the others; but the
// three of a row share a cache line, and nearly all that a lookup costs is the
// wait for that.
//
// It is a hash table with open addressing and linear probing. Probing goes by the tags,
// a byte of each slot's hash, of which sixty-four share a line: a lookup looks at one
// slot, or at none. Once a part of the initial rows has been written, these move to
// slots by their number, which a lookup knows from the key.
//
// A slot is named by the place of its first cell, counted over the slots by number
// and then those by hash.
type rows struct {
	initial initialKeys
	direct  []cell   // the slots by number, of all initial keys; empty: they go by hash
	cells   []cell   // the slots by hash
	older   []uint32 // by cell: the replica's index of the row's older versions + 1, 0: none; nil until there are any
	tags    []uint8  // by slot by hash; 0: free
	stride  int      // cells of a slot: one more than replicas
	shift   uint8    // 64 - log2(slots by hash)
	mask    uint64
	used    int // slots by hash
}

// initialKeys are the keys of a shard that hold a row at the start: first, first+step,
// …, n of them.
type initialKeys struct {
	first, step txnproto.Key
	n           uint64
}

// cell is a row as one replica has it. The first cell of a slot in use holds the key,
// as its value, and is not empty.
type cell struct {
	value txnproto.Value
	state uint64 // the version, and in the lowest bit whether it is a deletion; 0: not written since the start
}

func (c *cell) empty() bool               { return c.state == 0 }
func (c *cell) version() txnproto.Version { return txnproto.Version(c.state >> 1) }
func (c *cell) deleted() bool             { return c.state&1 != 0 }

// row returns c as the row of k.
func (c *cell) row(k txnproto.Key) txnproto.Row {
	return txnproto.Row{Key: k, Value: c.value, Version: c.version(), Exists: !c.deleted()}
}

const rowsMinSlots = 64

const (
	// directBytes bounds what the slots by number of all shards may take: a million
	// rows at three replicas.
	directBytes = 64 << 20
	// directShare is of how many initial rows one must have been written before they
	// get slots by number: what they take stays in proportion to the rows written.
	directShare = 32
)

// newRows returns an empty table for a shard at a number of replicas.
func newRows(replicas int, shard txnproto.ShardID, place Placement, initial txnproto.Key) *rows {
	t := &rows{stride: 1 + replicas}
	if slot := t.stride * int(unsafe.Sizeof(cell{})); initial <= txnproto.Key(directBytes/slot) {
		first, step, n := place.Initial(shard, initial)
		t.initial = initialKeys{first, step, n}
	}
	t.resize(rowsMinSlots)
	return t
}

// resize makes the part of t that goes by hash an empty one of a number of slots, a
// power of two of at most 2^56.
func (t *rows) resize(slots int) {
	t.cells, t.tags = memory.Make[cell](slots*t.stride), memory.Make[uint8](slots)
	t.mask, t.shift = uint64(slots-1), uint8(64-bits.TrailingZeros(uint(slots)))
}

// at returns the cell at a place.
func (t *rows) at(place int) *cell {
	if place < len(t.direct) {
		return &t.direct[place]
	}
	return &t.cells[place-len(t.direct)]
}

// olderAt is where the index of the older versions of the row in the cell at a place stands.
func (t *rows) olderAt(place int) *uint32 {
	if t.older == nil {
		t.older = make([]uint32, len(t.direct)+len(t.cells))
	}
	return &t.older[place]
}

// home returns the slot where a search for k starts, and k's tag. The hash is
// Fibonacci's (Knuth, The Art of Computer Programming vol. 3, 6.4): consecutive
// keys, and those at equal distances, fall far apart and evenly, so where most of
// a range has been written most rows are at home.
func (t *rows) home(k txnproto.Key) (slot uint64, tag uint8) {
	h := uint64(k) * 0x9e3779b97f4a7c15 // 2^64 over the golden ratio
	return h >> t.shift, uint8(h>>(t.shift-8)) | 1
}

// numbered returns the slot of k by its number, if it has one: rows that are no initial
// ones have none, nor have keys of other shards, which a scan's bounds can be.
func (t *rows) numbered(k txnproto.Key) (place int, ok bool) {
	if len(t.direct) == 0 {
		return 0, false
	}
	i := (k - t.initial.first) / t.initial.step // of k below first: more than n
	return int(i) * t.stride, uint64(i) < t.initial.n && t.initial.first+i*t.initial.step == k
}

// find returns the slot of k, and whether it is in use: if not, it is the slot that k
// would take.
func (t *rows) find(k txnproto.Key) (int, bool) {
	if place, ok := t.numbered(k); ok {
		return place, !t.direct[place].empty()
	}
	i, tag := t.home(k)
	for ; ; i = (i + 1) & t.mask {
		place := int(i) * t.stride
		switch t.tags[i] {
		case 0:
			return len(t.direct) + place, false
		case tag:
			if txnproto.Key(t.cells[place].value) == k {
				return len(t.direct) + place, true
			}
		}
	}
}

// claim returns the slot of k, taken into use if it was not.
func (t *rows) claim(k txnproto.Key) int {
	place, ok := t.find(k)
	if ok {
		return place
	}
	if place >= len(t.direct) && 4*(t.used+1) > 3*len(t.tags) {
		t.grow()
		place, _ = t.find(k)
	}
	t.take(place, k)
	return place
}

// take gives k the free slot at place.
func (t *rows) take(place int, k txnproto.Key) {
	if place >= len(t.direct) {
		t.used++
		_, t.tags[(place-len(t.direct))/t.stride] = t.home(k)
	}
	*t.at(place) = cell{txnproto.Value(k), 1}
}

// grow makes room: it doubles the slots by hash, or gives the initial rows theirs by
// number.
func (t *rows) grow() {
	old := *t
	if n := t.initial.n; len(t.direct) == 0 && n > 0 && directShare*uint64(t.used) >= n {
		t.direct = memory.Make[cell](int(n) * t.stride)
		t.resize(rowsMinSlots)
	} else {
		t.resize(2 * len(old.tags))
	}
	if old.older != nil {
		t.older = make([]uint32, len(t.direct)+len(t.cells))
		copy(t.older, old.older[:len(old.direct)])
	}
	t.used = 0
	for i, tag := range old.tags {
		if tag == 0 {
			continue
		}
		slot := old.cells[i*t.stride:][:t.stride]
		to := t.claim(txnproto.Key(slot[0].value))
		for r := 1; r < t.stride; r++ {
			*t.at(to + r) = slot[r]
		}
		if old.older != nil {
			copy(t.older[to:], old.older[len(old.direct)+i*t.stride:][:t.stride])
		}
	}
}

// all yields the slots in use, and their keys: those by number in order, the others in
// an order that depends on the one in which rows were first written.
func (t *rows) all(yield func(place int, k txnproto.Key) bool) {
	for place := 0; place < len(t.direct); place += t.stride {
		if c := &t.direct[place]; !c.empty() && !yield(place, txnproto.Key(c.value)) {
			return
		}
	}
	for i, tag := range t.tags {
		if tag != 0 && !yield(len(t.direct)+i*t.stride, txnproto.Key(t.cells[i*t.stride].value)) {
			return
		}
	}
}

// even reports whether all replicas are sure to have the same rows: none that keeps
// older versions is.
func (t *rows) even() bool {
	return t.older == nil && t.evenIn(t.direct) && t.evenIn(t.cells)
}

func (t *rows) evenIn(cells []cell) bool {
	for at := 1; at < len(cells); at += t.stride {
		first := cells[at]
		for _, c := range cells[at+1 : at+t.stride-1] {
			if c != first {
				return false
			}
		}
	}
	return true
}

// prefetch asks for the memory of k's slot, which will be looked up soon; by hash, of
// its home, where most rows are.
func (t *rows) prefetch(k txnproto.Key) {
	if place, ok := t.numbered(k); ok {
		memory.Prefetch(&t.direct[place])
		return
	}
	i, _ := t.home(k)
	memory.Prefetch(&t.tags[i])
	memory.Prefetch(&t.cells[int(i)*t.stride])
}
