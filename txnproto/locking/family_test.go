package locking

import (
	"fmt"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/txnproto/controltest"
)

// member is a protocol of the family with parameters.
type member struct {
	protocol string
	params   map[string]string
}

func (m member) String() string { return fmt.Sprint(m.protocol, m.params) }

var members = func() []member {
	var ms []member
	for _, p := range []member{
		{"2pl", nil},
		{"2pl", map[string]string{"detect": "probe"}},
		{"2pl", map[string]string{"detect": "probe", "victim": "oldest"}},
		{"2pl", map[string]string{"detect": "probe", "victim": "least-work"}},
		{"2pl-nowait", nil},
		{"2pl-waitdie", nil},
		{"2pl-woundwait", nil},
		{"2pl-timeout", map[string]string{"lock-timeout": "3ms"}},
	} {
		for _, more := range []map[string]string{
			{},
			{"update-lock": "u", "savepoint-locks": "keep"},
			{"granularity": "auto", "update-lock": "u"},
			{"granularity": "auto", "escalate-after": "2"},
			{"granularity": "table", "update-lock": "u"},
		} {
			all := map[string]string{}
			for _, from := range []map[string]string{p.params, more} {
				for k, v := range from { // order: no name is in both
					all[k] = v
				}
			}
			ms = append(ms, member{p.protocol, all})
		}
	}
	return append(ms, member{"2pl-ordered", nil})
}()

// programs draws programs of random operations: some will not wait, or not long, and
// some go back to a savepoint.
func programs(seed rng.Seed, keys txnproto.Key) func(client, n int) []txnproto.Op {
	r := seed.Stream("programs")
	return func(int, int) []txnproto.Op {
		var ops []txnproto.Op
		for range 1 + r.Uint64n(5) {
			op := controltest.RandomOp(r, keys)
			switch r.Uint64n(12) {
			case 0:
				op.Wait = txnproto.WaitNot
			case 1:
				op.Wait = txnproto.WaitSkip
			case 2:
				op.Timeout = 1e6
			case 3, 4:
				if n := uint64(len(ops)); n > 1 {
					op = txnproto.Op{Kind: txnproto.RollbackTo, Value: txnproto.Value(1 + r.Uint64n(n-1))}
				}
			}
			ops = append(ops, op)
		}
		return ops
	}
}

// Every member, on one and on several shards, with slow messages and changes of
// leader: every history is serializable, everything ends, and nothing stays locked.
func TestFamilyIsSerializableAndEnds(t *testing.T) {
	for _, m := range members {
		t.Run(m.String(), func(t *testing.T) {
			for seed := range rng.Seed(seedsPerMember) {
				runMember(t, m, 1+2*int(seed%2), seed)
			}
		})
	}
}

func runMember(t *testing.T, m member, shards int, seed rng.Seed) controltest.WorldResult {
	p, ok := txnproto.ProtocolNamed(m.protocol)
	if !ok {
		t.Fatalf("%s is not registered", m.protocol)
	}
	r, err := controltest.RunWorld(controltest.WorldConfig{
		Config: controltest.Config{
			Protocol: p, Params: m.params, Shards: shards, Keys: 9,
			Present: []txnproto.Key{0, 2, 3, 5, 8}, Seed: seed, Early: seed%3 == 0,
			After: func(s txnproto.ShardID, c txnproto.Controller) {
				c2 := c.(*twoPhase)
				err := c2.check()
				if err == nil {
					err = c2.checkPrevention()
				}
				if err != nil {
					t.Fatalf("seed %d, %v: %v", seed, s, err)
				}
			},
		},
		Clients: 8, Requests: 10, LeaderChanges: int(seed % 3),
		Programs: programs(seed, 9),
	})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if err := controltest.Serializable(r.History); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	for _, s := range r.Driver.Shards {
		c := s.Controller().(*twoPhase)
		if c.table.index.Len() != 0 || c.uncommitted.Len() != 0 || len(c.scanners) != 0 || c.index.Len() != 0 {
			t.Fatalf("seed %d: locks are left: %v", seed, c)
		}
	}
	return r
}

// checkPrevention verifies that no wait goes the forbidden way, or closes a cycle
// that nobody is going to break.
func (c *twoPhase) checkPrevention() error {
	if s := c.config.strategy; s != waitDie && s != woundWait && s != ordered && s != noWait {
		return nil
	}
	for i := range c.branches {
		o := owner(i)
		if !c.waits(o) {
			continue
		}
		switch c.config.strategy {
		case noWait:
			return fmt.Errorf("%v waits", c.branches[o].id)
		case waitDie:
			for _, u := range c.table.appendBlockers(nil, c.branches[o].request) {
				if c.older(u, o) {
					return fmt.Errorf("%v waits for the older %v", c.branches[o].id, c.branches[u].id)
				}
			}
		default:
			if c.findCycle(o) {
				return fmt.Errorf("%v is on a cycle of waits", c.branches[o].id)
			}
		}
	}
	return nil
}

// The members do what they are named for: each has its own reason to abort, and the
// ordered one has none.
func TestFamilyReasons(t *testing.T) {
	for protocol, want := range map[string]txnproto.AbortReason{ // order: independent
		"2pl": txnproto.Deadlock, "2pl-nowait": txnproto.NoWait, "2pl-waitdie": txnproto.WaitDie,
		"2pl-woundwait": txnproto.Wounded, "2pl-timeout": txnproto.LockTimeout, "2pl-ordered": txnproto.NoReason,
	} {
		p, _ := txnproto.ProtocolNamed(protocol)
		c := controltest.WorldConfig{
			Config:  controltest.Config{Protocol: p, Shards: 3, Keys: 6, Seed: 1, Present: []txnproto.Key{0, 1, 2, 3}},
			Clients: 8, Requests: 20, Ops: 4, Settled: true,
		}
		r, err := controltest.RunWorld(c)
		if err != nil {
			t.Fatalf("%s: %v", protocol, err)
		}
		if want != txnproto.NoReason && r.Aborts[want] == 0 {
			t.Errorf("%s: no abort for %v: %v", protocol, want, r.Aborts)
		}
		delete(r.Aborts, want)
		delete(r.Aborts, txnproto.Constraint)
		if len(r.Aborts) > 0 {
			t.Errorf("%s: aborts for other reasons: %v", protocol, r.Aborts)
		}
	}
}

// Probes find deadlocks across shards, and some too late.
func TestProbesAreCounted(t *testing.T) {
	var sum txnproto.ControlStats
	sum.Extra = map[string]uint64{}
	for seed := range rng.Seed(12) {
		r := runMember(t, member{"2pl", map[string]string{"detect": "probe"}}, 3, seed)
		s := r.Stats()
		sum.Deadlocks += s.Deadlocks
		sum.FalseDeadlocks += s.FalseDeadlocks
		for k, v := range s.Extra { // order: sums
			sum.Extra[k] += v
		}
	}
	if sum.Deadlocks == 0 || sum.FalseDeadlocks == 0 || sum.Extra["probes"] == 0 || sum.FalseDeadlocks >= sum.Deadlocks {
		t.Errorf("%d deadlocks, %d false, %d probes", sum.Deadlocks, sum.FalseDeadlocks, sum.Extra["probes"])
	}
}
