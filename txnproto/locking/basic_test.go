package locking

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/txnproto/controltest"
	"interleave/txnproto/history"
)

func basicProtocol(t testing.TB) *txnproto.Protocol {
	p, ok := txnproto.ProtocolNamed("2pl-basic")
	if !ok {
		t.Fatal("2pl-basic is not registered")
	}
	return p
}

func recoverable(yes bool) map[string]string {
	return map[string]string{"recoverable": fmt.Sprint(yes)}
}

// check verifies that exposures and dependencies agree with each other, and that whoever
// exposes something holds no lock on it.
func (b *basic) check(t *table) error {
	n := 0
	for k, _, ok := b.keys.Ceil(0); ok; k, _, ok = b.keys.Ceil(k + 1) {
		newer := ^txnproto.Version(0)
		for id := exposureID(b.newest.Get(k)); id != 0; id = b.pool[id].older {
			n++
			x := &b.pool[id]
			if x.key != k || x.version == 0 || x.version >= newer {
				return fmt.Errorf("key %d exposes key %d at version %d, above which is %d", k, x.key, x.version, newer)
			}
			newer = x.version
			if !slices.Contains(b.open[x.owner].exposed, id) {
				return fmt.Errorf("version %d of key %d is not its owner's", x.version, k)
			}
			if eid := entryID(t.index.Get(k)); eid != 0 && t.find(x.owner, eid) != 0 {
				return fmt.Errorf("owner %d exposes key %d and has a lock there", x.owner, k)
			}
		}
	}
	listed := 0
	for o := range b.open {
		x := &b.open[o]
		listed += len(x.exposed)
		for _, r := range x.readers {
			y := b.live(r.o, r.id)
			if !r.committed && (y == nil || !slices.ContainsFunc(y.from, func(f source) bool { return f.id == x.id })) {
				return fmt.Errorf("%v does not know that it has read from %v", r.id, x.id)
			}
		}
		for _, f := range x.from {
			y := b.live(f.o, f.id)
			if y == nil || !slices.ContainsFunc(y.readers, func(r reader) bool { return r.id == x.id && !r.committed }) {
				return fmt.Errorf("%v does not know its reader %v", f.id, x.id)
			}
		}
		if x.waits && len(x.from) == 0 {
			return fmt.Errorf("%v waits to commit for nobody", x.id)
		}
	}
	if n != listed || b.keys.Len() != b.newest.Len() {
		return fmt.Errorf("%d exposed writes, %d listed; %d keys, %d in order", n, listed, b.newest.Len(), b.keys.Len())
	}
	return nil
}

// basicPrograms draws programs that come back to rows, scan, go back to savepoints, and,
// some of them, roll back in the end.
func basicPrograms(seed rng.Seed, keys txnproto.Key) func(client, n int) []txnproto.Op {
	r := seed.Stream("rollbacks")
	draw := programs(seed, keys)
	return func(client, n int) []txnproto.Op {
		ops := draw(client, n)
		if r.Uint64n(3) == 0 { // touch a row again, after the lock point
			first := ops[0]
			if first.Kind != txnproto.Scan {
				first.Kind = txnproto.Modify
				ops = append([]txnproto.Op{first}, ops...)
				ops = append(ops, first)
			}
		}
		if r.Uint64n(4) == 0 {
			ops = append(ops, controltest.RollBack)
		}
		return ops
	}
}

func runBasic(t *testing.T, yes bool, shards, leaderChanges int, seed rng.Seed) controltest.WorldResult {
	r, err := controltest.RunWorld(controltest.WorldConfig{
		Config: controltest.Config{
			Protocol: basicProtocol(t), Params: recoverable(yes), Shards: shards, Keys: 9,
			Present: []txnproto.Key{0, 2, 3, 5, 8}, Seed: seed, Early: seed%3 == 0,
			After: func(s txnproto.ShardID, c txnproto.Controller) {
				c2 := c.(*twoPhase)
				if err := errors.Join(c2.check(), c2.basic.check(c2.table)); err != nil {
					t.Fatalf("seed %d, %v: %v", seed, s, err)
				}
			},
		},
		Clients: 8, Requests: 12, LeaderChanges: leaderChanges,
		Programs: basicPrograms(seed, 9),
	})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	for _, s := range r.Driver.Shards {
		c := s.Controller().(*twoPhase)
		if c.table.index.Len() != 0 || c.uncommitted.Len() != 0 || c.basic.newest.Len() != 0 {
			t.Fatalf("seed %d: left are %d locks, %d uncommitted keys, %d exposed ones", seed, c.table.index.Len(), c.uncommitted.Len(), c.basic.newest.Len())
		}
	}
	return r
}

// The committed transactions of random runs are serializable, whatever else has been
// aborted. Who waits for whom it has read from has read nothing that was taken back; who
// does not wait has in some runs, and these are the runs in which it is counted.
func TestBasicRandomRuns(t *testing.T) {
	for _, yes := range []bool{false, true} {
		for _, shards := range []int{1, 3} {
			t.Run(fmt.Sprintf("recoverable=%v/%d", yes, shards), func(t *testing.T) {
				sum := map[string]uint64{}
				for seed := range rng.Seed(basicSeeds) {
					changes := int(seed % 3)
					r := runBasic(t, yes, shards, changes, seed)
					if err := controltest.Serializable(r.History); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					level := history.ReadUncommitted
					if yes {
						level = history.Serializable
					}
					res := controltest.CheckLevel(r.History, level)
					if !res.OK {
						t.Fatalf("seed %d: %v", seed, res)
					}
					late := r.Stats().Extra["unrecoverable"]
					found := slices.ContainsFunc(res.Counts, func(n history.Count) bool { return n.Kind == history.G1a })
					// What a lost leader knew is not counted.
					if changes == 0 && (late > 0) != found {
						t.Fatalf("seed %d: %d commits are unrecoverable, and the checker says %v", seed, late, res)
					}
					for name, n := range r.Stats().Extra { // order: sums by name
						sum[name] += n
					}
					sum["cascade"] += uint64(r.Aborts[txnproto.Cascade])
				}
				if sum["dirty-reads"] == 0 || sum["cascades"] == 0 || sum["cascade"] == 0 || (sum["unrecoverable"] == 0) != yes {
					t.Errorf("counted: %v", sum)
				}
				t.Log(sum)
			})
		}
	}
}

// Every interleaving of small programs, some of which roll back: the committed ones are
// serializable, by dependencies and by brute force.
func TestBasicEveryInterleaving(t *testing.T) {
	back := controltest.RollBack
	rollingBack := [][][]txnproto.Op{
		{{op(txnproto.Modify, 0), back}, {op(txnproto.Modify, 0), op(txnproto.Write, 2)}, {op(txnproto.Read, 2)}},
		{{op(txnproto.Insert, 3), back}, {op(txnproto.Scan, 2, 5)}, {op(txnproto.Insert, 4)}},
		{{op(txnproto.Insert, 3), back}, {op(txnproto.Write, 3)}, {op(txnproto.Scan, 2, 5)}},
		{{op(txnproto.Delete, 2), back}, {op(txnproto.Scan, 1, 4)}, {op(txnproto.Insert, 1)}},
		{{op(txnproto.Delete, 2), back}, {op(txnproto.Scan, 0, 2), op(txnproto.Read, 5)}, {op(txnproto.Insert, 1), op(txnproto.Write, 5)}},
		{{op(txnproto.Delete, 2), op(txnproto.Insert, 2)}, {op(txnproto.Write, 2), back}, {op(txnproto.Read, 2)}},
	}
	for _, yes := range []bool{false, true} {
		tries := rollingBack
		three := 0
		for _, programs := range conflicts {
			if len(programs) > 2 {
				three++
			}
			if yes && (len(programs) == 2 || three <= basicThree) {
				tries = append(tries, programs)
			}
		}
		for i, programs := range tries {
			c := controltest.Config{
				Protocol: basicProtocol(t), Params: recoverable(yes), Shards: 1 + i%2, Keys: 7, Present: []txnproto.Key{0, 2, 5},
				After: func(s txnproto.ShardID, c txnproto.Controller) {
					c2 := c.(*twoPhase)
					if err := errors.Join(c2.check(), c2.basic.check(c2.table)); err != nil {
						t.Fatalf("programs %d, %v: %v", i, s, err)
					}
				},
			}
			if len(programs) > 2 {
				c.Shards = 1
			}
			commits := 0
			_, err := controltest.Explore(c, programs, func(r controltest.Run) error {
				commits += len(r.History)
				err := controltest.Serializable(r.History)
				if yes {
					err = errors.Join(err, r.SerialOrder(programs))
					if res := controltest.CheckLevel(r.History, history.Serializable); !res.OK {
						err = errors.Join(err, errors.New(res.String()))
					}
				}
				return err
			})
			if err != nil || commits == 0 {
				t.Errorf("recoverable=%v, programs %d: %d commits: %v", yes, i, commits, err)
			}
		}
	}
}
