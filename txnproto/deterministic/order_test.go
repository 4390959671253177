package deterministic

import (
	"strings"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/txnproto/controltest"
)

func TestScripts(t *testing.T) {
	for _, name := range []string{"order", "epochs", "reconnaissance", "leader", "ranges"} {
		t.Run(name, func(t *testing.T) { controltest.Script(t, "testdata/"+name) })
	}
}

// contended are clients who fight for few rows on three shards.
func contended(p *txnproto.Protocol, seed rng.Seed, changes int) controltest.WorldConfig {
	programs := seed.Stream("programs")
	return controltest.WorldConfig{
		Config:  controltest.Config{Protocol: p, Shards: 3, Keys: 6, Seed: seed, Present: []txnproto.Key{0, 1, 2, 3, 4, 5}},
		Clients: 8, Requests: 15, LeaderChanges: changes, MaxDelay: 3e6,
		Programs: func(int, int) []txnproto.Op {
			kinds := []txnproto.OpKind{txnproto.Read, txnproto.Modify, txnproto.Write, txnproto.ReadForUpdate, txnproto.Scan}
			var ops []txnproto.Op
			for range 1 + programs.Uint64n(4) {
				op := txnproto.Op{Kind: kinds[programs.Uint64n(5)], Key: txnproto.Key(programs.Uint64n(6)), Value: 1}
				op.End = op.Key + 3
				ops = append(ops, op)
			}
			return ops
		},
	}
}

// TestNobodyIsAborted: whatever the others do, as long as no rows come and go and no
// leader is lost.
func TestNobodyIsAborted(t *testing.T) {
	p, _ := txnproto.ProtocolNamed("calvin")
	for seed := range rng.Seed(20) {
		r, err := controltest.RunWorld(contended(p, seed, 0))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(r.Aborts) > 0 || r.Worst != 1 || r.Stats().QueueCount == 0 {
			t.Fatalf("seed %d: aborts %v, at worst %d attempts, %d waits", seed, r.Aborts, r.Worst, r.Stats().QueueCount)
		}
		if err := controltest.Serializable(r.History); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestOnlyLostLeadersAbort: with changes of leader, there is no other reason, everything
// still ends, and all shards' tables are right after every call.
func TestOnlyLostLeadersAbort(t *testing.T) {
	p, _ := txnproto.ProtocolNamed("calvin")
	some := 0
	for seed := range rng.Seed(40) {
		c := contended(p, seed, 4)
		c.After = func(s txnproto.ShardID, ctl txnproto.Controller) {
			tab := &ctl.(*controller).table
			if err := tab.check(); err != nil {
				t.Fatalf("seed %d, %v: %v", seed, s, err)
			}
		}
		r, err := controltest.RunWorld(c)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		some += r.Aborts[txnproto.LeaderChange]
		delete(r.Aborts, txnproto.LeaderChange)
		if len(r.Aborts) > 0 {
			t.Fatalf("seed %d: aborts for other reasons: %v", seed, r.Aborts)
		}
		if err := controltest.Serializable(r.History); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if some == 0 {
		t.Error("no attempt was lost with a leader: the test shows nothing")
	}
}

// TestWithoutWaitingForAllTheyStandStill takes the wait for the other sequencers out: two
// shards come to different orders, and transactions wait in a circle.
func TestWithoutWaitingForAllTheyStandStill(t *testing.T) {
	sound, _ := txnproto.ProtocolNamed("calvin")
	p := *sound
	p.New = func(h txnproto.Host, params txnproto.Params) txnproto.Controller {
		c := newController(h, params.Duration("epoch"))
		c.impatient = true
		return c
	}
	for seed := range rng.Seed(40) {
		_, err := controltest.RunWorld(contended(&p, seed, 0))
		if err == nil {
			continue
		}
		if !strings.Contains(err.Error(), "stuck") {
			t.Fatalf("seed %d: %v", seed, err)
		}
		return
	}
	t.Error("no circle in any run")
}
