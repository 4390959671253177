package nodes

import (
	"interleave/internal/memory"
	"interleave/sim/rng"
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
// wait for that.
type rows struct {
	cells  []cell
	stride int // cells of a slot: one more than replicas
	mask   uint64
	used   int // slots
}

// cell is a row as one replica has it. The first cell of a slot holds the key, as
// its value, and a version if the slot is in use.
type cell struct {
	value   txnproto.Value
	version uint32 // 0: not written since the start
	chain   uint32 // index of the older versions + 1, 0: none; the top bit says deleted
}

const deletedBit = 1 << 31

func (c *cell) deleted() bool { return c.chain&deletedBit != 0 }

// row returns c as the row of k.
func (c *cell) row(k txnproto.Key) txnproto.Row {
	return txnproto.Row{Key: k, Value: c.value, Version: txnproto.Version(c.version), Exists: !c.deleted()}
}

const rowsMinSlots = 64

// newRows returns an empty table for a number of replicas.
func newRows(replicas int) *rows {
	t := &rows{stride: 1 + replicas}
	t.resize(rowsMinSlots)
	return t
}

func (t *rows) resize(slots int) {
	t.cells, t.mask = memory.Make[cell](slots*t.stride), uint64(slots-1)
}

// home is the slot where a search for k starts.
func (t *rows) home(k txnproto.Key) uint64 { return rng.Hash(uint64(k), 0) & t.mask }

// find returns the slot of k, as the index of its first cell, and whether it is
// in use: if not, it is the slot that k would take.
func (t *rows) find(k txnproto.Key) (int, bool) {
	for i := t.home(k); ; i = (i + 1) & t.mask {
		at := int(i) * t.stride
		switch c := &t.cells[at]; {
		case c.version == 0:
			return at, false
		case txnproto.Key(c.value) == k:
			return at, true
		}
	}
}

// claim returns the slot of k, taken into use if it was not.
func (t *rows) claim(k txnproto.Key) int {
	at, ok := t.find(k)
	if ok {
		return at
	}
	if slots := len(t.cells) / t.stride; 4*(t.used+1) > 3*slots {
		t.grow(2 * slots)
		at, _ = t.find(k)
	}
	t.used++
	t.cells[at] = cell{value: txnproto.Value(k), version: 1}
	return at
}

func (t *rows) grow(slots int) {
	old := t.cells
	t.resize(slots)
	for i := 0; i < len(old); i += t.stride {
		if old[i].version != 0 {
			at, _ := t.find(txnproto.Key(old[i].value))
			copy(t.cells[at:at+t.stride], old[i:i+t.stride])
		}
	}
}

// all yields the slots in use, and their keys, in the order of the table: it
// depends on the order in which rows were first written.
func (t *rows) all(yield func(at int, k txnproto.Key) bool) {
	for i := 0; i < len(t.cells); i += t.stride {
		if t.cells[i].version != 0 && !yield(i, txnproto.Key(t.cells[i].value)) {
			return
		}
	}
}

// prefetch asks for the memory of k's slot, which will be looked up soon.
func (t *rows) prefetch(k txnproto.Key) {
	memory.Prefetch(&t.cells[int(t.home(k))*t.stride])
}
