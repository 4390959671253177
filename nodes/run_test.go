package nodes

import (
	"testing"
	"time"

	"interleave/txnproto"
)

// TestBankUnderTwoPhaseLocking runs thousands of transfers over three shards
// through the whole of clients, network, hosts and the quorum model.
func TestBankUnderTwoPhaseLocking(t *testing.T) {
	for _, replicas := range []int{1, 3} {
		p := guard(&txnproto.Protocol{Name: "test-2pl", New: newTestLocks}, t.Errorf)
		w := newWorld(t, setup{seed: 7, replicas: replicas, protocol: p})
		w.clients.Start()
		w.loop.RunUntil(w.loop.Now().Add(2 * time.Second))
		w.finish()
		if n := len(w.seen.committed); n < 3000 {
			t.Errorf("%d commits in 2 s", n)
		}
		if w.seen.reasons[txnproto.WaitDie] == 0 {
			t.Error("nothing died: the test has no contention")
		}
	}
}

// TestSameSeedSameRun compares two runs event for event.
func TestSameSeedSameRun(t *testing.T) {
	run := func(seed uint64) (uint64, int, txnproto.TxnID) {
		w := newWorld(t, setup{seed: seed})
		w.clients.Start()
		w.loop.RunUntil(w.loop.Now().Add(200 * time.Millisecond))
		events, ended := w.loop.Processed(), w.seen.ended
		var last txnproto.TxnID
		for txn := range w.seen.committed {
			last = max(last, txn)
		}
		w.finish()
		return events, ended, last
	}
	e1, n1, l1 := run(3)
	e2, n2, l2 := run(3)
	if e1 != e2 || n1 != n2 || l1 != l2 {
		t.Errorf("%d events, %d ended, %v last; the second time %d, %d, %v", e1, n1, l1, e2, n2, l2)
	}
	if e3, _, _ := run(4); e3 == e1 {
		t.Error("another seed gives as many events: the seed does nothing")
	}
}

// TestRequestsAllocateNothing once the pools are filled: not in sessions,
// messages, hosts, commits, the log or the store.
func TestRequestsAllocateNothing(t *testing.T) {
	w := newWorld(t, setup{protocol: &txnproto.Protocol{Name: "grant-all", New: newGrantAll}})
	w.seen.light = true
	w.clients.Start()
	run := func() { w.loop.RunUntil(w.loop.Now().Add(100 * time.Millisecond)) }
	for range 5 {
		run()
	}
	before := w.seen.ended
	allocs := testing.AllocsPerRun(5, run)
	if n := float64(w.seen.ended-before) / 6; n < 300 || allocs > n/50 {
		t.Errorf("%v allocations for %v requests", allocs, n)
	}
}
