package broken

import (
	"errors"
	"strings"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/txnproto/controltest"
	"interleave/txnproto/history"
)

// Every broken protocol breaks its promise within a few random runs, and in the same
// runs the sound one keeps it.
func TestEachIsCaught(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			seed, err := firstBadSeed(t, v.name)
			if err == nil {
				t.Fatalf("not caught in %d runs", seed)
			}
			t.Logf("seed %d: %v", seed, err)
			if err := run(t, v.of, seed); err != nil {
				t.Fatalf("%s, seed %d: %v", v.of, seed, err)
			}
		})
	}
}

func firstBadSeed(t *testing.T, name string) (rng.Seed, error) {
	const runs = 200
	for seed := range rng.Seed(runs) {
		if err := run(t, name, seed); err != nil {
			if !strings.Contains(err.Error(), "BROKEN") {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return seed, err
		}
	}
	return runs, nil
}

func run(t *testing.T, name string, seed rng.Seed) error {
	p, ok := txnproto.ProtocolNamed(name)
	if !ok {
		t.Fatalf("%s is not registered", name)
	}
	r, err := controltest.RunWorld(controltest.WorldConfig{
		Config: controltest.Config{
			Protocol: p, Shards: 3, Keys: 12, Present: []txnproto.Key{0, 2, 3, 5, 8, 11}, Seed: seed,
		},
		Clients: 6, Requests: 15, Ops: 4,
	})
	if err != nil {
		return err
	}
	level, err := history.ParseLevel(p.Promise)
	if err != nil {
		t.Fatal(err)
	}
	if res := controltest.CheckLevel(r.History, level); !res.OK {
		return errors.New(res.String())
	}
	return nil
}
