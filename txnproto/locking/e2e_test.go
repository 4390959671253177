package locking_test

import (
	"context"
	"strings"
	"testing"

	"interleave/reports"
	"interleave/sim"
)

// The family's parameters on whole runs: what is promised holds, and nothing is left.
func TestParametersEndToEnd(t *testing.T) {
	scans := "workload=ycsb keys=50 distribution=uniform ops=4 scan=0.3 insert=0.2 update=0.2 workload-param=delete=0.1 workload-param=scan-length-max=8 workload-param=undo=0.5"
	skewed := "workload=ycsb keys=100 distribution=zipfian theta=0.9 ops=6 rmw=0.3 read=0.4 workload-param=read-for-update=0.3 workload-param=undo=0.3"
	for _, c := range []struct{ protocol, workload string }{
		{"protocol=2pl param=2pl.detect=probe", skewed},
		{"protocol=2pl param=2pl.detect=probe param=2pl.victim=spare-hit", "workload=bank keys=10 distribution=uniform"},
		{"protocol=2pl param=2pl.granularity=auto param=2pl.escalate-after=3", scans},
		{"protocol=2pl-woundwait param=2pl-woundwait.granularity=auto param=2pl-woundwait.escalate-after=2", scans},
		{"protocol=2pl-waitdie param=2pl-waitdie.granularity=table param=2pl-waitdie.update-lock=u", skewed},
		{"protocol=2pl param=2pl.savepoint-locks=keep param=2pl.update-lock=u", skewed},
		{"protocol=2pl-nowait", scans},
		{"protocol=2pl-ordered", scans},
		{"protocol=2pl", scans + " workload-param=wait=skip-locked"},
		{"protocol=2pl-woundwait", skewed + " workload-param=wait=nowait"},
		{"protocol=2pl-waitdie", "workload=queue keys=80 workload-param=wait=block"},
		{"protocol=2pl", "workload=queue keys=80"},
	} {
		t.Run(c.protocol+"/"+strings.Fields(c.workload)[0], func(t *testing.T) {
			first := run(t, c.protocol+" "+c.workload)
			if again := run(t, c.protocol+" "+c.workload); again.Digest != first.Digest {
				t.Errorf("digests differ: %s and %s", first.Digest, again.Digest)
			}
		})
	}
}

func run(t *testing.T, settings string) *reports.Result {
	s := sim.NewSpec()
	for _, kv := range strings.Fields(settings + " replication=quorum clients=12 requests=400 warmup=0s") {
		name, value, _ := strings.Cut(kv, "=")
		if err := s.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := s.Expand()
	if err != nil {
		t.Fatal(err)
	}
	res, err := sim.Run(context.Background(), runs[0], sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if res.Verdict != reports.VerdictOK || res.Committed == 0 {
		t.Fatalf("verdict %s: %s, %d committed\nrepeat it: %s", res.Verdict, res.Why, res.Committed, res.Command)
	}
	return res
}
