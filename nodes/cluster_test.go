package nodes

import (
	"testing"
	"time"

	"interleave/sim/event"
	"interleave/txnproto"
)

// TestScanService: a scan's service time goes by the rows there are, not by the
// width of its range, which may be all keys there can be.
func TestScanService(t *testing.T) {
	w := newWorld(t, setup{shards: 3, accounts: 60, noCPU: true})
	w.loop.RunUntil(event.Time(time.Millisecond))
	store := w.cluster.hosts[1].machine.store
	for k := range txnproto.Key(5) {
		store.Install(&txnproto.Put{Key: 100 + 3*k}, 0)
	}
	for _, c := range []struct {
		lo, hi txnproto.Key
		rows   int
	}{{0, 30, 10}, {0, 60, 20}, {0, 1 << 63, 25}, {0, ^txnproto.Key(0), 25}, {7, 8, 0}} {
		m := txnproto.Msg{Kind: txnproto.MsgOp, Shard: 1, Op: txnproto.Op{Kind: txnproto.Scan, Key: c.lo, End: c.hi}}
		if got, want := w.cluster.service(&m), time.Duration(c.rows)*w.cluster.cfg.CPURow; got != want {
			t.Errorf("scan of [%d, %d): %v, want %v", c.lo, c.hi, got, want)
		}
	}
}

// TestMessagesDoNotDependOnTheProtocol: the client's n-th request meets the same
// latencies under every protocol, as far as both send the same messages: when
// the first request takes an attempt more, all later attempts have other ids, and
// their messages are the same.
func TestMessagesDoNotDependOnTheProtocol(t *testing.T) {
	run := func(earlier int) []time.Duration {
		var lat []time.Duration
		p := &txnproto.Protocol{Name: "test", New: func(h txnproto.Host, _ txnproto.Params) txnproto.Controller {
			return &refuseFirst{testLocks: newTestLocks(h, txnproto.Params{}).(*testLocks), left: earlier}
		}}
		s := setup{protocol: p}
		s.clients.Clients, s.clients.PerClient = 1, 200
		w := newWorld(t, s)
		w.seen.onRequest = func(r *txnproto.RequestRecord) {
			net := r.Parts[txnproto.PartNetwork] + r.Parts[txnproto.PartCPUService] + r.Parts[txnproto.PartCommit]
			lat = append(lat, net)
		}
		w.clients.Start()
		w.loop.RunUntil(event.Time(5 * time.Second))
		w.finish()
		return lat
	}
	a, b := run(0), run(1)
	if len(a) != 200 || len(b) != 200 {
		t.Fatalf("%d and %d requests", len(a), len(b))
	}
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	if same < 199 { // one was refused at first
		t.Errorf("%d of %d requests have the same latency, though all attempts have other ids", same, len(a))
	}
}

// refuseFirst refuses the first few operations, on the first shard.
type refuseFirst struct {
	*testLocks
	left int
}

func (c *refuseFirst) Access(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	if c.left > 0 && c.h.Shard() == 0 {
		c.left--
		return txnproto.Abort(txnproto.NoWait)
	}
	return c.testLocks.Access(tx, op)
}
