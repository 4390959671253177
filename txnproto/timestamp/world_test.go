package timestamp

import (
	"fmt"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/txnproto/controltest"
)

var names = []string{"to", "to-thomas", "to-strict", "mvto"}

func protocol(t testing.TB, name string) *txnproto.Protocol {
	p, ok := txnproto.ProtocolNamed(name)
	if !ok {
		t.Fatal(name + " is not registered")
	}
	return p
}

// Random clients on one and on several shards, with changes of leader: everything
// ends, nothing stays pending, and every dependency leads from an older transaction to
// a younger one, which is more than serializability.
func TestRandomRunsFollowTimestamps(t *testing.T) {
	for _, name := range names {
		for _, shards := range []int{1, 3} {
			t.Run(fmt.Sprint(name, "/", shards), func(t *testing.T) {
				for seed := range rng.Seed(60) {
					runWorld(t, name, shards, seed)
				}
			})
		}
	}
}

func runWorld(t *testing.T, name string, shards int, seed rng.Seed) controltest.WorldResult {
	r, err := controltest.RunWorld(controltest.WorldConfig{
		Config: controltest.Config{
			Protocol: protocol(t, name), Shards: shards, Keys: 9,
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
		switch c := s.Controller().(type) {
		case *basic:
			noneLeft(t, seed, c, s.Store())
		case *multiversion:
			if c.versions.pendingKeys.Len() != 0 {
				t.Fatalf("seed %d: %d keys have pending versions", seed, c.versions.pendingKeys.Len())
			}
			for i := range c.versions.all {
				c.versions.fold(chainID(i), s.OldestTS())
			}
			if left := len(c.versions.nodes) - 1 - len(c.versions.free); left != 0 {
				t.Fatalf("seed %d: %d versions are left that nobody can read", seed, left)
			}
		}
	}
	return r
}

func noneLeft(t *testing.T, seed rng.Seed, c *basic, store txnproto.Store) {
	if len(c.items.free) != len(c.items.pending)-1 {
		t.Fatalf("seed %d: %d of %d pending writes are left", seed, len(c.items.pending)-1-len(c.items.free), len(c.items.pending)-1)
	}
	for k, _, ok := c.items.irregular.Ceil(0); ok; k, _, ok = c.items.irregular.Ceil(k + 1) {
		if store.Get(k).Exists {
			t.Fatalf("seed %d: key %d is listed twice", seed, k)
		}
	}
}

// Blind writes alone never abort under Thomas's rule, and do without it.
func TestWritesAreSkipped(t *testing.T) {
	for name, thomas := range map[string]bool{"to": false, "to-thomas": true} { // order: each by itself
		skipped, late := uint64(0), 0
		for seed := range rng.Seed(20) {
			r, err := controltest.RunWorld(controltest.WorldConfig{
				Config:  controltest.Config{Protocol: protocol(t, name), Shards: 2, Keys: 6, Seed: seed},
				Clients: 8, Requests: 20,
				Programs: func(client, n int) []txnproto.Op {
					k := txnproto.Key(client+n) % 6
					return []txnproto.Op{{Kind: txnproto.Write, Key: k}, {Kind: txnproto.Delete, Key: 5 - k}}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := controltest.Serializable(r.History); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			late += r.Aborts[txnproto.TSOrder]
			skipped += r.Stats().Extra["skipped-writes"]
		}
		if (skipped > 0) != thomas || (late == 0) != thomas {
			t.Errorf("%s: %d writes are skipped, %d come too late", name, skipped, late)
		}
	}
}

// Whoever only reads never aborts under mvto, but for changes of leader.
func TestReadsNeverAbort(t *testing.T) {
	for seed := range rng.Seed(20) {
		r, err := controltest.RunWorld(controltest.WorldConfig{
			Config:  controltest.Config{Protocol: protocol(t, "mvto"), Shards: 2, Keys: 6, Present: []txnproto.Key{0, 1, 2}, Seed: seed},
			Clients: 8, Requests: 20,
			Programs: func(client, n int) []txnproto.Op {
				k := txnproto.Key(n) % 6
				if client < 4 {
					return []txnproto.Op{{Kind: txnproto.Read, Key: k}, {Kind: txnproto.Scan, Key: 0, End: 6}, {Kind: txnproto.Read, Key: 5 - k}}
				}
				return []txnproto.Op{{Kind: txnproto.Write, Key: k}, {Kind: txnproto.Modify, Key: 5 - k}}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range r.History {
			if int(a.Request-1)/20 < 4 && a.Number > 1 {
				t.Fatalf("seed %d: %v only reads and needs attempt %d", seed, a.ID, a.Number)
			}
		}
	}
}
