//go:build slow

package nodes

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"interleave/sim/rng"
)

// fromEnv is a number from the environment, for longer runs by hand.
func fromEnv(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// TestRaftRepeatsOften runs one scenario with crashes many times. A run with a
// suspect stimulus may differ; what is to be seen is that no other does, and how
// many are suspect.
func TestRaftRepeatsOften(t *testing.T) {
	n := fromEnv("RAFT_RUNS", 100)
	for name, sc := range map[string]raftScenario{"lan": lan(), "snappy": snappy()} {
		var first string
		suspect, differ := 0, 0
		for range n {
			res := sc.run(t, nil)
			if res.report.Suspect > 0 {
				suspect++
				if first != "" && res.digest != first {
					differ++
				}
				continue
			}
			if first == "" {
				first = res.digest
			}
			if res.digest != first {
				t.Errorf("%s: digest %s, then %s without a suspect stimulus", name, first, res.digest)
			}
		}
		t.Logf("%s: digest %s, %d runs, %d with a suspect stimulus, of which %d differ", name, first, n, suspect, differ)
	}
}

// random is a scenario whose size, speed and crashes come from a seed.
func random(seed int) raftScenario {
	st := rng.Seed(seed).Stream("scenario")
	pick := func(n uint64) int { return int(st.Uint64n(n)) }
	ms := func(lo, spread int) time.Duration {
		return time.Duration(lo)*time.Microsecond + time.Duration(st.Uint64n(uint64(spread)*1000))
	}
	sc := lan()
	sc.seed = rng.Seed(seed)
	sc.replicas = []int{1, 3, 3, 3, 5}[pick(5)]
	sc.nodes = sc.replicas + pick(3)
	sc.shards = 1 + pick(4)
	sc.clients = 1 + pick(30)
	sc.requests = 600
	sc.think = ms(100, 10000)
	sc.latency = rng.Exponential(ms(50, 3000))
	sc.sync = rng.Exponential(ms(20, 2000))
	sc.election = ms(8000, 20000)
	if pick(2) == 0 {
		sc.snapshotEvery, sc.trailing = uint64(10+pick(60)), uint64(1+pick(20))
	}
	at := ms(0, 30000)
	for range 3 + pick(12) {
		sc.faults = append(sc.faults, raftFault{at: at, restart: pick(2) == 0, node: pick(uint64(sc.nodes))})
		at += []time.Duration{0, ms(0, 300), ms(0, 4000), ms(0, 60000)}[pick(4)]
	}
	at += ms(0, 40000)
	sc.faults = append(sc.faults, raftFault{at: at, restart: true, node: -3})
	sc.until = 0
	return sc
}

// TestRaftRandomFaults runs random scenarios, each twice, the second time with the
// goroutines of AnyOrder stimuli running at once, and some a third time on files.
func TestRaftRandomFaults(t *testing.T) {
	elections, transfers, doubtful := uint64(0), uint64(0), 0
	from := fromEnv("RAFT_SEED", 1)
	for seed := from; seed < from+fromEnv("RAFT_RUNS", 100); seed++ {
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			sc := random(seed)
			defer func() {
				if t.Failed() {
					t.Logf("%+v", sc)
				}
			}()
			res := sc.run(t, nil)
			sc.shuffle = true
			if again := sc.run(t, nil); again.digest != res.digest && again.report.Suspect+res.report.Suspect == 0 {
				t.Errorf("digest %s, and %s shuffled", res.digest, again.digest)
			}
			if seed%5 == 0 {
				sc.shuffle, sc.dir = false, t.TempDir()
				if again := sc.run(t, nil); again.digest != res.digest && again.report.Suspect+res.report.Suspect == 0 {
					t.Errorf("digest %s, and %s on files", res.digest, again.digest)
				}
			}
			elections += res.stats.Elections
			transfers += res.transfers
			doubtful += res.doubtful
		})
		if !ok {
			break
		}
	}
	t.Logf("%d elections, %d messages of state transfer, %d requests in doubt", elections, transfers, doubtful)
	if elections == 0 || doubtful == 0 {
		t.Error("the faults did nothing")
	}
}
