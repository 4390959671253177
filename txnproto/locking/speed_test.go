package locking

import (
	"testing"

	"interleave/txnproto"
	"interleave/txnproto/controltest"
)

var undeclared = []string{"2pl", "2pl-timeout", "2pl-nowait", "2pl-waitdie", "2pl-woundwait", "2pl-basic"}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, name := range undeclared {
		p, _ := txnproto.ProtocolNamed(name)
		controltest.NoAllocations(t, p)
	}
}

// A transaction that locks what it declares, rows and a range, then works.
func TestOrderedAllocatesNothing(t *testing.T) {
	p, _ := txnproto.ProtocolNamed("2pl-ordered")
	h := controltest.NewBare(p, 1000)
	ops := []txnproto.Op{
		{Kind: txnproto.LockExclusive, Key: 1},
		{Kind: txnproto.LockShared, Key: 3},
		{Kind: txnproto.LockShared, Key: 5, End: 50},
		{Kind: txnproto.Read, Key: 3},
		{Kind: txnproto.Scan, Key: 5, End: 50},
		{Kind: txnproto.Modify, Key: 1},
	}
	var tx txnproto.Txn
	id := txnproto.TxnID(0)
	run := func() {
		id++
		tx.Reset()
		tx.ID, tx.TS, tx.FirstTS = id, txnproto.Timestamp(id), txnproto.Timestamp(id)
		for i := range ops {
			if v := h.Controller().Access(&tx, &ops[i]); !v.IsGranted() {
				t.Fatalf("%v %d: %v", ops[i].Kind, ops[i].Key, v)
			}
		}
		h.Controller().Finish(&tx, txnproto.Committed)
	}
	for range 100 {
		run()
	}
	if n := testing.AllocsPerRun(1000, run); n != 0 {
		t.Errorf("%v allocations a transaction", n)
	}
}

func BenchmarkUncontended(b *testing.B) {
	for _, name := range undeclared {
		p, _ := txnproto.ProtocolNamed(name)
		b.Run(name, func(b *testing.B) { controltest.Benchmark(b, p) })
	}
}
