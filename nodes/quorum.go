package nodes

import (
	"fmt"
	"time"

	"interleave/sim/event"
	"interleave/sim/netsim"
	"interleave/sim/rng"
	"interleave/sim/station"
	"interleave/txnproto"
)

// QuorumConfig is what the quorum model is made of.
type QuorumConfig struct {
	Loop       *event.Loop
	Net        *netsim.Net
	Seed       rng.Seed
	Shards     int
	Replicas   int // 1: a single copy
	Machines   int
	ValueBytes int
	Disk       func(txnproto.NodeID) *station.Disk
	Host       ReplicationHost
	// Release takes back entries that every replica has applied; nil: none.
	Release func(*Entry)
}

// Quorum models a replicated log by its messages: no elections, no terms, a
// fixed leader, no faults; what remains of Raft when nothing fails. With one
// replica it is a single copy with a log on its disk.
type Quorum struct {
	cfg     QuorumConfig
	groups  []quorumGroup
	appends []quorumAppend // in flight, by index
	free    []uint32
	stats   ReplicationStats
	settled func()

	hLead, hLeaderSynced, hArrive, hFollowerSynced, hAck event.HandlerID
}

// quorumGroup is one shard's log and replicas; replica 0 leads.
type quorumGroup struct {
	shard    txnproto.ShardID
	nodes    []txnproto.NodeID
	machines []StateMachine

	// log holds the entries after base, up to last; pending ones have no index yet.
	log      []*Entry
	head     int // log[:head] is released
	base     uint64
	pending  []*Entry
	writing  bool // the leader's disk is at a batch
	writeTo  uint64
	writeMax int      // bytes of that batch
	matched  []uint64 // by replica: on its disk up to
	applied  []uint64 // by replica: applied up to
	commit   uint64

	settleTo uint64 // entries to be applied everywhere
	noops    int    // no-ops still to be proposed by Settle
}

// quorumAppend is one batch on its way to one follower and back.
type quorumAppend struct {
	group, replica int32
	last, commit   uint64
	bytes          int32
}

// quorumBatch is how many entries go to disk and followers together at most.
const quorumBatch = 64

const appendHeaderBytes = 96

// NewQuorum returns the model. It implements Replication.
func NewQuorum(cfg QuorumConfig) *Quorum {
	q := &Quorum{cfg: cfg}
	q.hLead = cfg.Loop.Handle("quorum.lead", func(s uint64) { q.cfg.Host.Lead(txnproto.ShardID(s), q.groups[s].nodes[0], 1) })
	q.hLeaderSynced = cfg.Loop.Handle("quorum.leader-synced", q.leaderSynced)
	q.hArrive = cfg.Loop.Handle("quorum.arrive", q.arrive)
	q.hFollowerSynced = cfg.Loop.Handle("quorum.follower-synced", q.followerSynced)
	q.hAck = cfg.Loop.Handle("quorum.ack", q.acked)
	return q
}

// Start implements Replication.
func (q *Quorum) Start() error {
	q.groups = make([]quorumGroup, q.cfg.Shards)
	for s := range q.groups {
		g := &q.groups[s]
		g.shard = txnproto.ShardID(s)
		for r := range q.cfg.Replicas {
			n := txnproto.NodeID((s + r) % q.cfg.Machines)
			g.nodes = append(g.nodes, n)
			g.machines = append(g.machines, q.cfg.Host.Machine(g.shard, n))
		}
		g.matched = make([]uint64, q.cfg.Replicas)
		g.applied = make([]uint64, q.cfg.Replicas)
		q.cfg.Loop.After(0, q.hLead, uint64(s))
	}
	return nil
}

// Propose implements Replication.
func (q *Quorum) Propose(s txnproto.ShardID, _ txnproto.NodeID, e *Entry) {
	g := &q.groups[s]
	g.pending = append(g.pending, e)
	q.write(g)
}

func (g *quorumGroup) last() uint64 { return g.base + uint64(len(g.log)-g.head) }

func (g *quorumGroup) entry(index uint64) *Entry { return g.log[g.head+int(index-g.base)-1] }

// write starts the leader's next batch if its disk is not at one.
func (q *Quorum) write(g *quorumGroup) {
	n := min(len(g.pending), quorumBatch)
	if g.writing || n == 0 {
		return
	}
	bytes := 0
	for _, e := range g.pending[:n] {
		bytes += e.Size(q.cfg.ValueBytes)
		e.refs = int32(len(g.nodes))
	}
	g.log = append(g.log, g.pending[:n]...)
	g.pending = append(g.pending[:0], g.pending[n:]...)
	g.writing, g.writeTo, g.writeMax = true, g.last(), bytes
	q.stats.Batches++
	q.cfg.Disk(g.nodes[0]).Write(bytes, q.hLeaderSynced, uint64(g.shard))
}

// leaderSynced sends the batch that the leader's disk now has to the followers.
func (q *Quorum) leaderSynced(s uint64) {
	g := &q.groups[s]
	from, now := g.matched[0], q.cfg.Loop.Now()
	share := q.cfg.Disk(g.nodes[0]).LastShare() / time.Duration(g.writeTo-from)
	for i := from + 1; i <= g.writeTo; i++ {
		e := g.entry(i)
		e.syncedAt, e.diskShare = now, share
	}
	g.matched[0] = g.writeTo
	g.writing = false
	for r := 1; r < len(g.nodes); r++ {
		i := q.newAppend()
		q.appends[i] = quorumAppend{int32(s), int32(r), g.writeTo, g.commit, int32(g.writeMax)}
		q.send(g, r, txnproto.MsgAppend, g.writeMax+appendHeaderBytes, q.hArrive, uint64(i))
	}
	q.advance(g)
	q.write(g)
}

// send sends a batch to follower r, or its answer back.
func (q *Quorum) send(g *quorumGroup, r int, k txnproto.MsgKind, bytes int, h event.HandlerID, arg uint64) {
	from, to := g.nodes[0], g.nodes[r]
	if k == txnproto.MsgAppendReply {
		from, to = to, from
	}
	m := netsim.Message{
		From: netsim.Site(from), To: netsim.Site(to), Kind: netsim.Kind(k), Bytes: bytes, FIFO: true,
		Key: rng.Hash(uint64(g.shard)<<8|uint64(k), q.appends[arg].last), Handler: h, Arg: arg,
	}
	if q.cfg.Net.Send(&m) == event.Never {
		sendAgain(q.cfg.Net, &m)
	}
}

func (q *Quorum) newAppend() uint32 {
	if n := len(q.free); n > 0 {
		i := q.free[n-1]
		q.free = q.free[:n-1]
		return i
	}
	q.appends = append(q.appends, quorumAppend{})
	return uint32(len(q.appends) - 1)
}

// arrive is a batch reaching a follower: it applies what it now knows to be
// committed, and writes the batch.
func (q *Quorum) arrive(i uint64) {
	a := &q.appends[i]
	g, r, bytes := &q.groups[a.group], int(a.replica), int(a.bytes)
	q.apply(g, r, a.commit)
	q.cfg.Disk(g.nodes[r]).Write(bytes, q.hFollowerSynced, i)
}

func (q *Quorum) followerSynced(i uint64) {
	a := &q.appends[i]
	q.send(&q.groups[a.group], int(a.replica), txnproto.MsgAppendReply, appendHeaderBytes, q.hAck, i)
}

// acked is a follower's answer reaching the leader.
func (q *Quorum) acked(i uint64) {
	a := q.appends[i]
	q.free = append(q.free, uint32(i))
	g := &q.groups[a.group]
	g.matched[a.replica] = max(g.matched[a.replica], a.last)
	q.advance(g)
}

// advance commits what a majority has on disk.
func (q *Quorum) advance(g *quorumGroup) {
	commit := g.commit
	for _, candidate := range g.matched {
		if candidate <= commit {
			continue
		}
		have := 0
		for _, m := range g.matched {
			if m >= candidate {
				have++
			}
		}
		if 2*have > len(g.matched) {
			commit = candidate
		}
	}
	if commit == g.commit {
		return
	}
	q.stats.Entries += commit - g.commit
	g.commit = commit
	q.apply(g, 0, commit)
}

// apply applies the entries up to index at replica r.
func (q *Quorum) apply(g *quorumGroup, r int, index uint64) {
	for g.applied[r] < index {
		g.applied[r]++
		i := g.applied[r]
		e := g.entry(i)
		g.machines[r].Apply(i, e)
		if r == 0 { // the first to apply it: the others have nothing to add
			q.cfg.Host.Applied(Applied{
				Shard: g.shard, Node: g.nodes[0], Leader: true, Index: i, Entry: e,
				SyncedAt: e.syncedAt, DiskShare: e.diskShare,
			})
		}
		e.refs--
	}
	q.releaseApplied(g)
	if q.settled != nil {
		q.settle(g)
	}
}

// releaseApplied gives back the entries that every replica has applied.
func (q *Quorum) releaseApplied(g *quorumGroup) {
	for g.head < len(g.log) && g.log[g.head].refs == 0 {
		if q.cfg.Release != nil {
			q.cfg.Release(g.log[g.head])
		}
		g.log[g.head] = nil
		g.head++
		g.base++
	}
	if g.head > 256 && 2*g.head > len(g.log) {
		n := copy(g.log, g.log[g.head:])
		g.log, g.head = g.log[:n], 0
	}
}

// Settle implements Replication: a follower learns of a commit with the next
// batch, so two no-ops, one after the other, tell it of all before them.
func (q *Quorum) Settle(done func()) {
	q.settled = done
	for s := range q.groups {
		g := &q.groups[s]
		g.settleTo = g.last() + uint64(len(g.pending))
		g.noops = 2
		q.settle(g)
	}
}

func (q *Quorum) settle(g *quorumGroup) {
	if g.noops > 0 && !g.writing && len(g.pending) == 0 && g.commit == g.last() {
		g.noops--
		q.Propose(g.shard, g.nodes[0], &Entry{Kind: EntryNoop})
	}
	for s := range q.groups {
		o := &q.groups[s]
		for _, a := range o.applied {
			if o.noops > 0 || a < o.settleTo {
				return
			}
		}
	}
	if done := q.settled; done != nil {
		q.settled = nil
		done()
	}
}

// Crash implements Replication. The model has no faults.
func (q *Quorum) Crash(n txnproto.NodeID) {
	panic(fmt.Sprintf("nodes: crash of %v: the quorum model has a fixed leader and no faults; use raft", n))
}

// Restart implements Replication. The model has no faults.
func (q *Quorum) Restart(n txnproto.NodeID) error {
	return fmt.Errorf("restart of %v: the quorum model has no faults; use raft", n)
}

// Close implements Replication.
func (q *Quorum) Close() error { return nil }

// Stats implements Replication.
func (q *Quorum) Stats() ReplicationStats { return q.stats }

// ResetStats implements Replication.
func (q *Quorum) ResetStats() { q.stats = ReplicationStats{} }
