package snapshot

import (
	"fmt"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/txnproto/controltest"
	"interleave/txnproto/history"
)

var names = []string{"rc", "si", "ssi", "mv2pl"}

func protocol(t testing.TB, name string) *txnproto.Protocol {
	p, ok := txnproto.ProtocolNamed(name)
	if !ok {
		t.Fatal(name + " is not registered")
	}
	return p
}

// Random clients on one and on several shards, with changes of leader: everything
// ends, the promised level is kept, and nothing is left behind.
func TestRandomRunsKeepTheirLevel(t *testing.T) {
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
	p := protocol(t, name)
	r, err := controltest.RunWorld(controltest.WorldConfig{
		Config: controltest.Config{
			Protocol: p, Shards: shards, Keys: 9,
			Present: []txnproto.Key{0, 2, 3, 5, 8}, Seed: seed, Early: seed%3 == 0,
		},
		Clients: 8, Requests: 12, Ops: 4, LeaderChanges: int(seed % 4),
	})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	level, err := history.ParseLevel(p.Promise)
	if err != nil {
		t.Fatal(err)
	}
	if res := controltest.CheckLevel(r.History, level); !res.OK {
		t.Fatalf("seed %d: %v", seed, res)
	}
	for _, s := range r.Driver.Shards {
		nothingLeft(t, seed, s.Controller().(*controller))
	}
	return r
}

// Short transactions over two shards whose leaders change all the time: what a
// prepared transaction has read stays protected.
func TestManyLeaders(t *testing.T) {
	for _, name := range names {
		for seed := range rng.Seed(40) {
			runManyLeaders(t, name, seed)
		}
	}
}

func runManyLeaders(t *testing.T, name string, seed rng.Seed) {
	p := protocol(t, name)
	r, err := controltest.RunWorld(controltest.WorldConfig{
		Config:  controltest.Config{Protocol: p, Shards: 2, Keys: 4, Present: []txnproto.Key{0, 1, 2, 3}, Seed: seed},
		Clients: 6, Requests: 15, LeaderChanges: 80,
		Programs: func(client, n int) []txnproto.Op {
			k := txnproto.Key(client+n) % 4
			return []txnproto.Op{read(k), write((k + 1 + txnproto.Key(n)%3) % 4)}
		},
	})
	if err != nil {
		t.Fatalf("%s, seed %d: %v", name, seed, err)
	}
	level, err := history.ParseLevel(p.Promise)
	if err != nil {
		t.Fatal(err)
	}
	if res := controltest.CheckLevel(r.History, level); !res.OK {
		t.Fatalf("%s, seed %d: %v", name, seed, res)
	}
}

func nothingLeft(t *testing.T, seed rng.Seed, c *controller) {
	if n := c.prepared.rows.Len(); n != 0 {
		t.Fatalf("seed %d: %d rows are left as being decided", seed, n)
	}
	if s := fmt.Sprint(c.locks.control); s != "" {
		t.Fatalf("seed %d: locks are left:\n%s", seed, s)
	}
	if c.conflicts == nil {
		return
	}
	f := c.conflicts
	f.host = later{f.host}
	f.prune()
	if s := f.describe(nil); s != "" || f.reads.index.Len() != 0 || f.writes.sorted.Len() != 0 || len(f.scanners) != 0 ||
		len(f.edges.free) != len(f.edges.all)-1 || len(f.free) != len(f.records)-1 {
		t.Fatalf("seed %d: transactions are remembered that nobody is concurrent with:\n%s", seed, s)
	}
}

// later is a host at a later time.
type later struct{ txnproto.Host }

func (l later) OldestTS() txnproto.Timestamp { return l.Host.NewestTS() + 1 }
