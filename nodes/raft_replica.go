package nodes

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"interleave/sim/event"
	"interleave/sim/rng"
	"interleave/sim/vtime"
	"interleave/txnproto"
)

// beyond is later than any run: what the library's timers are set to. Twice as
// long is still a Duration, which the library asks for.
const beyond = 100 * 365 * 24 * time.Hour

// raftMaxBatch is the most entries of one batch and of one message. The library
// takes up to one more than its MaxAppendEntries proposals at once; with no more
// than that waiting, a batch is never divided by chance.
const raftMaxBatch = quorumBatch

// instance is one life of a replica: the library's instance and what it was given.
type instance struct {
	raft  *raft.Raft
	trans *transport
	fsm   *raftFSM
	pipes []*pipeline           // the latest to each peer, by place
	gate  chan raft.RPCResponse // unbuffered; see apply
}

// replica is one replica of a shard: its stores, and its instance while its
// node is up.
type replica struct {
	logs  *raftLogs
	shard *raftShard
	node  txnproto.NodeID
	index int // in raftLogs.replicas
	place int // in raftShard.replicas
	name  string

	store *raftStore
	snaps *snapshots
	inst  *instance // nil: down

	// Disk writes of the instance, and what waits for them, in order.
	writes   uint64 // given to the disk
	syncs    uint64 // synced
	writeOps []int  // of each write under way: how many ops it makes durable
	letters  []letter

	spareNotes []note
	reported   uint64 // highest index that Applied was told
	snapAfter  uint64 // entries until the next snapshot
	lastSent   []sent // by place of the peer

	lead leading // raft_propose.go

	timer     event.Timer // election timeout
	armed     bool
	timeouts  *rng.Stream
	catchUpTo uint64 // restarted: applied up to here it has caught up; 0: not known yet
	behind    bool   // restarted, and has not caught up
}

func newReplica(r *raftLogs, sh *raftShard, node txnproto.NodeID, index int) *replica {
	name := fmt.Sprintf("%v-%v", sh.id, node)
	return &replica{
		logs: r, shard: sh, node: node, index: index, place: len(sh.replicas), name: name,
		store: newRaftStore(r.cfg.ValueBytes), snaps: &snapshots{},
		lastSent: make([]sent, r.cfg.Replicas),
		timeouts: r.cfg.Seed.Stream("raft/" + name + "/election"),
	}
}

// String names the replica in messages and is its address: s1-n2.
func (rep *replica) String() string { return rep.name }

// peer returns the replica of the same shard at an address.
func (rep *replica) peer(addr raft.ServerAddress) *replica {
	for _, p := range rep.shard.replicas {
		if p.name == string(addr) {
			return p
		}
	}
	panic(fmt.Sprintf("nodes: %v has no peer %q", rep, addr))
}

func (rep *replica) config() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(rep.name)
	c.Logger = hclog.NewNullLogger()
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = beyond, beyond, beyond
	c.CommitTimeout, c.SnapshotInterval = beyond, beyond
	c.MaxAppendEntries = raftMaxBatch
	c.BatchApplyCh = true
	c.TrailingLogs = rep.logs.cfg.TrailingLogs
	c.NoLegacyTelemetry = true
	return c
}

// open starts an instance on the replica's stores; the very first writes the
// group's configuration to them.
func (rep *replica) open(first bool) error {
	inst := &instance{pipes: make([]*pipeline, len(rep.shard.replicas)), gate: make(chan raft.RPCResponse)}
	inst.trans = newTransport(rep, inst)
	inst.fsm = &raftFSM{rep: rep, machine: rep.logs.cfg.Host.Machine(rep.shard.id, rep.node)}
	conf := rep.config()
	if first {
		var group raft.Configuration
		for _, p := range rep.shard.replicas {
			group.Servers = append(group.Servers, raft.Server{ID: raft.ServerID(p.name), Address: raft.ServerAddress(p.name)})
		}
		if err := raft.BootstrapCluster(conf, rep.store, rep.store, rep.snaps, inst.trans, group); err != nil {
			return fmt.Errorf("replica %v: %w", rep, err)
		}
	}
	if err := rep.store.fitTo(rep.snaps.index()); err != nil {
		return fmt.Errorf("replica %v: %w", rep, err)
	}
	rep.begin(vtime.AnyOrder)
	r, err := raft.NewRaft(conf, inst.fsm, rep.store, rep.store, rep.snaps, inst.trans)
	rep.settle()
	if err != nil {
		return fmt.Errorf("replica %v: %w", rep, err)
	}
	inst.raft, rep.inst = r, inst
	rep.snapAfter = rep.logs.cfg.SnapshotEvery
	return nil
}

// begin starts a stimulus for the replica's instance. Most of them come out the
// same whatever order its goroutines run in:
//
//   - A request reaching a follower: its main goroutine stores what there is to
//     store and answers, and hands what is committed to the goroutine of the
//     state machine. A snapshot is handed from one to the next likewise.
//   - A follower's success in a pipeline: the goroutine that reads the answers
//     notes it, the main one commits, the machine's applies. Nothing is sent.
//   - Proposals, of which the main goroutine finds all: it stores them, then tells
//     each peer's goroutine, and what these send is put in order by take.
//   - A follower's success outside a pipeline: the peer's goroutine may send more
//     before or after the main one has committed. The message is made to say the
//     commit index of afterwards by refresh.
//   - The end of a call that failed, and of the pause after it: each concerns one
//     peer's goroutine.
//   - The start of an instance and its end: nothing is said.
//
// In an election order matters. A new leader starts its peers' goroutines before
// it stores its no-op, and the first message may carry the no-op or not.
func (rep *replica) begin(o vtime.Order) { rep.logs.cfg.Bubble.Begin(o) }

// written makes durable what a start has written: it was on the disk before the
// node counts as up.
func (rep *replica) written() {
	_, ops, _ := rep.store.pending()
	rep.logs.fail(rep.store.sync(ops))
}

// settle lets the instance go as far as it can.
func (rep *replica) settle() { rep.logs.cfg.Bubble.Settle() }

// collect takes up what came of a stimulus: what was written goes to the disk,
// what is said goes to the network or waits for the disk, what was applied goes
// to the host. extra are letters beside the instance's own calls.
func (rep *replica) collect(extra ...letter) {
	rep.write()
	for _, l := range extra {
		rep.post(l)
	}
	for _, c := range rep.inst.trans.take() {
		rep.logs.place(c)
		c.identify()
		c.refresh()
		rep.post(letter{call: c, arg: rep.logs.arg(c)})
	}
	rep.saveSnapshot()
	n := rep.takeApplied()
	rep.watchState()
	rep.maybeSnapshot(n)
}

// write gives what the instance has written to the disk.
func (rep *replica) write() {
	bytes, ops, dirty := rep.store.pending()
	if rep.lead.prepaid {
		rep.logs.fail(rep.store.sync(ops))
		return
	}
	if !dirty {
		return
	}
	for _, n := range rep.writeOps {
		ops -= n
	}
	rep.writeOps = append(rep.writeOps, ops)
	rep.writes++
	rep.logs.cfg.Disks[rep.node].Write(bytes, rep.logs.hSynced, uint64(rep.index))
}

// synced is called when the disk has synced the oldest write under way.
func (rep *replica) synced() {
	n := rep.writeOps[0]
	rep.writeOps = rep.writeOps[:copy(rep.writeOps, rep.writeOps[1:])]
	rep.syncs++
	rep.logs.fail(rep.store.sync(n))
	k := 0
	for k < len(rep.letters) && rep.letters[k].after <= rep.syncs {
		rep.logs.send(rep.letters[k])
		k++
	}
	rep.letters = append(rep.letters[:0], rep.letters[k:]...)
}

// post sends l as soon as all that the replica has written is synced.
func (rep *replica) post(l letter) {
	if rep.syncs == rep.writes {
		rep.logs.send(l)
		return
	}
	l.after = rep.writes
	rep.letters = append(rep.letters, l)
}

// takeApplied tells the host what the instance has applied and returns how many
// entries that were.
func (rep *replica) takeApplied() int {
	notes, err := rep.inst.fsm.take(rep.spareNotes)
	if err != nil {
		panic(fmt.Errorf("nodes: at %v: state machine of %v: %w", rep.logs.loop.Now(), rep, err))
	}
	rep.spareNotes = notes
	for i := range notes {
		rep.applied(&notes[i])
	}
	if len(notes) > 0 && rep.logs.settled != nil {
		rep.logs.checkSettled()
	}
	return len(notes)
}

// maybeSnapshot asks the instance for a snapshot when n more applied entries
// make one due.
func (rep *replica) maybeSnapshot(n int) {
	if rep.logs.cfg.SnapshotEvery == 0 || rep.inst == nil {
		return
	}
	if rep.snapAfter > uint64(n) {
		rep.snapAfter -= uint64(n)
		return
	}
	rep.snapAfter = rep.logs.cfg.SnapshotEvery
	rep.begin(vtime.AnyOrder)
	f := rep.inst.raft.Snapshot()
	rep.settle()
	switch err := f.Error(); {
	case err == nil:
		rep.logs.stats.Snapshots++
	case errors.Is(err, raft.ErrNothingNewToSnapshot):
	default:
		panic(fmt.Sprintf("nodes: at %v: snapshot of %v: %v", rep.logs.loop.Now(), rep, err))
	}
	rep.collect()
}

// saveSnapshot puts a new snapshot into the data file, if there is one.
func (rep *replica) saveSnapshot() {
	s := rep.snaps
	s.mu.Lock()
	unsaved := s.unsaved
	s.unsaved = false
	s.mu.Unlock()
	if !unsaved || rep.store.file == nil {
		return
	}
	b, err := s.encode()
	if err == nil {
		err = rep.store.file.saveSnapshot(b)
	}
	rep.logs.fail(err)
}
