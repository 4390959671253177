package nodes

import (
	"fmt"
	"testing"
	"time"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// TestTransfersSurviveCrashes crashes and deposes leaders at random moments
// during transfers over three shards. No commit may be lost, none done by half
// or twice, everything must end, and the replicas must be equal.
func TestTransfersSurviveCrashes(t *testing.T) { surviveCrashes(t, false) }

// TestCoordinatorLogSurvivesCrashes: the same where participants log nothing before the
// decision.
func TestCoordinatorLogSurvivesCrashes(t *testing.T) { surviveCrashes(t, true) }

func surviveCrashes(t *testing.T, coordinatorLog bool) {
	var reasons [txnproto.NumReasons]int
	audits := 0
	for seed := range uint64(crashSeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := runCrashes(t, seed, coordinatorLog)
			audits += w.seen.audits
			for i, n := range w.seen.reasons {
				reasons[i] += n
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if audits < 100 {
		t.Errorf("%d audits have committed", audits)
	}
	if reasons[txnproto.LeaderChange] == 0 || reasons[txnproto.RPCTimeout] == 0 {
		t.Errorf("no attempt was hurt by a crash: %v", reasons)
	}
}

func runCrashes(t *testing.T, seed uint64, coordinatorLog bool) *world {
	p := guard(&txnproto.Protocol{Name: "test-2pl", New: newTestLocks, DropReadOnly: seed%2 == 0}, t.Errorf)
	if coordinatorLog {
		p.DropReadOnly, p.CoordinatorLog = true, func(txnproto.Params) bool { return true }
	}
	s := setup{seed: seed, scripted: true, protocol: p}
	if seed%4 == 3 {
		s.accounts, s.audits, s.clients.Clients = 15, 8, 6
	}
	w := newWorld(t, s)
	chaos := rng.Seed(seed).Stream("test/chaos")
	w.script.survives = func(txnproto.ShardID, *Entry) bool { return chaos.Uint64n(2) == 0 }
	w.bank.think = time.Duration(chaos.Uint64n(3)) * time.Millisecond
	if seed%3 == 0 {
		w.script.electDelay = 2 * testRPCTimeout // leaderless for longer than anyone waits
	}
	w.clients.Start()
	for range 25 {
		w.loop.RunUntil(w.loop.Now().Add(time.Duration(chaos.Uint64n(uint64(20 * time.Millisecond)))))
		switch n := txnproto.NodeID(chaos.Uint64n(3)); chaos.Uint64n(4) {
		case 0, 1:
			w.cluster.Crash(n)
		case 2:
			if err := w.cluster.Restart(n); err != nil {
				t.Fatal(err)
			}
		default:
			w.script.depose(txnproto.ShardID(n))
		}
	}
	for n := range txnproto.NodeID(3) {
		if err := w.cluster.Restart(n); err != nil {
			t.Fatal(err)
		}
	}
	w.loop.RunUntil(w.loop.Now().Add(300 * time.Millisecond))
	before := w.seen.ended
	w.loop.RunUntil(w.loop.Now().Add(100 * time.Millisecond))
	if w.seen.ended-before < 20 { // progress once healed; a stuck client or shard shows as next to none
		t.Errorf("%d requests ended in 100 ms after the faults", w.seen.ended-before)
	}
	w.finish()
	for s, h := range w.cluster.hosts {
		if n := h.machine.prepared.n; n > 0 {
			t.Errorf("%v: %d branches are still prepared", txnproto.ShardID(s), n)
		}
		if n := h.machine.decided.n - len(h.forget); n > 0 {
			t.Errorf("%v: %d decisions are not forgotten", txnproto.ShardID(s), n)
		}
	}
	return w
}
