package controltest_test

import (
	"fmt"
	"strings"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/txnproto/controltest"
)

// Without contention nothing waits and nothing aborts: one client alone, and
// clients that keep to rows of their own.
func TestNoConflictNoCost(t *testing.T) {
	alone := func(_ *rng.Stream, c *controltest.WorldConfig) { c.Clients = 1 }
	apart := func(r *rng.Stream, c *controltest.WorldConfig) {
		c.Keys, c.Clients = 40, 8
		for k := range c.Keys {
			c.Present = append(c.Present, k)
		}
		kinds := []txnproto.OpKind{rd, rfu, wr, rmw}
		c.Programs = func(client, _ int) []txnproto.Op {
			var ops []txnproto.Op
			for range 4 {
				ops = append(ops, op(kinds[r.Uint64n(4)], txnproto.Key(5*client)+txnproto.Key(r.Uint64n(5))))
			}
			return ops
		}
	}
	for _, name := range []string{"2pl", "to", "occ"} {
		p, _ := txnproto.ProtocolNamed(name)
		for what, set := range map[string]func(*rng.Stream, *controltest.WorldConfig){ // order: independent runs
			"alone": alone, "apart": apart,
		} {
			for _, shards := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, what, shards), func(t *testing.T) {
					c := controltest.WorldConfig{
						Config:   controltest.Config{Protocol: p, Shards: shards, Keys: 9, Seed: 7},
						Requests: 60, Ops: 5, Settled: true,
					}
					set(rng.Seed(1).Stream("programs"), &c)
					r, err := controltest.RunWorld(c)
					if err != nil {
						t.Fatal(err)
					}
					delete(r.Aborts, txnproto.Constraint)
					if len(r.Aborts) > 0 || r.Stats().QueueCount > 0 {
						t.Fatalf("aborts %v, %d waits", r.Aborts, r.Stats().QueueCount)
					}
				})
			}
		}
	}
}

// A deadlock that nobody looks for is reported as one that waits for ever: the
// liveness tests can fail.
func TestUndetectedDeadlockIsSeen(t *testing.T) {
	p, _ := txnproto.ProtocolNamed("2pl")
	_, err := controltest.RunWorld(controltest.WorldConfig{
		Config: controltest.Config{
			Protocol: p, Params: map[string]string{"detect": "off"}, Shards: 2, Keys: 6, Seed: 3,
			Present: []txnproto.Key{0, 1, 2, 3},
		},
		Clients: 8, Requests: 20, Ops: 4,
	})
	if err == nil || !strings.HasPrefix(err.Error(), "stuck: ") {
		t.Fatalf("error %v", err)
	}
}

// Equal seeds give equal runs, to the order of commits and every version read.
func TestRunsRepeat(t *testing.T) {
	for _, name := range []string{"2pl", "to", "occ"} {
		p, _ := txnproto.ProtocolNamed(name)
		var before string
		for range 3 {
			r, err := controltest.RunWorld(controltest.WorldConfig{
				Config:  controltest.Config{Protocol: p, Shards: 3, Keys: 9, Seed: 5, Present: []txnproto.Key{0, 4}},
				Clients: 8, Requests: 20, Ops: 4, LeaderChanges: 2,
			})
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, a := range r.History {
				fmt.Fprintln(&b, a.ID, a.Reads, a.Writes)
			}
			if before != "" && before != b.String() {
				t.Fatalf("%s: two runs of one seed differ", name)
			}
			before = b.String()
		}
	}
}
