package nodes

import (
	"math/bits"

	"interleave/internal/memory"
	"interleave/txnproto"
)

// rows holds the newest versions of the rows of one shard that have been written
// since the start, at one or more of its replicas. It is a hash table with open
// addressing and linear probing; a slot is a run of cells: the row's key, then
// the row as each replica has it.
//
//	slot:  key │ replica 0 │ replica 1 │ replica 2
//
// Replicas keep a table together where they run in one event loop. Each writes
// its own cells only, so what one holds does not depend on the others; but the
// three of a row share a cache line, and nearly all that a lookup costs is the
// wait for that. Probing goes by the tags, a byte of each slot's hash, of which
// sixty-four share a line: a lookup looks at one slot, or at none.
type rows struct {
	cells  []cell
	older  []uint32 // by cell: the replica's index of the row's older versions + 1, 0: none; nil until there are any
	tags   []uint8  // by slot; 0: free
	stride int      // cells of a slot: one more than replicas
	shift  uint8    // 64 - log2(slots)
	mask   uint64
	used   int // slots
}

// cell is a row as one replica has it. The first cell of a slot holds the key, as
// its value.
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

// newRows returns an empty table for a number of replicas.
func newRows(replicas int) *rows {
	t := &rows{stride: 1 + replicas}
	t.resize(rowsMinSlots)
	return t
}

// resize makes t an empty table of a number of slots, a power of two of at most 2^56.
func (t *rows) resize(slots int) {
	t.cells, t.tags = memory.Make[cell](slots*t.stride), memory.Make[uint8](slots)
	t.mask, t.shift = uint64(slots-1), uint8(64-bits.TrailingZeros(uint(slots)))
	if t.older != nil {
		t.older = make([]uint32, len(t.cells))
	}
}

// olderAt is where the index of the older versions of the row in cell at stands.
func (t *rows) olderAt(at int) *uint32 {
	if t.older == nil {
		t.older = make([]uint32, len(t.cells))
	}
	return &t.older[at]
}

// home returns the slot where a search for k starts, and k's tag. The hash is
// Fibonacci's (Knuth, The Art of Computer Programming vol. 3, 6.4): consecutive
// keys, and those at equal distances, fall far apart and evenly, so where most of
// a range has been written most rows are at home.
func (t *rows) home(k txnproto.Key) (slot uint64, tag uint8) {
	h := uint64(k) * 0x9e3779b97f4a7c15 // 2^64 over the golden ratio
	return h >> t.shift, uint8(h>>(t.shift-8)) | 1
}

// find returns the slot of k, as the index of its first cell, and whether it is
// in use: if not, it is the slot that k would take.
func (t *rows) find(k txnproto.Key) (int, bool) {
	i, tag := t.home(k)
	for ; ; i = (i + 1) & t.mask {
		switch t.tags[i] {
		case 0:
			return int(i) * t.stride, false
		case tag:
			if at := int(i) * t.stride; txnproto.Key(t.cells[at].value) == k {
				return at, true
			}
		}
	}
}

// claim returns the slot of k, taken into use if it was not.
func (t *rows) claim(k txnproto.Key) int {
	at, ok := t.find(k)
	if ok {
		return at
	}
	if 4*(t.used+1) > 3*len(t.tags) {
		t.grow()
		at, _ = t.find(k)
	}
	t.used++
	t.take(at, k)
	return at
}

// take gives k the free slot at.
func (t *rows) take(at int, k txnproto.Key) {
	_, tag := t.home(k)
	t.tags[at/t.stride] = tag
	t.cells[at].value = txnproto.Value(k)
}

func (t *rows) grow() {
	old := *t
	t.resize(2 * len(old.tags))
	for from, k := range old.all {
		at, _ := t.find(k)
		t.take(at, k)
		copy(t.cells[at:at+t.stride], old.cells[from:])
		if old.older != nil {
			copy(t.older[at:at+t.stride], old.older[from:])
		}
	}
}

// all yields the slots in use, and their keys, in the order of the table: it
// depends on the order in which rows were first written.
func (t *rows) all(yield func(at int, k txnproto.Key) bool) {
	for i, tag := range t.tags {
		if at := i * t.stride; tag != 0 && !yield(at, txnproto.Key(t.cells[at].value)) {
			return
		}
	}
}

// prefetch asks for the memory of k's slot, which will be looked up soon: of its
// home, where most rows are.
func (t *rows) prefetch(k txnproto.Key) {
	i, _ := t.home(k)
	memory.Prefetch(&t.tags[i])
	memory.Prefetch(&t.cells[int(i)*t.stride])
}
