package nodes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"interleave/sim/event"
	"interleave/sim/netsim"
	"interleave/sim/rng"
	"interleave/sim/station"
	"interleave/sim/vtime"
	"interleave/txnproto"
)

// RaftConfig is what a replication on hashicorp/raft needs. Fields without
// "default" are required.
type RaftConfig struct {
	Loop   *event.Loop
	Net    *netsim.Net     // node n is its site n
	Disks  []*station.Disk // the log disk of each node
	Host   ReplicationHost
	Bubble *vtime.Bubble // the run's; every method is to be called from its driver
	Seed   rng.Seed

	Shards, Replicas, Nodes int
	ValueBytes              int // payload of a row, in messages and on disk

	// DataDir is where each replica has a raft-boltdb file, s1-n2.db for the
	// replica of shard s1 on node n2; "" keeps logs and votes in memory.
	DataDir string

	// Release, when set, takes back an entry given to Propose.
	Release func(*Entry)

	// HeartbeatInterval is how often a leader is heard of at the least; default 100ms.
	HeartbeatInterval time.Duration
	// ElectionMin and ElectionMax bound an election timeout; default 1s and 2s.
	ElectionMin, ElectionMax time.Duration
	// CallTimeout is after how long a leader gives up its stream of messages to
	// a node that does not answer; default 500ms.
	CallTimeout time.Duration

	// SnapshotEvery is after how many applied entries a replica writes a
	// snapshot and shortens its log; 0 is never. TrailingLogs is how many
	// entries stay in the log then; default 1024.
	SnapshotEvery, TrailingLogs uint64
}

func (c *RaftConfig) defaults() {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&c.HeartbeatInterval, 100*time.Millisecond)
	set(&c.ElectionMin, time.Second)
	set(&c.ElectionMax, max(2*time.Second, 2*c.ElectionMin))
	set(&c.CallTimeout, 500*time.Millisecond)
	if c.TrailingLogs == 0 {
		c.TrailingLogs = 1024
	}
}

func (c *RaftConfig) validate() error {
	switch {
	case c.Nodes < 1:
		return fmt.Errorf("machines: %d: want at least 1", c.Nodes)
	case c.Shards < 1:
		return fmt.Errorf("shards: %d: want at least 1", c.Shards)
	case c.Replicas < 1 || c.Replicas > c.Nodes:
		return fmt.Errorf("replicas: %d: want 1 to the %d machines", c.Replicas, c.Nodes)
	case len(c.Disks) != c.Nodes:
		return fmt.Errorf("disks: %d: want one for each of %d machines", len(c.Disks), c.Nodes)
	case c.ValueBytes < 0:
		return fmt.Errorf("value-bytes: %d: want 0 or more", c.ValueBytes)
	case c.HeartbeatInterval <= 0:
		return fmt.Errorf("heartbeat-interval: %v: want more than 0s", c.HeartbeatInterval)
	case c.ElectionMin <= c.HeartbeatInterval:
		return fmt.Errorf("election-timeout: %v: want more than the heartbeat interval, %v", c.ElectionMin, c.HeartbeatInterval)
	case c.ElectionMax < c.ElectionMin:
		return fmt.Errorf("election-timeout: at most %v: want at least %v", c.ElectionMax, c.ElectionMin)
	case c.CallTimeout <= 0:
		return fmt.Errorf("call-timeout: %v: want more than 0s", c.CallTimeout)
	}
	return nil
}

// raftLogs is a Replication on hashicorp/raft, unmodified: one group a shard,
// with a real instance a replica. The library runs as goroutines in a bubble of
// package vtime, and everything it touches is the simulator's:
//
//	Propose ─ pending ─ log disk ─┐                     ┌─ applied ─ host
//	                              │   one stimulus      │
//	message ─── consumer channel ─┼─▶ hashicorp/raft ───┼─ store: unsynced writes ─ log disk
//	answer ──── waiting call ─────┘   (goroutines)      │                              │
//	   ▲                                                └─ outbox: calls, answers ─────┤ held until
//	   └───────────────────────────── netsim ◀─────────────────────────────────────────┘ synced
//
// A stimulus is one message, one answer or one batch of proposals for one
// instance. It reaches no other instance, as the transport only files what is
// sent; when the instance has settled, what came of it is taken up in an order
// that depends on what it is (collect), never on which goroutine came first.
//
// What the host hears. The library's own entries and no-ops take an index of the
// log and reach neither state machine nor host. A replica that is sent a
// snapshot is not told of the entries in it, nor, after a restart, again of
// those it applied before.
//
// Time. Every timer of the library is set beyond the run. Heartbeats and
// election timeouts are events here (raft_election.go) and act by the library's
// TimeoutNow call; votes, terms, replication, commitment, snapshots and restart
// from a store are the library's own. Of its timers only the pause before it
// calls a failed peer again matters, and only after a restart: then, and at no
// other time, the bubble's clock is moved to the loop's (raft_crash.go).
//
// Disks. What an instance says rests on what it has written. So what it sends
// and answers after a write leaves when the node's disk has synced the write,
// and a crash takes back what was not synced (raft_store.go). A leader's batch
// goes to the disk first and to the library when it is synced, so that with one
// replica too it is committed no sooner.
type raftLogs struct {
	cfg  RaftConfig
	loop *event.Loop

	shards   []raftShard
	replicas []*replica // replica j of shard s at s*Replicas+j
	onNode   [][]*replica
	up       []bool

	calls     []*call // under way; nil: free
	gens      []uint32
	freeCalls []uint32

	hSynced, hBatch, hRequest, hAnswer event.HandlerID
	hElection, hBreak, hKick, hSettle  event.HandlerID
	hStart                             event.HandlerID

	settled func() // Settle's, until it is called
	stats   ReplicationStats
	since   event.Time // start of the window of stats
	err     error      // the first failure of a data file
	closed  bool
}

// raftShard is what the replication knows about a shard as a whole.
type raftShard struct {
	id       txnproto.ShardID
	replicas []*replica
	// leader is the replica whose instance is in the leader state, nil when
	// there is none.
	leader     *replica
	terms      int        // leaders announced so far
	phase      event.Time // of the heartbeats
	ledSince   event.Time
	leaderless event.Time // since when no leader is announced; Never when there is one
	kicking    bool       // raft_crash.go
	settleAt   uint64     // Settle: what every replica is to apply; 0: not known
}

var _ Replication = (*raftLogs)(nil)

// NewRaft returns a replication on hashicorp/raft. It reports a field of cfg
// that is out of range, and a data directory that cannot be used.
func NewRaft(cfg RaftConfig) (Replication, error) {
	cfg.defaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &raftLogs{cfg: cfg, loop: cfg.Loop, onNode: make([][]*replica, cfg.Nodes), up: make([]bool, cfg.Nodes)}
	r.handle()
	r.shards = make([]raftShard, cfg.Shards)
	for s := range r.shards {
		sh := &r.shards[s]
		*sh = raftShard{id: txnproto.ShardID(s), leaderless: event.Never}
		key := cfg.Seed.Key(fmt.Sprintf("raft/%v/heartbeat", sh.id))
		sh.phase = event.Time(rng.Hash(key, 0) % uint64(cfg.HeartbeatInterval))
		for j := range cfg.Replicas {
			rep := newReplica(r, sh, txnproto.NodeID((s+j)%cfg.Nodes), len(r.replicas))
			sh.replicas = append(sh.replicas, rep)
			r.replicas = append(r.replicas, rep)
			r.onNode[rep.node] = append(r.onNode[rep.node], rep)
		}
	}
	if cfg.DataDir != "" {
		if err := r.openFiles(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *raftLogs) handle() {
	on := r.loop.Handle
	r.hStart = on("raft.start", func(uint64) { r.firstElections() })
	r.hSynced = on("raft.synced", func(i uint64) { r.replicas[i].synced() })
	r.hBatch = on("raft.batch-synced", func(i uint64) { r.replicas[i].batchSynced() })
	r.hRequest = on("raft.request", r.requestArrived)
	r.hAnswer = on("raft.answer", r.answerArrived)
	r.hElection = on("raft.election-timeout", func(i uint64) { r.replicas[i].electionTimeout() })
	r.hBreak = on("raft.call-timeout", r.callTimeout)
	r.hKick = on("raft.catch-up", func(s uint64) { r.kick(&r.shards[s]) })
	r.hSettle = on("raft.settle", func(s uint64) { r.settleStep(&r.shards[s]) })
}

// RemoveRaftFiles removes the data files of a run from its data directory: a run
// that is done over must not find those of the try before.
func RemoveRaftFiles(dir string, shards, replicas, nodes int) error {
	for s := range shards {
		for j := range replicas {
			path := dataFile(dir, txnproto.ShardID(s), txnproto.NodeID((s+j)%nodes))
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("data-dir: %s: cannot be cleared: %w", dir, err)
			}
		}
	}
	return nil
}

func dataFile(dir string, s txnproto.ShardID, n txnproto.NodeID) string {
	return filepath.Join(dir, fmt.Sprintf("%v-%v.db", s, n))
}

// openFiles makes the data directory and a file in it for every replica.
func (r *raftLogs) openFiles() error {
	dir := r.cfg.DataDir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("data-dir: %s: cannot be made: %w", dir, err)
	}
	old, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("data-dir: %s: cannot be read: %w", dir, err)
	}
	for _, f := range old {
		if strings.HasSuffix(f.Name(), ".db") {
			return fmt.Errorf("data-dir: %s: holds %s of another run: want a directory without .db files", dir, f.Name())
		}
	}
	for _, rep := range r.replicas {
		if err := rep.store.openFile(dataFile(dir, rep.shard.id, rep.node)); err != nil {
			for _, o := range r.replicas {
				_ = o.store.closeFile() // the first error says what is wrong
			}
			return fmt.Errorf("data-dir: %s: cannot be written: %w", dir, err)
		}
	}
	return nil
}

// Start implements Replication.
func (r *raftLogs) Start() error {
	for n := range r.up {
		r.up[n] = true
	}
	for _, rep := range r.replicas {
		if err := rep.open(true); err != nil {
			return err
		}
		rep.written()
	}
	r.loop.After(0, r.hStart, 0)
	return nil
}

// Close implements Replication.
func (r *raftLogs) Close() error {
	if r.closed {
		return r.err
	}
	r.closed = true
	for _, rep := range r.replicas {
		rep.disarm()
		if rep.inst != nil {
			rep.stop()
		}
	}
	for _, rep := range r.replicas {
		r.fail(rep.store.closeFile())
	}
	return r.err
}

// fail keeps the first failure of a data file. The run goes on, as durability is
// the model's business, and Close reports it.
func (r *raftLogs) fail(err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("data-dir: %s: %w", r.cfg.DataDir, err)
	}
}

// Stats implements Replication.
func (r *raftLogs) Stats() ReplicationStats {
	s := r.stats
	s.Suspect = r.cfg.Bubble.Report().Suspect
	for i := range r.shards {
		if from := r.shards[i].leaderless; from != event.Never {
			s.Leaderless += r.loop.Now().Sub(max(from, r.since))
		}
	}
	return s
}

// ResetStats implements Replication.
func (r *raftLogs) ResetStats() {
	r.stats = ReplicationStats{}
	r.since = r.loop.Now()
	// A suspect stimulus spoils the run whenever it was, so it stays counted.
}
