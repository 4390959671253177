package locking

import (
	"fmt"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/txnproto/controltest"
)

func protocol(t testing.TB) *txnproto.Protocol {
	p, ok := txnproto.ProtocolNamed("2pl")
	if !ok {
		t.Fatal("2pl is not registered")
	}
	return p
}

// checkAfter returns a hook that checks the lock table after every call.
func checkAfter(t testing.TB) func(txnproto.ShardID, txnproto.Controller) {
	return func(s txnproto.ShardID, c txnproto.Controller) {
		if err := c.(*twoPhase).check(); err != nil {
			t.Fatalf("%v: %v", s, err)
		}
	}
}

// Random clients on one and on several shards, with changes of leader: every
// history is serializable, everything ends, and nothing stays locked.
func TestRandomRunsAreSerializableAndEnd(t *testing.T) {
	for _, victim := range victimNames {
		for _, detect := range []string{"immediate", "interval", "wait"} {
			for _, shards := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s/%s/%d", victim, detect, shards), func(t *testing.T) {
					for seed := range rng.Seed(6) {
						runWorld(t, shards, seed, map[string]string{
							"victim": victim, "detect": detect, "detect-interval": "3ms", "detect-after": "2ms",
							"update-lock": []string{"x", "u"}[seed%2],
						})
					}
				})
			}
		}
	}
}

// checkCounters compares the counters with each other and, where every deadlock
// costs one attempt, with the aborts.
func checkCounters(t *testing.T, r controltest.WorldResult, exact bool) {
	s := r.Stats()
	cycles := uint64(0)
	for n, count := range s.CycleLength {
		if count > 0 && n < 2 {
			t.Errorf("%d cycles of length %d", count, n)
		}
		cycles += count
	}
	aborts := uint64(r.Aborts[txnproto.Deadlock])
	if cycles != s.Deadlocks || s.FalseDeadlocks > s.Deadlocks || aborts > s.Deadlocks || exact && aborts != s.Deadlocks {
		t.Errorf("%d cycles, %d deadlocks, %d of them false, %d aborts", cycles, s.Deadlocks, s.FalseDeadlocks, aborts)
	}
}

// Detection across shards is late sometimes: with slow messages and other ways out
// of a cycle (here lock timeouts), some of what it finds is no longer true.
func TestFalseDeadlocksAreCounted(t *testing.T) {
	found := uint64(0)
	for seed := range rng.Seed(20) {
		r, err := controltest.RunWorld(controltest.WorldConfig{
			Config: controltest.Config{
				Protocol: protocol(t), Shards: 3, Keys: 6, Seed: seed, Present: []txnproto.Key{0, 1, 2, 3},
				Params: map[string]string{"lock-timeout": "1ms"}, After: checkAfter(t),
			},
			Clients: 8, Requests: 12, Ops: 4,
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Aborts[txnproto.LockTimeout] == 0 {
			t.Errorf("seed %d: no lock timed out", seed)
		}
		found += r.Stats().FalseDeadlocks
	}
	if found == 0 {
		t.Fatal("no false deadlock in 20 runs")
	}
}

func runWorld(t *testing.T, shards int, seed rng.Seed, params map[string]string) {
	r, err := controltest.RunWorld(controltest.WorldConfig{
		Config: controltest.Config{
			Protocol: protocol(t), Params: params, Shards: shards, Keys: 9,
			Present: []txnproto.Key{0, 2, 3, 5, 8}, Seed: seed, Early: seed%3 == 0,
			After: checkAfter(t),
		},
		Clients: 8, Requests: 12, Ops: 4, LeaderChanges: int(seed % 3),
	})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if err := controltest.Serializable(r.History); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	checkCounters(t, r, shards == 1 && seed%3 == 0)
	for _, s := range r.Driver.Shards {
		c := s.Controller().(*twoPhase)
		if c.table.index.Len() != 0 || c.uncommitted.Len() != 0 {
			t.Fatalf("seed %d: locks are left: %d entries, %d uncommitted keys", seed, c.table.index.Len(), c.uncommitted.Len())
		}
		if d := c.detector; d != nil && d.index.Len() != 0 {
			t.Fatalf("seed %d: the detector remembers %d waits", seed, d.index.Len())
		}
	}
}
