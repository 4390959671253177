package nodes

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"interleave/sim/event"
	"interleave/sim/vtime"
	"interleave/txnproto"
)

// leading is what a replica keeps while its instance is in the leader state.
type leading struct {
	on        bool
	announced bool // the host was told
	term      uint64

	pending [][]byte // proposed, waiting for the previous batch's sync
	batch   [][]byte // on its way to the disk
	writing bool
	prepaid bool // what the instance writes now is on the disk already

	// Batches that the instance has and not yet applied, oldest first.
	synced []syncedBatch
}

// idle reports whether nothing the leader proposed is under way.
func (l *leading) idle() bool { return !l.writing && len(l.pending) == 0 && len(l.synced) == 0 }

// syncedBatch is a batch on the leader's disk.
type syncedBatch struct {
	left  int // entries not applied yet
	at    event.Time
	share time.Duration // of an entry
}

// Propose implements Replication.
func (r *raftLogs) Propose(shard txnproto.ShardID, node txnproto.NodeID, e *Entry) {
	rep := r.shards[shard].leader
	if rep == nil || rep.node != node || !rep.lead.announced {
		panic(fmt.Sprintf("nodes: at %v: proposal for %v at %v, which does not lead it", r.loop.Now(), shard, node))
	}
	rep.propose(encodeCommand(e))
	if r.cfg.Release != nil {
		r.cfg.Release(e)
	}
}

// proposeNoop appends an entry that does nothing, as the way to make the
// instance send: it carries the commit index, and calls a peer that failed.
func (rep *replica) proposeNoop() {
	rep.propose(encodeCommand(&Entry{Kind: EntryNoop}))
}

func (rep *replica) propose(b []byte) {
	rep.lead.pending = append(rep.lead.pending, b)
	if !rep.lead.writing {
		rep.startBatch()
	}
}

// startBatch puts what is pending on the disk. REQUIRES: something is, and no
// batch is on its way.
func (rep *replica) startBatch() {
	l := &rep.lead
	n := min(len(l.pending), raftMaxBatch)
	l.batch = append(l.batch[:0], l.pending[:n]...)
	k := copy(l.pending, l.pending[n:])
	clear(l.pending[k:])
	l.pending = l.pending[:k]
	l.writing = true
	bytes := 0
	for _, b := range l.batch {
		bytes += commandBytes(b, rep.logs.cfg.ValueBytes)
	}
	rep.logs.cfg.Disks[rep.node].Write(bytes, rep.logs.hBatch, uint64(rep.index))
}

// batchSynced gives the batch, which is on the disk, to the instance, and goes
// on with the next.
func (rep *replica) batchSynced() {
	l := &rep.lead
	l.writing = false
	if !l.on {
		return // deposed meanwhile: the batch is in no log
	}
	if len(l.batch) == 0 { // deposed, and leader again
		rep.startBatch()
		return
	}
	r := rep.logs
	share := r.cfg.Disks[rep.node].LastShare() / time.Duration(len(l.batch))
	l.synced = append(l.synced, syncedBatch{len(l.batch), r.loop.Now(), share})
	r.stats.Batches++
	l.prepaid = true
	rep.apply(l.batch)
	clear(l.batch)
	l.batch = l.batch[:0]
	rep.collect()
	l.prepaid = false
	if l.on && !l.writing && len(l.pending) > 0 {
		rep.startBatch()
	}
}

// apply gives a batch to the instance as one stimulus, which must find it whole
// to write and send it as one. A proposal more than one would find its way there
// while others are still being made, if the loop were preempted between them. So
// the instance's main goroutine is held meanwhile, by a message that it cannot
// answer.
func (rep *replica) apply(batch [][]byte) {
	inst := rep.inst
	held := len(batch) > 1
	if held {
		rep.begin(vtime.AnyOrder)
		inst.trans.consumer <- raft.RPC{RespChan: inst.gate} // it has no command: refused
		rep.settle()
	}
	rep.begin(vtime.AnyOrder)
	for _, b := range batch {
		// The future is not needed: the state machine says what was applied.
		inst.raft.Apply(b, 0)
	}
	if held {
		<-inst.gate
	}
	rep.settle()
}

// applied tells the host that the replica's instance has applied an entry.
func (rep *replica) applied(n *note) {
	r, l := rep.logs, &rep.lead
	a := Applied{Shard: rep.shard.id, Node: rep.node, Index: n.index, Entry: n.entry}
	if l.on && n.term == l.term {
		b := &l.synced[0]
		a.Leader, a.SyncedAt, a.DiskShare = true, b.at, b.share
		if b.left--; b.left == 0 {
			l.synced = l.synced[:copy(l.synced, l.synced[1:])]
		}
	}
	if n.entry.Kind == EntryNoop {
		if a.Leader {
			rep.noopApplied(n.index)
		}
		return
	}
	if a.Leader {
		r.stats.Entries++
	}
	if n.index > rep.reported { // not again after a restart
		rep.reported = n.index
		r.cfg.Host.Applied(a)
	}
}

// noopApplied is called at the leader when a no-op of its own is applied: with
// the first, so is everything that was committed before it led.
func (rep *replica) noopApplied(index uint64) {
	r, sh, l := rep.logs, rep.shard, &rep.lead
	if !l.announced {
		l.announced = true
		if sh.terms > 0 {
			r.stats.Elections++
		}
		sh.terms++
		if sh.leaderless != event.Never {
			r.stats.Leaderless += r.loop.Now().Sub(max(sh.leaderless, r.since))
			sh.leaderless = event.Never
		}
		r.cfg.Host.Lead(sh.id, rep.node, l.term)
	}
	if r.settled != nil && sh.settleAt == 0 {
		sh.settleAt = index
		rep.proposeNoop() // carries the news that the first is committed
	}
}
