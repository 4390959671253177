package main

import (
	"testing"

	"interleave/sim"
	"interleave/txnproto/schedule"
)

// TestComparisons: every schedule can be said in SQL, runs under each protocol without
// getting stuck, and names only protocols that are compared.
func TestComparisons(t *testing.T) {
	for _, c := range comparisons {
		s, err := schedule.Parse(c.text)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		r := &pgRun{items: s.Items()}
		txns := map[schedule.Txn]*pgTxn{}
		for _, op := range s.Ops {
			x := txns[op.Txn]
			if x == nil {
				x = &pgTxn{txn: op.Txn, seen: map[schedule.Item]int64{}}
				txns[op.Txn] = x
			}
			if op.Kind.Reads() {
				x.seen[op.Item] = 1
			}
			if sql, err := r.sql(x, op); err != nil || sql == "" && op.Kind != schedule.Begin {
				t.Errorf("%s: %v: %q, %v", c.name, op, sql, err)
			}
		}
		known := 0
		for _, l := range levels {
			run, err := sim.RunSchedule(l.protocol, nil, s, sim.ScheduleOptions{})
			if err != nil || run.Stuck {
				t.Errorf("%s under %s: %v", c.name, l.protocol, err)
			}
			if c.differs[l.protocol] != "" {
				known++
			}
		}
		if known != len(c.differs) {
			t.Errorf("%s: %v", c.name, c.differs)
		}
	}
}

// TestOutcomes holds what PostgreSQL 15 did to what the protocols do.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct{ protocol, text, want string }{
		{"rc", "x=100; r1(x) r2(x) w1(x=x+10) w2(x=x-20) c1 c2", "waits: T2; aborted: none; r1(x) x=100 r2(x) x=100; x=80"},
		{"si", "x=100; r1(x) r2(x) w1(x=x+10) w2(x=x-20) c1 c2", "waits: T2; aborted: T2; r1(x) x=100 r2(x) x=100; x=110"},
		{"rc", "x=100; u1(x) u2(x) w1(x=x+10) c1 w2(x=x-20) c2", "waits: T2; aborted: none; u1(x) x=100 u2(x) x=110; x=90"},
		{"si", "x=1 y=1; r1(x) r1(y) r2(x) r2(y) w1(x=0) w2(y=0) c1 c2", "waits: none; aborted: none; r1(x) x=1 r1(y) y=1 r2(x) x=1 r2(y) y=1; x=0, y=0"},
		{"ssi", "x=1 y=1; r1(x) r1(y) r2(x) r2(y) w1(x=0) w2(y=0) c1 c2", "waits: none; aborted: T2; r1(x) x=1 r1(y) y=1 r2(x) x=1 r2(y) y=1; x=0, y=1"},
		{"ssi", "x=0 y=0; r2(x) r2(y) r1(y) w1(y=20) c1 r3(x) r3(y) c3 w2(x=-11) c2", "waits: none; aborted: T2; r2(x) x=0 r2(y) y=0 r1(y) y=0 r3(x) x=0 r3(y) y=20; x=0, y=20"},
	} {
		s, err := schedule.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := sim.RunSchedule(c.protocol, nil, s, sim.ScheduleOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if o := ourOutcome(r); o.String() != c.want {
			t.Errorf("%s: %s: %s, want %s", c.protocol, c.text, &o, c.want)
		}
	}
}
