package nodes

import (
	"io"
	"time"

	"interleave/sim/event"
	"interleave/txnproto"
)

// Replication keeps every shard's log on the shard's replicas. Three stand
// behind it: raft (hashicorp/raft in virtual time), quorum (the same messages
// as plain events, a fixed leader) and none (one copy).
//
// Replica j of shard s stands on node (s+j) mod nodes, and replica 0 is the
// first leader, so leaders are spread over the nodes.
//
// The message pattern, which quorum and raft share: a leader gathers what is
// proposed while its previous batch is on the way to its disk; when that is
// synced it sends the batch to each follower and writes the next. A follower
// writes the batch to its disk and answers when it is synced. A batch is
// committed when a majority, the leader included, has it synced.
type Replication interface {
	// Start boots every replica and makes replica 0 of each shard its leader:
	// when the loop runs, ReplicationHost.Lead follows.
	Start() error
	// Propose appends e to shard's log at its leader. REQUIRES: node leads shard
	// (Lead was the last word about it). The replication owns e from now on.
	Propose(shard txnproto.ShardID, node txnproto.NodeID, e *Entry)
	// Crash stops the node at once: what its disk had not synced is lost, and it
	// hears and says nothing until Restart. ReplicationHost.Lost is called for the
	// shards it led before Crash returns.
	Crash(node txnproto.NodeID)
	// Restart brings a crashed node back from its stores.
	Restart(node txnproto.NodeID) error
	// Settle, called when nothing is proposed any more, makes every live replica
	// apply everything committed; done is called from the loop when they have.
	Settle(done func())
	// Close stops every replica and releases its files. The loop may be run by it.
	Close() error
	// Stats are the counters since the last ResetStats.
	Stats() ReplicationStats
	ResetStats()
}

// ReplicationHost is who uses a Replication. Its methods are called from the
// loop, never from another goroutine, but for the state machines: a replica's
// machine is touched by its replication at a time when the loop stands still.
type ReplicationHost interface {
	// Machine returns a fresh, empty state machine for a replica that starts.
	Machine(shard txnproto.ShardID, node txnproto.NodeID) StateMachine
	// Applied reports that the replica on node has applied e at index: at most once
	// per replica and index, in order of index within a replica. Of a follower that
	// applies what its leader has reported it need not be called.
	Applied(a Applied)
	// Lead reports that node leads shard and has applied everything that was
	// committed before it led. Followed by Lost before the next Lead.
	Lead(shard txnproto.ShardID, node txnproto.NodeID, term uint64)
	// Lost reports that node leads shard no more. What it proposed and has not
	// seen applied is in doubt: it may or may not be applied under the next leader.
	Lost(shard txnproto.ShardID, node txnproto.NodeID)
}

// Applied describes one application of an entry at one replica.
type Applied struct {
	Shard  txnproto.ShardID
	Node   txnproto.NodeID
	Leader bool // this node proposed the entry in its current leadership
	Index  uint64
	Entry  *Entry
	// SyncedAt is when the leader's own disk had the entry, and DiskShare the disk
	// time of that sync charged to it; set only when Leader.
	SyncedAt  event.Time
	DiskShare time.Duration
}

// StateMachine is one replica's replicated state.
type StateMachine interface {
	// Apply applies the entry at index and fills in the versions of its writes.
	Apply(index uint64, e *Entry)
	// Snapshot writes the whole state; Restore replaces the state by a written one.
	Snapshot(w io.Writer) error
	Restore(r io.Reader) error
}

// ReplicationStats are a replication's counters, over all shards.
type ReplicationStats struct {
	Entries    uint64        // proposed and committed
	Batches    uint64        // disk writes by leaders for them
	Elections  uint64        // leaders made after the first ones
	Leaderless time.Duration // summed over shards
	Snapshots  uint64
	Suspect    uint64 // stimuli that took so long by the wall clock that the run must be repeated
}
