package optimistic

import (
	"fmt"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/txnproto/controltest"
)

// member variants of the family that are serializable, with their parameters.
var serializable = []struct {
	name   string
	params map[string]string
}{
	{"occ-parallel", nil},
	{"occ-forward", nil},
	{"occ-forward", map[string]string{"policy": "abort"}},
	{"silo", nil},
	{"silo", map[string]string{"node-keys": "1"}},
	{"tictoc", nil},
}

func named(t testing.TB, name string) *txnproto.Protocol {
	p, ok := txnproto.ProtocolNamed(name)
	if !ok {
		t.Fatalf("%s is not registered", name)
	}
	return p
}

// runFamily runs random clients and fails when one does not end or something is kept.
func runFamily(t *testing.T, name string, params map[string]string, shards int, seed rng.Seed) controltest.WorldResult {
	r, err := controltest.RunWorld(controltest.WorldConfig{
		Config: controltest.Config{
			Protocol: named(t, name), Params: params, Shards: shards, Keys: 9,
			Present: []txnproto.Key{0, 2, 3, 5, 8}, Seed: seed, Early: seed%3 == 0,
		},
		Clients: 8, Requests: 12, Ops: 4, LeaderChanges: int(seed % 4),
	})
	if err != nil {
		t.Fatalf("%s %v, %d shards, seed %d: %v", name, params, shards, seed, err)
	}
	for _, s := range r.Driver.Shards {
		if l, ok := s.Controller().(interface{ Leftover() string }); ok && l.Leftover() != "" {
			t.Fatalf("%s %v, %d shards, seed %d: %s", name, params, shards, seed, l.Leftover())
		}
	}
	return r
}

func runSerializable(t *testing.T, seeds, from rng.Seed) {
	for _, p := range serializable {
		for _, shards := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s%v/%d", p.name, p.params, shards), func(t *testing.T) {
				for seed := range seeds {
					r := runFamily(t, p.name, p.params, shards, from+seed)
					if err := controltest.Serializable(r.History); err != nil {
						t.Fatalf("seed %d: %v", from+seed, err)
					}
				}
			})
		}
	}
}

// Random clients on one and on several shards, with changes of leader: every
// history is serializable, everything ends, and nothing is kept.
func TestFamilyIsSerializableAndEnds(t *testing.T) { runSerializable(t, 60, 0) }
