package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"interleave/reports"
	"interleave/sim"
	_ "interleave/txnproto/broken"
)

// specOf makes the runs of "name=value" settings.
func specOf(t *testing.T, settings ...string) []sim.RunSpec {
	t.Helper()
	s := sim.NewSpec()
	for _, kv := range settings {
		name, value, _ := strings.Cut(kv, "=")
		if err := s.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := s.Expand()
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

func runOne(t *testing.T, spec sim.RunSpec) *reports.Result {
	t.Helper()
	res, err := sim.Run(context.Background(), spec, sim.Options{})
	if err != nil {
		t.Fatalf("%s: %v", spec.Command(), err)
	}
	return res
}

// mustBeOK fails with the command that repeats the run.
func mustBeOK(t *testing.T, res *reports.Result) {
	t.Helper()
	if res.Verdict != reports.VerdictOK {
		t.Fatalf("verdict %s: %s\nrepeat it: %s", res.Verdict, res.Why, res.Command)
	}
}

var protocols = []string{"2pl", "2pl-basic", "2pl-nowait", "2pl-ordered", "2pl-timeout", "2pl-waitdie", "2pl-woundwait", "to", "to-thomas", "to-strict", "mvto", "rc", "si", "ssi", "mv2pl", "occ", "occ-parallel", "occ-forward", "occ-version", "silo", "tictoc", "calvin"}

func TestEveryProtocolKeepsItsPromise(t *testing.T) {
	workloads := [][]string{
		{"workload=ycsb", "keys=100", "theta=0.9", "distribution=zipfian", "ops=6"},
		{"workload=ycsb", "keys=50", "distribution=uniform", "ops=4", "scan=0.3", "insert=0.2", "update=0.2", "workload-param=delete=0.1", "workload-param=scan-length-max=8"},
		{"workload=bank", "keys=30", "distribution=uniform", "workload-param=audit=0.1"},
		{"workload=bank", "keys=30", "distribution=uniform", "workload-param=access=read"},
	}
	for _, protocol := range protocols {
		for _, replication := range []string{"none", "quorum", "raft"} {
			for i, w := range workloads {
				t.Run(fmt.Sprintf("%s/%s/%d", protocol, replication, i), func(t *testing.T) {
					requests := "600"
					if replication == "raft" {
						requests = "150"
					}
					spec := specOf(t, append([]string{"protocol=" + protocol, "replication=" + replication, "clients=12", "requests=" + requests, "warmup=10ms"}, w...)...)[0]
					first := runOne(t, spec)
					if protocol == "rc" && strings.HasSuffix(w[len(w)-1], "access=read") {
						// Reading a balance and then writing it is what read committed does not protect.
						if first.Verdict != reports.VerdictInvariant || fmt.Sprint(first.Isolation.Found) != "read-committed" {
							t.Fatalf("verdict %s (%s), found %v; want lost updates", first.Verdict, first.Why, first.Isolation.Found)
						}
					} else {
						mustBeOK(t, first)
					}
					if first.Committed == 0 {
						t.Fatal("nothing was committed")
					}
					if again := runOne(t, spec); again.Digest != first.Digest {
						t.Errorf("digests differ: %s and %s\nrepeat it: %s", first.Digest, again.Digest, first.Command)
					}
				})
			}
		}
	}
}

// TestBrokenProtocolsAreCaught is what makes a green checker mean something.
func TestBrokenProtocolsAreCaught(t *testing.T) {
	cases := []struct {
		protocol string
		settings []string
	}{
		{"broken-2pl-early-release", []string{"keys=10"}},
		{"broken-2pl-no-read-locks", []string{"keys=10"}},
		{"broken-2pl-basic-one-phase", []string{"keys=10"}},
		{"broken-2pl-no-range-locks", []string{"keys=20", "ops=4", "scan=0.4", "insert=0.4", "update=0.1", "workload-param=scan-length-max=64"}},
		{"broken-to-no-check", []string{"keys=10"}},
		{"broken-to-repeats-timestamps", []string{"keys=10"}},
		{"broken-occ-skips-read-set", []string{"keys=10"}},
		{"broken-forward-skips-readers", []string{"keys=10"}},
		{"broken-silo-skips-reads", []string{"keys=10"}},
		{"broken-tictoc-skips-reads", []string{"keys=10"}},
		{"broken-mvto-no-read-check", []string{"keys=10"}},
		{"broken-si-last-updater", []string{"keys=10"}},
		{"broken-si-no-wait", []string{"keys=10"}},
		{"broken-si-no-wait", []string{"keys=10", "timestamps=clock", "clock-skew=2ms"}},
		{"broken-ssi-no-pivot", []string{"keys=10"}},
		{"broken-calvin-out-of-turn", []string{"keys=10"}},
	}
	for _, c := range cases {
		t.Run(c.protocol, func(t *testing.T) {
			spec := specOf(t, append([]string{"protocol=" + c.protocol, "replication=quorum", "distribution=uniform", "clients=12", "ops=4", "requests=800"}, c.settings...)...)[0]
			res := runOne(t, spec)
			if res.Verdict != reports.VerdictIsolation {
				t.Fatalf("verdict %s (%s), want isolation: the checker has missed it", res.Verdict, res.Why)
			}
			if len(res.Isolation.Anomalies) == 0 || len(res.Isolation.Anomalies[0].Cycle) == 0 {
				t.Fatalf("no anomaly is explained: %+v", res.Isolation)
			}
		})
	}
}

// TestQuorumIsCalibrated holds the model to the real thing: without faults the
// median and the p99 latency agree within 5 %.
func TestQuorumIsCalibrated(t *testing.T) {
	latencies := map[string]reports.Latency{}
	for _, replication := range []string{"raft", "quorum"} {
		spec := specOf(t, "protocol=2pl", "replication="+replication, "distribution=uniform", "keys=1000000", "clients=16", "ops=4", "requests=3000")[0]
		res := runOne(t, spec)
		mustBeOK(t, res)
		latencies[replication] = res.Latency
	}
	within := func(what string, raft, quorum int64) {
		if math.Abs(float64(quorum-raft)) > 0.05*float64(raft) {
			t.Errorf("%s: raft %v, quorum %v", what, time.Duration(raft), time.Duration(quorum))
		}
	}
	within("p50", latencies["raft"].P50NS, latencies["quorum"].P50NS)
	within("p99", latencies["raft"].P99NS, latencies["quorum"].P99NS)
}

// TestSlowIsNotStalled has requests that take most of a minute each, or of an hour
// where their programs pause, so that those under way at the end take longer than
// the patience of a run.
func TestSlowIsNotStalled(t *testing.T) {
	for _, setting := range []string{"loss=0.5", "disk-bandwidth=1kB", "workload-param=op-think=exp:2m"} {
		mustBeOK(t, runOne(t, specOf(t, "protocol=2pl", "replication=quorum", "distribution=uniform", "requests=20", setting)[0]))
	}
}

// TestLateCrashIsSaid plans a crash for after the end of the run.
func TestLateCrashIsSaid(t *testing.T) {
	for crash, late := range map[string]bool{"n1@1h": true, "n1@30ms+1s": false} {
		r := runOne(t, specOf(t, "protocol=2pl", "distribution=uniform", "requests=100", "crash="+crash)[0])
		mustBeOK(t, r)
		if said := len(r.Notes) == 1 && strings.Contains(r.Notes[0], "the crash of n1 was planned for 1h after"); said != late {
			t.Errorf("crash=%s: notes %q", crash, r.Notes)
		}
	}
}

// TestBrokenInvariantIsExplained reads balances without locking them, at a level that
// lets another transfer come between.
func TestBrokenInvariantIsExplained(t *testing.T) {
	for protocol, want := range map[string]string{"rc": "rc promises read-committed", "2pl": ""} {
		r := runOne(t, specOf(t, "protocol="+protocol, "replication=quorum", "workload=bank", "workload-param=access=read", "distribution=uniform", "keys=20", "requests=500")[0])
		if want == "" {
			mustBeOK(t, r)
		} else if r.Verdict != reports.VerdictInvariant || !strings.Contains(r.Why, want) {
			t.Errorf("%s: verdict %s: %s", protocol, r.Verdict, r.Why)
		}
	}
}

// TestWithoutLeaderIsSaid loses the majority for good.
func TestWithoutLeaderIsSaid(t *testing.T) {
	r := runOne(t, specOf(t, "protocol=2pl", "distribution=uniform", "crash=n1@110ms,n2@120ms")[0])
	if r.Verdict != reports.VerdictStalled || !strings.Contains(r.Why, "a shard has no leader") {
		t.Errorf("verdict %s: %s", r.Verdict, r.Why)
	}
}

// TestSavepointsKeepThePromise goes back to savepoints on few keys: what was undone
// must not hide what others did to the same rows meanwhile.
func TestSavepointsKeepThePromise(t *testing.T) {
	for _, protocol := range protocols {
		for seed := range 8 {
			mustBeOK(t, runOne(t, specOf(t, "protocol="+protocol, "replication=none", "distribution=uniform", "keys=3", "ops=3", "clients=4",
				"shards=1", "machines=1", "replicas=1", "workload-param=undo=0.5", "requests=60", "warmup=0s", fmt.Sprint("seed=", seed))[0]))
		}
	}
}

// TestNothingHappensInNoTime has lists in its result, be they empty.
func TestNothingHappensInNoTime(t *testing.T) {
	r := runOne(t, specOf(t, "protocol=2pl", "replication=none", "distribution=uniform", "duration=1ns", "warmup=0s")[0])
	mustBeOK(t, r)
	if res := r.Resources; res.MessageCount != 0 || res.Messages == nil || len(res.Stations) != 6 {
		t.Errorf("%d messages, %v, %d stations", res.MessageCount, res.Messages, len(res.Stations))
	}
}

// TestRestartedReplicaGetsAll has messages that take so long that more entries wait
// for a restarted replica than go into one of them, and a client that adds no more.
func TestRestartedReplicaGetsAll(t *testing.T) {
	for _, seed := range []string{"14", "390294"} {
		mustBeOK(t, runOne(t, specOf(t, "protocol=2pl", "workload=bank", "distribution=uniform", "keys=20", "clients=1", "requests=50", "warmup=10ms",
			"shards=7", "replicas=2", "loss=0.1", "crash=n2@421ms+257ms,n3@266ms+521ms", "seed="+seed)[0]))
	}
}

// TestRollingBackIsNoWaste has transfers from accounts that are soon empty.
func TestRollingBackIsNoWaste(t *testing.T) {
	r := runOne(t, specOf(t, "protocol=2pl", "replication=quorum", "workload=bank", "workload-param=initial=1", "distribution=uniform", "clients=1", "requests=300")[0])
	mustBeOK(t, r)
	if r.RolledBack == 0 || r.AbortedAttempts != 0 || r.WastedWork != 0 {
		t.Errorf("%d rolled back, %d attempts aborted, wasted work %v", r.RolledBack, r.AbortedAttempts, r.WastedWork)
	}
}

// TestLivelockIsSaid has two transactions that time out on each other for ever:
// they wait from the same time on, and what is random in their retries is shorter
// than a message's way.
func TestLivelockIsSaid(t *testing.T) {
	r := runOne(t, specOf(t, "protocol=2pl-timeout", "replication=quorum", "network=three-zones", "distribution=zipfian", "keys=50", "shards=2",
		"clients=2", "rate=400", "max-open=50", "retry=fixed", "workload-param=undo=0.2", "warmup=10ms", "requests=200", "cpus=1", "cpu-op=300µs")[0])
	if r.Verdict != reports.VerdictStalled || !strings.Contains(r.Why, "attempts were aborted, most for lock-timeout: a livelock") {
		t.Errorf("verdict %s: %s", r.Verdict, r.Why)
	}
}

// TestDemonstrationsHoldTheLaws has clients that run out of requests long before the
// end of the window.
func TestDemonstrationsHoldTheLaws(t *testing.T) {
	for _, setting := range []string{"warmup=10ms", "duration=500ms"} {
		for _, protocol := range []string{"2pl", "calvin"} {
			mustBeOK(t, runOne(t, specOf(t, "protocol="+protocol, "workload=two-transfers", "replication=none", setting)[0]))
		}
	}
}

// TestInterruptedInTheDrain ends the run from outside when its duration has passed
// and commits are still under way.
func TestInterruptedInTheDrain(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	spec := specOf(t, "protocol=2pl", "replication=quorum", "distribution=uniform", "duration=200ms")[0]
	res, err := sim.Run(ctx, spec, sim.Options{Progress: func(done, all int64) {
		if done == all {
			cancel()
		}
	}})
	if !errors.Is(err, sim.ErrInterrupted) {
		t.Fatalf("error %v, want %v", err, sim.ErrInterrupted)
	}
	if res.Verdict != reports.VerdictCutShort || !strings.Contains(res.Why, "came to its end") {
		t.Errorf("verdict %s: %s", res.Verdict, res.Why)
	}
}

// TestNoMoreWaitsThanOperations has windows in which nearly all that happens is the
// end of a wait, some for a prepare.
func TestNoMoreWaitsThanOperations(t *testing.T) {
	for _, settings := range [][]string{
		{"protocol=2pl", "clients=100", "replication=quorum", "network=five-regions", "machines=5", "requests=100"},
		{"protocol=2pl-basic", "param=recoverable=true", "replication=quorum", "workload-param=rollback=0.3", "requests=300", "keys=5", "ops=3"},
		{"protocol=calvin", "clients=1", "replication=none", "requests=100"},
		{"protocol=to-strict", "replication=quorum", "requests=300"},
	} {
		r := runOne(t, specOf(t, append([]string{"workload=ycsb", "distribution=uniform", "keys=1", "ops=1", "workload-param=update=1"}, settings...)...)[0])
		mustBeOK(t, r)
		if r.LockWaits == 0 || r.LockWaits > r.Operations || r.BlockingRatio != float64(r.LockWaits)/float64(r.Operations) {
			t.Errorf("%s: %d waits of %d operations, blocking ratio %v", r.Command, r.LockWaits, r.Operations, r.BlockingRatio)
		}
	}
}

// TestNoCommitNoStarvation has programs that all roll back: nobody waits long, though
// there is no latency to compare with.
func TestNoCommitNoStarvation(t *testing.T) {
	r := runOne(t, specOf(t, "protocol=2pl", "replication=quorum", "distribution=uniform", "requests=500", "workload-param=rollback=1")[0])
	mustBeOK(t, r)
	if r.Committed != 0 || r.RolledBack != 500 || r.Unfinished == 0 || r.StarvedCount != 0 {
		t.Errorf("%d committed, %d rolled back, %d unfinished, %d starved", r.Committed, r.RolledBack, r.Unfinished, r.StarvedCount)
	}
	if want := float64(r.AbortedAttempts) / float64(max(r.AbortedAttempts, 1)); r.AbortRatio != want {
		t.Errorf("abort ratio %v with %d aborted of those that did not roll back, want %v", r.AbortRatio, r.AbortedAttempts, want)
	}
	var table strings.Builder
	if err := reports.WriteTable(&table, []*reports.Result{r}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "no request committed in the window") {
		t.Errorf("the report:\n%s", &table)
	}
}

// TestFiguresFollowFromEachOther works out figures from others, in a run whose
// window opens while the disk is busy for attempts that commit in it.
func TestFiguresFollowFromEachOther(t *testing.T) {
	for _, protocol := range []string{"2pl", "to", "occ"} {
		r := runOne(t, specOf(t, "protocol="+protocol, "distribution=zipfian", "shards=4", "replicas=1", "machines=1", "replication=quorum", "requests=400")[0])
		mustBeOK(t, r)
		if want := float64(r.LockWaits) / float64(r.Operations); r.BlockingRatio != want {
			t.Errorf("%s: blocking ratio %v, want %v", protocol, r.BlockingRatio, want)
		}
		if want := float64(r.AbortedAttempts) / float64(r.AbortedAttempts+r.Committed); r.AbortRatio != want {
			t.Errorf("%s: abort ratio %v, want %v", protocol, r.AbortRatio, want)
		}
		var aborts uint64
		for _, n := range r.Aborts { // order: a sum
			aborts += n
		}
		if aborts != r.AbortedAttempts {
			t.Errorf("%s: the reasons sum to %d, want %d", protocol, aborts, r.AbortedAttempts)
		}
		for _, s := range r.Resources.Stations {
			if s.Useful < 0 || s.Useful > s.Utilisation || s.Utilisation > 1 {
				t.Errorf("%s: %s is busy %v, %v usefully", protocol, s.Name, s.Utilisation, s.Useful)
			}
		}
	}
}

// TestAloneNothingWaits checks a single client without replication against
// arithmetic by hand: with constant times, every request takes the same.
func TestAloneNothingWaits(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			spec := specOf(t, "protocol="+protocol, "replication=none", "distribution=zipfian", "theta=1.2", "clients=1", "shards=1", "machines=1", "replicas=1",
				"ops=3", "read=0.5", "update=0.5", "cpu-op=constant:20us", "cpu-commit=constant:30us", "fsync=constant:500us", "disk-bandwidth=0", "requests=200", "warmup=0s")[0]
			res := runOne(t, spec)
			mustBeOK(t, res)
			if res.AbortedAttempts != 0 || (res.LockWaits != 0) != (protocol == "calvin") || (res.Breakdown[3] != 0) != (protocol == "calvin") {
				t.Errorf("alone, yet %d aborts, %d waits, and %v of waiting", res.AbortedAttempts, res.LockWaits, time.Duration(res.Breakdown[3]))
			}
			// Three operations and a commit are served by an idle processor; whoever
			// wrote syncs the log once.
			perRequest := 3*20*time.Microsecond + 30*time.Microsecond
			if protocol == "2pl-ordered" {
				perRequest += 3 * 20 * time.Microsecond // the locks that it asks for beforehand
			}
			if protocol == "calvin" {
				perRequest += 20 * time.Microsecond // its place
			}
			if got, want := time.Duration(res.Breakdown[2]), time.Duration(res.Committed)*perRequest; got != want {
				t.Errorf("processor time %v, by hand %v", got, want)
			}
			if disk := time.Duration(res.Breakdown[4]); disk%(500*time.Microsecond) != 0 || disk == 0 {
				t.Errorf("disk time %v is no multiple of a sync", disk)
			}
			for _, p := range []int{1, 5, 6, 7, 8, 9, 10} {
				if res.Breakdown[p] != 0 {
					t.Errorf("part %d of the latency is %v, want nothing", p, res.Breakdown[p])
				}
			}
		})
	}
}

// TestAloneNobodyMeetsItself lets a single client roll back, wholly and to savepoints, on
// few rows. Whatever its messages overtake, it neither waits nor aborts because of itself.
func TestAloneNobodyMeetsItself(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			for _, settings := range [][]string{
				{"shards=1", "workload-param=rollback=0.5"},
				{"shards=3", "workload-param=rollback=0.5"},
				{"shards=3", "workload-param=rollback=0.5", "workload-param=undo=0.5", "scan=0.2", "insert=0.2"},
			} {
				spec := specOf(t, append([]string{
					"protocol=" + protocol, "replication=quorum", "distribution=uniform", "clients=1", "keys=10", "requests=200", "warmup=0s",
				}, settings...)...)[0]
				res := runOne(t, spec)
				mustBeOK(t, res)
				waits := uint64(0)
				if protocol == "calvin" {
					waits = 200 // each for the end of an epoch
				}
				if res.AbortedAttempts != 0 || res.LockWaits != waits || res.RolledBack == 0 {
					t.Errorf("%v: alone, yet %v aborts and %d waits in %d rollbacks\nrepeat it: %s", settings, res.Aborts, res.LockWaits, res.RolledBack, res.Command)
				}
			}
		})
	}
}

func TestTwoTransfers(t *testing.T) {
	res := runOne(t, specOf(t, "protocol=2pl", "workload=two-transfers", "replication=quorum")[0])
	mustBeOK(t, res)
	if res.Committed != 2 || res.Deadlocks != 1 || res.Aborts["deadlock"] != 1 {
		t.Errorf("committed %d, deadlocks %d, aborts %v; want 2, 1 and one victim", res.Committed, res.Deadlocks, res.Aborts)
	}
	res = runOne(t, specOf(t, "protocol=2pl", "workload=two-transfers", "replication=quorum", "param=2pl.detect=off")[0])
	if res.Verdict != reports.VerdictDeadlocked {
		t.Errorf("without detection: verdict %s (%s), want deadlocked", res.Verdict, res.Why)
	}
}

// TestSkewHurts: contention rises with theta, and no transaction gets shorter.
func TestSkewHurts(t *testing.T) {
	last := -1.0
	for _, theta := range []string{"0", "0.6", "1.2"} {
		res := runOne(t, specOf(t, "protocol=occ", "replication=quorum", "distribution=zipfian", "theta="+theta, "keys=2000", "clients=16", "ops=8", "requests=1500")[0])
		mustBeOK(t, res)
		if res.AbortRatio <= last {
			t.Errorf("theta %s: abort ratio %.3f, not above %.3f", theta, res.AbortRatio, last)
		}
		last = res.AbortRatio
		if res.Classes[0].OpsMean != 8 {
			t.Errorf("theta %s: transactions of %v operations, want 8", theta, res.Classes[0].OpsMean)
		}
	}
}

// TestCrashesLoseNothing stops and restarts nodes under real raft: the sum is
// conserved, the promise kept, the replicas equal, and nothing left behind.
func TestCrashesLoseNothing(t *testing.T) {
	plans := []string{"n1@50ms+1s", "n2@50ms+3s,n3@6s+1s", "n1@30ms+500ms,n1@4s+500ms", "n3@60ms"}
	for i, plan := range plans {
		for _, protocol := range protocols {
			t.Run(fmt.Sprintf("%s/%s", protocol, plan), func(t *testing.T) {
				settings := []string{
					"protocol=" + protocol, "workload=bank", "distribution=uniform", "keys=60", "workload-param=audit=0.05",
					"workload-param=audit-keys=5", "clients=8", "requests=800", "warmup=10ms", "crash=" + plan, fmt.Sprintf("seed=%d", i+1),
				}
				if protocol == "2pl-basic" { // otherwise it loses money: see TestUnrecoverableLosesMoney
					settings = append(settings, "param=2pl-basic.recoverable=true")
				}
				spec := specOf(t, settings...)[0]
				res := runOne(t, spec)
				mustBeOK(t, res)
				if res.Resources.Elections == 0 {
					t.Error("a node crashed, and nobody was elected")
				}
				if again := runOne(t, spec); again.Digest != res.Digest {
					t.Errorf("digests differ: %s and %s\nrepeat it: %s", res.Digest, again.Digest, res.Command)
				}
			})
		}
	}
}
