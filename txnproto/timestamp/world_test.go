package timestamp

import (
	"fmt"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/txnproto/controltest"
)

func protocol(t testing.TB) *txnproto.Protocol {
	p, ok := txnproto.ProtocolNamed("to")
	if !ok {
		t.Fatal("to is not registered")
	}
	return p
}

// Random clients on one and on several shards, with changes of leader: everything
// ends, nothing stays pending, and every dependency leads from an older transaction to
// a younger one, which is more than serializability.
func TestRandomRunsFollowTimestamps(t *testing.T) {
	for _, shards := range []int{1, 3} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			for seed := range rng.Seed(60) {
				runWorld(t, shards, seed)
			}
		})
	}
}

func runWorld(t *testing.T, shards int, seed rng.Seed) {
	r, err := controltest.RunWorld(controltest.WorldConfig{
		Config: controltest.Config{
			Protocol: protocol(t), Shards: shards, Keys: 9,
			Present: []txnproto.Key{0, 2, 3, 5, 8}, Seed: seed, Early: seed%3 == 0,
		},
		Clients: 8, Requests: 12, Ops: 4, LeaderChanges: int(seed % 4),
	})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if err := controltest.Serializable(r.History); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	for _, e := range controltest.Edges(r.History) {
		if from, to := r.History[e.From], r.History[e.To]; from.TS > to.TS {
			t.Fatalf("seed %d: %v -%s(%d)-> %v goes back in time", seed, from.ID, e.Kind, e.Key, to.ID)
		}
	}
	for _, s := range r.Driver.Shards {
		c := s.Controller().(*basic)
		if len(c.items.free) != len(c.items.pending)-1 {
			t.Fatalf("seed %d: %d of %d pending writes are left", seed, len(c.items.pending)-1-len(c.items.free), len(c.items.pending)-1)
		}
		for k, _, ok := c.items.irregular.Ceil(0); ok; k, _, ok = c.items.irregular.Ceil(k + 1) {
			if s.Store().Get(k).Exists {
				t.Fatalf("seed %d: key %d is listed twice", seed, k)
			}
		}
	}
}
