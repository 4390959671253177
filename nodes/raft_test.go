package nodes

import (
	"testing"
	"time"

	"interleave/sim/rng"
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
	for range 3 {
		if again := lan().run(t, nil); again.digest != first.digest {
			t.Errorf("digest %s, then %s", first.digest, again.digest)
		}
	}
	t.Logf("%+v %v", first.stats, first.report)
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
	t.Logf("acked %d doubtful %d %+v %+v end %v", res.acked, res.doubtful, res.stats, res.report, res.end)
}

func TestRaftFiveReplicasCrash(t *testing.T) {
	sc := faulty()
	sc.nodes, sc.replicas, sc.shards, sc.requests = 5, 5, 2, 3000
	res := sc.run(t, nil)
	if res.stats.Elections == 0 {
		t.Error("no election")
	}
	t.Logf("acked %d doubtful %d %+v %+v end %v", res.acked, res.doubtful, res.stats, res.report, res.end)
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
	t.Logf("acked %d doubtful %d %+v %+v end %v", res.acked, res.doubtful, res.stats, res.report, res.end)
}

func TestRaftSingleReplicaCrash(t *testing.T) {
	sc := faulty()
	sc.replicas = 1
	res := sc.run(t, nil)
	t.Logf("acked %d doubtful %d %+v %+v end %v", res.acked, res.doubtful, res.stats, res.report, res.end)
}

func TestRaftFilesAndMemoryAgree(t *testing.T) {
	for name, sc := range map[string]raftScenario{"lan": lan(), "faulty": faulty(), "snappy": snappy()} {
		memory := sc.run(t, nil)
		sc.dir = t.TempDir()
		files := sc.run(t, nil)
		if memory.digest != files.digest {
			t.Errorf("%s: digest %s in memory, %s on files", name, memory.digest, files.digest)
		}
		t.Logf("%s %+v", name, files.report)
	}
}

// TestRaftAnyOrder holds the claim that most stimuli come out the same in any
// order: with the goroutines of these running at once, the digest stays.
func TestRaftAnyOrder(t *testing.T) {
	for name, sc := range map[string]raftScenario{"lan": lan(), "faulty": faulty(), "snappy": snappy()} {
		plain := sc.run(t, nil)
		sc.shuffle = true
		if shuffled := sc.run(t, nil); shuffled.digest != plain.digest {
			t.Errorf("%s: digest %s, and %s shuffled", name, plain.digest, shuffled.digest)
		}
	}
}
