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
