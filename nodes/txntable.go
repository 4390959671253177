package nodes

import "interleave/txnproto"

// txnTable maps transactions to records of type V. Replicas look one up for every
// entry of a two-phase commit: it is a hash table with linear probing in which a
// deletion moves later entries of a run back (Knuth, The Art of Computer
// Programming vol. 3, 6.4, algorithm R). The zero table is empty.
type txnTable[V any] struct {
	slots []txnSlot[V] // a power of two
	n     int
}

// txnSlot is free when its record is nil.
type txnSlot[V any] struct {
	txn txnproto.TxnID
	v   *V
}

const txnTableMin = 16

// home is where t's run starts. Transactions are numbered as they begin, so the few
// that are in the table at a time are near each other, and spread by the number alone.
func (t *txnTable[V]) home(txn txnproto.TxnID) int { return int(txn) & (len(t.slots) - 1) }

// get returns txn's record, or nil.
func (t *txnTable[V]) get(txn txnproto.TxnID) *V {
	if t.n == 0 {
		return nil
	}
	for i := t.home(txn); ; i = (i + 1) & (len(t.slots) - 1) {
		if s := &t.slots[i]; s.v == nil || s.txn == txn {
			return s.v
		}
	}
}

// put gives txn the record v, which is not nil.
func (t *txnTable[V]) put(txn txnproto.TxnID, v *V) {
	if 2*(t.n+1) > len(t.slots) {
		old := t.slots
		t.slots, t.n = make([]txnSlot[V], max(txnTableMin, 2*len(old))), 0
		for _, s := range old {
			if s.v != nil {
				t.put(s.txn, s.v)
			}
		}
	}
	for i := t.home(txn); ; i = (i + 1) & (len(t.slots) - 1) {
		switch s := &t.slots[i]; {
		case s.v == nil:
			t.n++
			fallthrough
		case s.txn == txn:
			*s = txnSlot[V]{txn, v}
			return
		}
	}
}

// del removes txn, which may be absent.
func (t *txnTable[V]) del(txn txnproto.TxnID) {
	if t.n == 0 {
		return
	}
	mask := len(t.slots) - 1
	hole := t.home(txn)
	for ; t.slots[hole].txn != txn || t.slots[hole].v == nil; hole = (hole + 1) & mask {
		if t.slots[hole].v == nil {
			return
		}
	}
	t.n--
	for i := (hole + 1) & mask; t.slots[i].v != nil; i = (i + 1) & mask {
		if home := t.home(t.slots[i].txn); (i-home)&mask >= (i-hole)&mask {
			t.slots[hole] = t.slots[i]
			hole = i
		}
	}
	t.slots[hole] = txnSlot[V]{}
}

// all yields the records in an order of no meaning: who uses them sorts.
func (t *txnTable[V]) all(yield func(txnproto.TxnID, *V) bool) {
	for _, s := range t.slots {
		if s.v != nil && !yield(s.txn, s.v) {
			return
		}
	}
}
