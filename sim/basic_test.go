package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"interleave/reports"
)

// TestCascades has transactions that roll back when others have read from them. Where
// commits wait for whom they have read from, all that was read stands; where they do
// not, some have read what never was, and it is counted and found.
func TestCascades(t *testing.T) {
	for _, replication := range []string{"none", "quorum", "raft"} {
		for _, recoverable := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/recoverable=%v", replication, recoverable), func(t *testing.T) {
				spec := specOf(t, "protocol=2pl-basic", fmt.Sprintf("param=2pl-basic.recoverable=%v", recoverable), "replication="+replication,
					"distribution=zipfian", "theta=0.9", "keys=200", "ops=4", "network=three-zones", "clients=18", "requests=1500",
					"workload-param=rollback=0.2", "warmup=0s")[0]
				res := runOne(t, spec)
				mustBeOK(t, res)
				late, cascades := res.ProtocolExtra["unrecoverable"], res.ProtocolExtra["cascades"]
				if res.Aborts["cascade"] == 0 || cascades == 0 || res.RolledBack == 0 {
					t.Errorf("%d aborts by cascade, %d counted, %d rolled back", res.Aborts["cascade"], cascades, res.RolledBack)
				}
				if cascades < res.Aborts["cascade"] { // each has lost a branch at least
					t.Errorf("%d branches lost to cascades, %d attempts aborted by them", cascades, res.Aborts["cascade"])
				}
				g1a := false
				for _, a := range res.Isolation.Anomalies {
					g1a = g1a || a.Name == "G1a"
					if a.Name != "G1a" {
						t.Errorf("%s: %v", a.Name, a.Cycle)
					}
				}
				if recoverable && (late > 0 || g1a || res.Isolation.Promised != "serializable") {
					t.Errorf("%d commits are unrecoverable, aborted reads %v, promised %s", late, g1a, res.Isolation.Promised)
				}
				if !recoverable && (late == 0 || !g1a || res.Isolation.Promised != "read-uncommitted") {
					t.Errorf("%d commits are unrecoverable, aborted reads %v, promised %s", late, g1a, res.Isolation.Promised)
				}
				if again := runOne(t, spec); again.Digest != res.Digest {
					t.Errorf("digests differ: %s and %s\nrepeat it: %s", res.Digest, again.Digest, res.Command)
				}
			})
		}
	}
}

// TestUnrecoverableLosesMoney crashes a leader whose exposed writes others have read: their
// transfers stand on balances that never were.
func TestUnrecoverableLosesMoney(t *testing.T) {
	res := runOne(t, specOf(t, "protocol=2pl-basic", "workload=bank", "distribution=uniform", "keys=20",
		"clients=12", "requests=800", "warmup=10ms", "crash=n1@50ms+1s")[0])
	if res.Verdict != reports.VerdictInvariant || !strings.Contains(res.Why, "conserved total") {
		t.Fatalf("verdict %s (%s), want a broken invariant", res.Verdict, res.Why)
	}
	if found := fmt.Sprint(res.Isolation.Found); found != "read-uncommitted" {
		t.Errorf("found %s: want aborted reads", found)
	}
}

// TestTheEndTakesNothingBack ends runs in the middle of transfers between clients that are
// near and clients that are far. An attempt whose writes others may have seen goes on to
// its commit, or it would be the end of the run that loses the money.
func TestTheEndTakesNothingBack(t *testing.T) {
	for seed := range 30 {
		mustBeOK(t, runOne(t, specOf(t, "protocol=2pl-basic", "workload=bank", "distribution=uniform", "keys=20", "network=three-zones",
			"replication=none", "requests=100", "warmup=0s", fmt.Sprint("seed=", seed+1))[0]))
	}
}
