package nodes

import (
	"bytes"
	"fmt"
	"time"

	"interleave/sim/event"
	"interleave/sim/rng"
	"interleave/txnproto"
)

// scripted is a Replication whose leaders change when the test says so. An
// entry is committed commitDelay after it was proposed, at every replica that is
// up, in the order of proposal. When a leader falls, a test's choice says for
// each entry under way whether it was lost or committed all the same.
type scripted struct {
	loop   *event.Loop
	host   *Cluster
	groups []scriptedGroup
	down   []bool

	commitDelay, electDelay time.Duration
	// hold, when set, keeps an entry from being committed until release.
	hold func(txnproto.ShardID, *Entry) bool
	// onLog, when set, hears of every entry that is committed.
	onLog func(txnproto.ShardID, *Entry)
	// survives says whether an entry under way outlives its leader.
	survives func(txnproto.ShardID, *Entry) bool
	rand     *rng.Stream

	hCommit, hElect event.HandlerID
	stats           ReplicationStats
}

type scriptedGroup struct {
	log      [][]byte
	machines []StateMachine // by node; nil: down
	applied  []uint64       // by node
	leader   int            // -1: none
	term     uint64
	pending  []*Entry
	electing bool
	prefer   int // the next leader, if it is up; -1: any
}

func newScripted(loop *event.Loop, host *Cluster, shards, machines int, seed rng.Seed) *scripted {
	r := &scripted{
		loop: loop, host: host, groups: make([]scriptedGroup, shards), down: make([]bool, machines),
		commitDelay: 300 * time.Microsecond, electDelay: 3 * time.Millisecond,
		survives: func(txnproto.ShardID, *Entry) bool { return false },
		rand:     seed.Stream("scripted"),
	}
	r.hCommit = loop.Handle("scripted.commit", func(s uint64) { r.commit(txnproto.ShardID(s)) })
	r.hElect = loop.Handle("scripted.elect", func(s uint64) { r.elect(txnproto.ShardID(s)) })
	return r
}

func (r *scripted) Start() error {
	for s := range r.groups {
		g := &r.groups[s]
		g.leader, g.prefer = -1, s%len(r.down)
		g.machines = make([]StateMachine, len(r.down))
		g.applied = make([]uint64, len(r.down))
		for n := range r.down {
			g.machines[n] = r.host.Machine(txnproto.ShardID(s), txnproto.NodeID(n))
		}
		g.electing = true
		r.loop.After(0, r.hElect, uint64(s))
	}
	return nil
}

func (r *scripted) Propose(s txnproto.ShardID, n txnproto.NodeID, e *Entry) {
	g := &r.groups[s]
	if g.leader != int(n) {
		panic(fmt.Sprintf("%v proposes to %v, whose leader is %d", n, s, g.leader))
	}
	e.syncedAt = r.loop.Now().Add(r.commitDelay / 2)
	g.pending = append(g.pending, e)
	r.loop.After(r.commitDelay, r.hCommit, uint64(s))
}

// commit commits what has been under way for long enough and is not held.
func (r *scripted) commit(s txnproto.ShardID) {
	g := &r.groups[s]
	for len(g.pending) > 0 && g.leader >= 0 {
		e := g.pending[0]
		if r.loop.Now() < e.syncedAt.Add(r.commitDelay/2) || r.hold != nil && r.hold(s, e) {
			return
		}
		g.pending = g.pending[1:]
		g.log = append(g.log, e.AppendTo(nil))
		r.logged(s, e)
		r.applyAll(s)
	}
}

func (r *scripted) logged(s txnproto.ShardID, e *Entry) {
	r.stats.Entries++
	if r.onLog != nil {
		r.onLog(s, e)
	}
}

// release looks again at what was held.
func (r *scripted) release() {
	for s := range r.groups {
		r.commit(txnproto.ShardID(s))
	}
}

// applyAll applies the log at every replica that is up, the leader first.
func (r *scripted) applyAll(s txnproto.ShardID) {
	g := &r.groups[s]
	if g.leader >= 0 {
		r.apply(s, g.leader)
	}
	for n := range g.machines {
		r.apply(s, n)
	}
}

func (r *scripted) apply(s txnproto.ShardID, n int) {
	g := &r.groups[s]
	for g.machines[n] != nil && g.applied[n] < uint64(len(g.log)) {
		g.applied[n]++
		i := g.applied[n]
		var e Entry
		if err := e.Decode(g.log[i-1]); err != nil {
			panic(err)
		}
		e.syncedAt = r.loop.Now()
		g.machines[n].Apply(i, &e)
		r.host.Applied(Applied{
			Shard: s, Node: txnproto.NodeID(n), Leader: n == g.leader, Index: i, Entry: &e, SyncedAt: e.syncedAt,
		})
	}
}

// depose ends the leadership of s; its node lives on.
func (r *scripted) depose(s txnproto.ShardID) {
	g := &r.groups[s]
	if g.leader < 0 {
		return
	}
	n := g.leader
	g.leader = -1
	r.host.Lost(s, txnproto.NodeID(n))
	for _, e := range g.pending {
		if !r.survives(s, e) {
			break // a log has no gaps
		}
		g.log = append(g.log, e.AppendTo(nil))
		r.logged(s, e)
	}
	g.pending = nil
	if !g.electing {
		g.electing = true
		r.loop.After(r.electDelay, r.hElect, uint64(s))
	}
}

// elect makes a node lead that is up, when there is one.
func (r *scripted) elect(s txnproto.ShardID) {
	g := &r.groups[s]
	var up []int
	for n := range r.down {
		if !r.down[n] {
			up = append(up, n)
		}
	}
	if len(up) == 0 {
		r.loop.After(r.electDelay, r.hElect, uint64(s))
		return
	}
	g.electing = false
	leader := up[r.rand.Uint64n(uint64(len(up)))]
	if g.prefer >= 0 && !r.down[g.prefer] {
		leader = g.prefer
	}
	g.prefer = -1
	r.apply(s, leader)
	g.leader = leader
	g.term++
	if g.term > 1 {
		r.stats.Elections++
	}
	r.host.Lead(s, txnproto.NodeID(leader), g.term)
	r.applyAll(s)
}

func (r *scripted) Crash(n txnproto.NodeID) {
	r.down[n] = true
	for s := range r.groups {
		g := &r.groups[s]
		g.machines[n] = nil
		if g.leader == int(n) {
			r.depose(txnproto.ShardID(s))
		}
	}
}

func (r *scripted) Restart(n txnproto.NodeID) error {
	r.down[n] = false
	for s := range r.groups {
		g := &r.groups[s]
		g.machines[n] = r.host.Machine(txnproto.ShardID(s), n)
		g.applied[n] = r.restore(g, int(n))
		r.apply(txnproto.ShardID(s), int(n))
	}
	return nil
}

// restore brings a replica that starts to the state of another by a snapshot,
// every other time that there is one, and returns the index it stands at.
func (r *scripted) restore(g *scriptedGroup, n int) uint64 {
	for o, m := range g.machines {
		if m == nil || o == n || r.rand.Uint64n(2) == 0 {
			continue
		}
		var b bytes.Buffer
		if err := m.Snapshot(&b); err != nil {
			panic(err)
		}
		if err := g.machines[n].Restore(&b); err != nil {
			panic(err)
		}
		return g.applied[o]
	}
	return 0
}

func (r *scripted) Settle(done func()) { done() }

func (r *scripted) Close() error { return nil }

func (r *scripted) Stats() ReplicationStats { return r.stats }

func (r *scripted) ResetStats() { r.stats = ReplicationStats{} }
