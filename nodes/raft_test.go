package nodes

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"interleave/sim/rng"
	"interleave/sim/vtime"
	"interleave/txnproto"
)

func TestRaftCommitTakesDiskNetworkDiskNetwork(t *testing.T) {
	const disk, net = 130 * time.Microsecond, 250 * time.Microsecond
	for _, c := range []struct {
		replicas int
		want     time.Duration
	}{{1, disk}, {3, 2*disk + 2*net}, {5, 2*disk + 2*net}} {
		sc := raftScenario{
			shards: 1, replicas: c.replicas, nodes: 5, clients: 1, requests: 50, seed: 1,
			think: time.Millisecond, latency: rng.Constant(net), sync: rng.Constant(disk),
		}
		res := sc.run(t, nil)
		for i, l := range res.latencies {
			if l != c.want {
				t.Errorf("%d replicas: commit %d took %v, want %v", c.replicas, i, l, c.want)
			}
		}
		if res.acked != 50 {
			t.Errorf("%d replicas: %d of 50 acknowledged", c.replicas, res.acked)
		}
	}
}

func TestRaftRepeats(t *testing.T) {
	first := lan().run(t, nil)
	if first.acked != 1500 || first.stats.Entries != 1500 || first.stats.Elections != 0 {
		t.Errorf("%+v", first.stats)
	}
	for range 2 {
		if again := lan().run(t, nil); again.digest != first.digest {
			t.Errorf("digest %s, then %s", first.digest, again.digest)
		}
	}
}

// faulty is lan with crashes: leader, follower, leader again, two nodes at
// once, and a node that crashes before it has caught up.
func faulty() raftScenario {
	sc := lan()
	sc.think = 3 * time.Millisecond
	sc.requests = 3500
	sc.election = 20 * time.Millisecond
	for _, f := range []raftFault{
		{at: 100, node: -1}, {at: 180, restart: true, node: -3}, // a leader
		{at: 230, node: -2}, {at: 240, restart: true, node: -3}, // a follower, for a moment
		{at: 241, node: -1}, {at: 242, restart: true, node: -3}, // a leader, too short for an election
		{at: 350, node: -1}, {at: 351, node: -2}, {at: 352, node: 0}, {at: 420, restart: true, node: -3}, // two or three
		{at: 421, node: 1}, {at: 425, restart: true, node: -3}, // while it catches up
		{at: 500, node: 2}, {at: 500, restart: true, node: -3}, // at once
		{at: 560, node: 0}, {at: 590, node: 1}, {at: 600, restart: true, node: 0}, // the old leader is needed
		{at: 680, restart: true, node: -3},
	} {
		f.at *= time.Millisecond
		sc.faults = append(sc.faults, f)
	}
	sc.until = 750e6
	return sc
}

func TestRaftLosesNothingInCrashes(t *testing.T) {
	res := faulty().run(t, nil)
	if res.stats.Elections == 0 || res.stats.Leaderless == 0 || res.doubtful == 0 {
		t.Errorf("the scenario's crashes did nothing: %+v", res.stats)
	}
}

func TestRaftFiveReplicasCrash(t *testing.T) {
	sc := faulty()
	sc.nodes, sc.replicas, sc.shards, sc.requests = 5, 5, 2, 1500
	res := sc.run(t, nil)
	if res.stats.Elections == 0 {
		t.Error("no election")
	}
}

// snappy is faulty with snapshots so often that a node that was down misses
// entries the others no longer have.
func snappy() raftScenario {
	sc := faulty()
	sc.snapshotEvery, sc.trailing = 200, 20
	return sc
}

func TestRaftSnapshots(t *testing.T) {
	res := snappy().run(t, nil)
	if res.stats.Snapshots == 0 {
		t.Error("no snapshot was written")
	}
	if res.transfers == 0 {
		t.Error("no node was sent a snapshot")
	}
}

func TestRaftSingleReplicaCrash(t *testing.T) {
	sc := faulty()
	sc.replicas = 1
	if res := sc.run(t, nil); res.stats.Leaderless == 0 {
		t.Error("the scenario's crashes did nothing")
	}
}

func TestRaftFilesAndMemoryAgree(t *testing.T) {
	for name, sc := range map[string]raftScenario{"lan": lan(), "snappy": snappy()} {
		memory := sc.run(t, nil)
		sc.dir = t.TempDir()
		files := sc.run(t, nil)
		if memory.digest != files.digest {
			t.Errorf("%s: digest %s in memory, %s on files", name, memory.digest, files.digest)
		}
	}
}

// TestRaftAnyOrder holds the claim that most stimuli come out the same in any
// order: with the goroutines of these running at once, the digest stays.
func TestRaftAnyOrder(t *testing.T) {
	for name, sc := range map[string]raftScenario{"lan": lan(), "snappy": snappy()} {
		plain := sc.run(t, nil)
		sc.shuffle = true
		if shuffled := sc.run(t, nil); shuffled.digest != plain.digest {
			t.Errorf("%s: digest %s, and %s shuffled", name, plain.digest, shuffled.digest)
		}
	}
}

// TestRaftFilesCanBeRead opens the data files of a run as another program would.
func TestRaftFilesCanBeRead(t *testing.T) {
	sc := lan()
	sc.dir = t.TempDir()
	res := sc.run(t, nil)
	files, err := os.ReadDir(sc.dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != sc.shards*sc.replicas {
		t.Errorf("%d files, want one for each of %d replicas", len(files), sc.shards*sc.replicas)
	}
	commits := 0
	for _, name := range []string{"s1-n2.db", "s2-n2.db", "s3-n2.db"} {
		commits += commitsIn(t, filepath.Join(sc.dir, name))
	}
	if commits != res.acked {
		t.Errorf("the files on n2 hold %d commits, want %d", commits, res.acked)
	}
}

func TestRaftFilesOfATryBefore(t *testing.T) {
	sc := lan()
	sc.dir, sc.requests = t.TempDir(), 100
	first := sc.run(t, nil)
	if _, err := newTestRaft(nil, func(c *RaftConfig) { c.DataDir = sc.dir }); err == nil {
		t.Error("the files of a run were taken for a new one's")
	}
	if err := RemoveRaftFiles(sc.dir, sc.shards, sc.replicas, sc.nodes); err != nil {
		t.Fatal(err)
	}
	if again := sc.run(t, nil); again.digest != first.digest {
		t.Errorf("digest %s, then %s in the same directory", first.digest, again.digest)
	}
}

// commitsIn counts the commits in a data file.
func commitsIn(t *testing.T, path string) (n int) {
	st, err := raftboltdb.New(raftboltdb.Options{
		Path: path, BoltOptions: &bbolt.Options{ReadOnly: true, Timeout: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	last, err := st.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= last; i++ {
		var l raft.Log
		if err := st.GetLog(i, &l); err != nil {
			t.Fatalf("%s: entry %d: %v", path, i, err)
		}
		var e Entry
		if l.Type == raft.LogCommand {
			if err := decodeCommand(l.Data, &e); err != nil {
				t.Fatalf("%s: entry %d: %v", path, i, err)
			}
			if e.Kind == EntryCommit {
				n++
			}
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRaftAgreesWithQuorum compares commit latencies with those of the model.
func TestRaftAgreesWithQuorum(t *testing.T) {
	sc := lan()
	sc.requests = 3000
	real := sc.run(t, nil).latencies
	sc.quorum = true
	model := sc.run(t, nil).latencies
	slices.Sort(real)
	slices.Sort(model)
	for _, q := range []float64{0.5, 0.99} {
		r, m := real[int(q*float64(len(real)))], model[int(q*float64(len(model)))]
		if off := float64(r-m) / float64(m); math.Abs(off) > 0.03 {
			t.Errorf("quantile %v: %v with hashicorp/raft, %v in the model: %.1f%% off", q, r, m, 100*off)
		}
	}
}

// panicHost's state machines panic.
type panicHost struct{ raftBed }

type panicMachine struct{ fakeMachine }

var errMachine = errors.New("machine broke its invariant")

func (panicMachine) Apply(uint64, *Entry) { panic(errMachine) }

func (*panicHost) Machine(txnproto.ShardID, txnproto.NodeID) StateMachine { return &panicMachine{} }

func (*panicHost) Lead(txnproto.ShardID, txnproto.NodeID, uint64) {}

// TestRaftMachinePanics holds that a panic of a state machine, which is on a
// goroutine of the library, reaches the caller of the loop with its stack.
func TestRaftMachinePanics(t *testing.T) {
	defer func() {
		err, _ := recover().(error)
		if err == nil || !strings.Contains(err.Error(), errMachine.Error()) || !strings.Contains(err.Error(), "panicMachine") {
			t.Errorf("panic %v, want the machine's and its stack", err)
		}
	}()
	_, _ = vtime.Run(func(b *vtime.Bubble) error {
		var cfg *RaftConfig
		r, err := newTestRaft(b, func(c *RaftConfig) { c.Host = &panicHost{}; cfg = c })
		if err != nil {
			return err
		}
		if err := r.Start(); err != nil {
			return err
		}
		cfg.Loop.RunUntil(1e9)
		r.Propose(0, 0, &Entry{Kind: EntryCommit})
		cfg.Loop.RunUntil(2e9)
		return errors.New("the machine did not panic")
	})
}

// TestRaftCloses closes a replication in the middle of work, with a node down
// and calls to it under way: no goroutine may be left, or the bubble panics.
func TestRaftCloses(t *testing.T) {
	for _, until := range []int64{0, 1e5, 5e6, 6e6, 7e6, 3e7, 2e8} {
		_, err := vtime.Run(func(b *vtime.Bubble) error {
			var cfg *RaftConfig
			r, err := newTestRaft(b, func(c *RaftConfig) { c.Host = &idleHost{}; cfg = c })
			if err != nil {
				return err
			}
			h := cfg.Host.(*idleHost)
			h.lead = func(s txnproto.ShardID, n txnproto.NodeID) {
				for range 100 {
					r.Propose(s, n, &Entry{Kind: EntryCommit})
				}
			}
			if err := r.Start(); err != nil {
				return err
			}
			cfg.Loop.RunUntil(5e6)
			if until > 5e6 {
				r.Crash(1)
				r.Crash(1) // again: nothing
			}
			cfg.Loop.RunUntil(5e6 + 1e6)
			if until > 6e6 {
				if err := r.Restart(1); err != nil {
					return err
				}
				r.Crash(0)
			}
			if until > 7e6 {
				cfg.Loop.RunUntil(7e6 + 1)
			}
			return errors.Join(r.Close(), r.Close())
		})
		if err != nil {
			t.Errorf("until %d: %v", until, err)
		}
	}
}

// idleHost does nothing but call lead.
type idleHost struct {
	lead func(txnproto.ShardID, txnproto.NodeID)
}

func (*idleHost) Machine(txnproto.ShardID, txnproto.NodeID) StateMachine {
	return &fakeMachine{txns: map[uint64]uint64{}}
}
func (*idleHost) Applied(Applied) {}
func (h *idleHost) Lead(s txnproto.ShardID, n txnproto.NodeID, _ uint64) {
	h.lead(s, n)
}
func (*idleHost) Lost(txnproto.ShardID, txnproto.NodeID) {}
