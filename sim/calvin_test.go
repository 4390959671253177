package sim_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"interleave/reports"
	"interleave/txnproto"
)

// TestCalvinAlone works out by hand what a request takes that meets nobody: it waits
// for the end of the epoch, half of one on average, then for its batch to be on the
// disk, and then takes what it would take under another protocol.
func TestCalvinAlone(t *testing.T) {
	const epoch, requests = 10 * time.Millisecond, 2000
	settings := func(protocol string) []string {
		return []string{
			"protocol=" + protocol, "replication=none", "shards=1", "machines=1", "replicas=1", "clients=1", "distribution=uniform",
			"ops=4", "read=0", "update=1", "think=exponential:50ms", "cpu-op=constant:20us", "cpu-commit=constant:30us",
			"fsync=constant:500us", "disk-bandwidth=0", fmt.Sprint("requests=", requests), "warmup=0s",
		}
	}
	r := runOne(t, specOf(t, settings("calvin")...)[0])
	other := runOne(t, specOf(t, settings("2pl")...)[0])
	mustBeOK(t, r)
	mustBeOK(t, other)
	each := func(p txnproto.Part) time.Duration { return time.Duration(r.Breakdown[p]) / time.Duration(r.Committed) }
	// The end of the think time falls anywhere in an epoch: the wait is uniform.
	off := 4 * float64(epoch) / math.Sqrt(12*requests)
	if wait := each(txnproto.PartLockWait); math.Abs(float64(wait-epoch/2)) > off {
		t.Errorf("waits %v for its place on average, want %v within %v", wait, epoch/2, time.Duration(off))
	}
	if got, want := each(txnproto.PartDisk), 2*500*time.Microsecond; got != want {
		t.Errorf("disk %v, want %v: the batch and the commit", got, want)
	}
	if got, want := each(txnproto.PartCPUService), (1+4)*20*time.Microsecond+30*time.Microsecond; got != want {
		t.Errorf("processor %v, want %v: the place, the operations, the commit", got, want)
	}
	// One more message to and fro than otherwise.
	network := func(r *reports.Result) float64 {
		return float64(r.Breakdown[txnproto.PartNetwork]) / float64(r.Committed)
	}
	if got, want := network(r)/network(other), float64(1+4+1)/(4+1); math.Abs(got-want) > 0.02 {
		t.Errorf("%v times the messages' time of 2pl, want %v", got, want)
	}
	if mean := time.Duration(r.Latency.MeanNS); mean < epoch/2 || mean > epoch/2+3*time.Millisecond {
		t.Errorf("latency %v on average", mean)
	}
}

// TestCalvinCountsItsWaits: the wait for an epoch's end is one that a controller
// imposes, in the counts of waits as in the breakdown.
func TestCalvinCountsItsWaits(t *testing.T) {
	r := runOne(t, specOf(t, "protocol=calvin", "replication=quorum", "distribution=uniform", "shards=1", "clients=1", "keys=1", "ops=1", "requests=100", "warmup=0s")[0])
	mustBeOK(t, r)
	if want := int64(r.Breakdown[txnproto.PartLockWait]); r.LockWaits != 100 || r.LockWaitNS != want || want == 0 || r.BlockingRatio != 0.5 || len(r.HottestKeys) != 0 {
		t.Errorf("%d waits of %d ns, blocking ratio %v, hot keys %v; want 100 of %d ns, 0.5, none", r.LockWaits, r.LockWaitNS, r.BlockingRatio, r.HottestKeys, want)
	}
	r = runOne(t, specOf(t, "protocol=calvin", "replication=quorum", "distribution=zipfian", "requests=200", "keys=50", "scan=0.1", "insert=0.1", "warmup=0s")[0])
	mustBeOK(t, r)
	if part := int64(r.Breakdown[txnproto.PartLockWait]); r.LockWaitNS < part {
		t.Errorf("%d ns of waits, and %d ns in the latencies", r.LockWaitNS, part)
	}
}

// TestCalvinEpochShows: the shorter the epoch, the sooner a request is done, and the
// more entries the log has.
func TestCalvinEpochShows(t *testing.T) {
	var latency int64
	var entries uint64
	for _, epoch := range []string{"20ms", "5ms", "1ms"} {
		r := runOne(t, specOf(t, "protocol=calvin", "replication=quorum", "distribution=uniform", "keys=100000", "clients=30", "think=exponential:20ms", "requests=1500", "param=calvin.epoch="+epoch)[0])
		mustBeOK(t, r)
		if latency > 0 && (r.Latency.P50NS >= latency || r.Resources.LogEntries <= entries) {
			t.Errorf("epoch %s: median latency %v and %d entries, before %v and %d", epoch, time.Duration(r.Latency.P50NS), r.Resources.LogEntries, time.Duration(latency), entries)
		}
		latency, entries = r.Latency.P50NS, r.Resources.LogEntries
	}
}

// TestCalvinAbortsNobody: rows as hot as can be, and not one attempt is lost. Where rows
// come and go in ranges that others scan, reconnaissance is the only reason.
func TestCalvinAbortsNobody(t *testing.T) {
	hot := []string{"workload=ycsb", "keys=100", "distribution=zipfian", "theta=1.2", "ops=6"}
	for _, w := range [][]string{
		hot,
		append(hot, "network=three-zones", "clients=40"),
		{"workload=bank", "keys=10", "distribution=uniform", "workload-param=audit=0.1"},
		{"workload=queue", "keys=60"},
	} {
		r := runOne(t, specOf(t, append([]string{"protocol=calvin", "replication=quorum", "clients=16", "requests=600"}, w...)...)[0])
		mustBeOK(t, r)
		if r.AbortedAttempts != 0 || r.LockWaits == 0 {
			t.Errorf("%v: %d attempts aborted: %v; %d waits", w, r.AbortedAttempts, r.Aborts, r.LockWaits)
		}
	}
	r := runOne(t, specOf(t, "protocol=calvin", "replication=quorum", "clients=16", "requests=600", "keys=60", "distribution=uniform", "ops=4",
		"scan=0.3", "insert=0.2", "update=0.2", "workload-param=delete=0.2", "workload-param=scan-length-max=20")[0])
	mustBeOK(t, r)
	constraint := r.Aborts["constraint"]
	if n := r.Aborts["reconnaissance"]; n == 0 || n+constraint != r.AbortedAttempts {
		t.Errorf("aborts %v; want some for reconnaissance and none because of others", r.Aborts)
	}
}

// TestCalvinCommits: the coordinator's log alone takes fewer entries than two-phase
// commit, and what it costs is not lost in the reckoning.
func TestCalvinCommits(t *testing.T) {
	entries := map[string]float64{}
	for _, commit := range []string{"coordinator-log", "two-phase"} {
		r := runOne(t, specOf(t, "protocol=calvin", "replication=quorum", "distribution=zipfian", "keys=1000", "ops=6", "read=0", "update=1", "requests=800", "param=calvin.commit="+commit)[0])
		mustBeOK(t, r)
		if r.AbortedAttempts != 0 {
			t.Errorf("%s: aborts %v", commit, r.Aborts)
		}
		entries[commit] = float64(r.Resources.LogEntries) / float64(r.Committed)
	}
	// A commit at n shards takes n entries instead of 2n-1; six rows are on nearly all three.
	if d := entries["two-phase"] - entries["coordinator-log"]; d < 1.5 || d > 2 {
		t.Errorf("entries a commit: %v", entries)
	}
}

// TestCalvinSurvivesCrashes of leaders that scan, insert and delete, on more machines
// than shards have replicas.
func TestCalvinSurvivesCrashes(t *testing.T) {
	for i, plan := range []string{"n1@40ms+400ms,n2@900ms+500ms", "n1@31ms+1s,n4@32ms+2s", "n3@25ms+200ms,n5@33ms+300ms", "n2@27ms+300ms,n1@600ms+1s"} {
		commit := []string{"coordinator-log", "two-phase"}[i%2]
		r := runOne(t, specOf(t, "protocol=calvin", "param=calvin.commit="+commit, "shards=5", "machines=5", "keys=60", "distribution=uniform", "ops=4", "clients=12", "requests=500", "warmup=10ms",
			"scan=0.2", "insert=0.2", "update=0.3", "workload-param=delete=0.1", "workload-param=scan-length-max=8", "crash="+plan, fmt.Sprint("seed=", i+1))[0])
		mustBeOK(t, r)
		for reason, n := range r.Aborts { // order: each by itself
			if n > 0 && !strings.Contains("leader-change rpc-timeout reconnaissance constraint", reason) {
				t.Errorf("%s: %d attempts aborted for %s", plan, n, reason)
			}
		}
		if r.Aborts["leader-change"]+r.Aborts["rpc-timeout"] == 0 {
			t.Errorf("%s: no attempt was lost: the test shows nothing", plan)
		}
	}
}
