// Command pgschedules runs schedules on a PostgreSQL server and under rc, si and ssi,
// and prints what came of each side by side. scripts/postgres-schedules starts the
// server for it.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"interleave/sim"
	"interleave/txnproto/schedule"
)

// levels are PostgreSQL's isolation levels and the protocols that stand for them.
var levels = []struct{ sql, protocol string }{
	{"read committed", "rc"},
	{"repeatable read", "si"},
	{"serializable", "ssi"},
}

// A schedule to compare. Differs names, by protocol, a difference that is known, with
// its reason.
type comparison struct {
	name, text string
	differs    map[string]string
}

var comparisons = []comparison{
	{name: "dirty read", text: "x=100; w1(x=50) r2(x) a1 c2"},
	{name: "non-repeatable read", text: "x=100; r1(x) w2(x=200) c2 r1(x) c1"},
	{name: "phantom", text: "k10=1 k30=1; r1[k10..k40] i2(k20=1) c2 r1[k10..k40] c1"},
	{name: "lost update", text: "x=100; r1(x) r2(x) w1(x=x+10) c1 w2(x=x-20) c2"},
	{name: "lost update, second waits", text: "x=100; r1(x) r2(x) w1(x=x+10) w2(x=x-20) c1 c2"},
	{name: "lost update, first aborts", text: "x=100; r1(x) r2(x) w1(x=x+10) w2(x=x-20) a1 c2"},
	{name: "write skew", text: "x=1 y=1; r1(x) r1(y) r2(x) r2(y) w1(x=0) w2(y=0) c1 c2"},
	{name: "read skew", text: "x=1 y=1; r1(x) w2(x=2) w2(y=2) c2 r1(y) c1"},
	{name: "dirty write", text: "x=0 y=0; w1(x=1) w2(x=2) w1(y=1) c1 w2(y=2) c2"},
	{
		name: "two transfers", text: "a=5000 b=3000; r1(a) w1(a=a-500) r2(b) w2(b=b-300) w1(b=3500) w2(a=5300) c1 c2",
		differs: map[string]string{"rc": lookAtOnce, "si": lookAtOnce, "ssi": lookAtOnce},
	},
	{name: "for update", text: "x=100; u1(x) u2(x) w1(x=x+10) c1 w2(x=x-20) c2"},
	{name: "nowait", text: "x=100; u1(x) u2(x) nowait c1 c2"},
	{name: "skip locked", text: "x=100 y=100; u1(x) u2(x) skip locked u2(y) c1 c2"},
	{name: "read-only anomaly", text: "x=0 y=0; r2(x) r2(y) r1(y) w1(y=20) c1 r3(x) r3(y) c3 w2(x=-11) c2"},
	{name: "savepoint", text: "x=1 y=1; w1(x=2) s1(p) w1(y=2) rb1(p) w2(y=5) c2 c1"},
	{name: "write skew through a range", text: "k1=1 k2=1; r1[k1..k9] r2[k1..k9] i1(k3=1) i2(k4=1) c1 c2"},
	{name: "insert twice", text: "y=1; i1(x=1) i2(x=2) c1 c2"},
	{name: "insert twice, first aborts", text: "y=1; i1(x=1) i2(x=2) a1 c2"},
	{
		name: "update of a deleted row", text: "x=1; d1(x) w2(x=5) c1 c2",
		differs: map[string]string{"rc": "an UPDATE in SQL changes no row where none is left; a write here sets the row, whatever it held"},
	},
	{
		name: "begin before the first read", text: "x=1; b1 w2(x=2) c2 r1(x) c1",
		differs: map[string]string{"si": snapshotAtBegin, "ssi": snapshotAtBegin},
	},
	{
		name: "ranges side by side", text: "k4=1 k9=1; r1[k1..k4] r2[k6..k9] i1(k5=1) i2(k10=1) c1 c2",
		differs: map[string]string{"ssi": "PostgreSQL remembers ranges by the page of the index, and these share one: a false alarm"},
	},
}

// Reasons that several comparisons share.
const (
	lookAtOnce      = "PostgreSQL lets the second wait too, and looks for the deadlock after deadlock_timeout; ours looks at once"
	snapshotAtBegin = "in PostgreSQL the first statement takes the snapshot, not BEGIN; here the transaction begins at b1"
)

func main() {
	host := flag.String("host", "", "directory of the server's socket")
	flag.Parse()
	if err := run(*host); err != nil {
		fmt.Fprintln(os.Stderr, "pgschedules:", err)
		os.Exit(1)
	}
}

// run compares everything, prints it, and returns an error for differences that are not
// named, and for named ones that are none.
func run(host string) error {
	control, err := open(host)
	if err != nil {
		return err
	}
	defer control.close()
	version, err := control.query("SHOW server_version;")
	if err != nil {
		return err
	}
	fmt.Printf("PostgreSQL %s beside rc, si and ssi: who waits; who is aborted; what is read; values at the end\n\n", version)
	counts := map[string]int{}
	table := fmt.Sprintf("%-28s", "")
	for _, l := range levels {
		table += fmt.Sprintf("  %-22s", l.sql+" / "+l.protocol)
	}
	for i := range comparisons {
		c := &comparisons[i]
		fmt.Printf("%s: %s\n", c.name, c.text)
		table += fmt.Sprintf("\n%-28s", c.name)
		for _, l := range levels {
			theirs, mark, err := c.compare(host, control, l.sql, l.protocol)
			if err != nil {
				return fmt.Errorf("%s at %s: %w", c.name, l.sql, err)
			}
			counts[mark]++
			table += fmt.Sprintf("  %-22s", mark+" aborted: "+names(theirs.aborts))
		}
		fmt.Println()
	}
	fmt.Printf("%s\n\n= the same on both (%d); n different for a named reason (%d); ! not as named (%d)\n", table, counts["="], counts["n"], counts["!"])
	if counts["!"] > 0 {
		return fmt.Errorf("%d outcomes are not explained", counts["!"])
	}
	return nil
}

// compare runs a schedule on both, prints the outcomes, and returns the server's, with
// a mark: = where they are equal, n where they differ as named, ! otherwise.
func (c *comparison) compare(host string, control *session, level, protocol string) (theirs outcome, mark string, err error) {
	s, err := schedule.Parse(c.text)
	if err != nil {
		return theirs, "", err
	}
	if theirs, err = runPostgres(host, control, s, level); err != nil {
		return theirs, "", err
	}
	r, err := sim.RunSchedule(protocol, nil, s, sim.ScheduleOptions{})
	if err != nil {
		return theirs, "", err
	}
	ours := ourOutcome(r)
	fmt.Printf("  %-16s %s\n  %-16s %s\n", level, &theirs, protocol, &ours)
	reason := c.differs[protocol]
	same := theirs.String() == ours.String()
	switch {
	case same && reason == "":
		return theirs, "=", nil
	case !same && reason != "":
		fmt.Printf("  %-16s DIFFERENT: %s\n", "", reason)
		return theirs, "n", nil
	case same:
		fmt.Printf("  %-16s THE SAME, WHERE A DIFFERENCE IS NAMED: %s\n", "", reason)
	default:
		fmt.Printf("  %-16s DIFFERENT, AND NOT EXPLAINED\n", "")
	}
	return theirs, "!", nil
}

// ourOutcome is a run in the words of outcome.String. That a deadlock has another
// victim, or an abort another moment, shows in who is aborted and what is read.
func ourOutcome(r *sim.ScheduleRun) outcome {
	o := outcome{}
	for i := range r.Steps {
		s := &r.Steps[i]
		switch s.Event {
		case sim.StepWaits:
			o.waits = append(o.waits, s.Txn)
		case sim.StepAborted:
			o.aborts = append(o.aborts, s.Txn)
		case sim.StepGranted:
			var values []string
			for _, x := range s.Reads {
				switch x.State {
				case "known":
					values = append(values, fmt.Sprintf("%s=%d", x.Item, x.Value))
				case "absent", "skipped":
				default:
					values = append(values, fmt.Sprintf("%s=?", x.Item))
				}
			}
			if len(s.Reads) > 0 {
				o.reads = append(o.reads, s.Op+" "+strings.Join(values, ","))
			}
		case sim.StepBegun, sim.StepCommitted, sim.StepRolledBack, sim.StepMarked:
		default:
			panic("pgschedules: unknown event " + string(s.Event))
		}
	}
	for _, v := range r.Final {
		if v.State == "known" {
			o.final = append(o.final, fmt.Sprintf("%s=%d", v.Item, v.Value))
		}
	}
	return o
}

// outcome is what can be compared.
type outcome struct {
	waits, aborts []schedule.Txn
	reads, final  []string
}

// String is the outcome in one line.
func (o *outcome) String() string {
	return fmt.Sprintf("waits: %s; aborted: %s; %s; %s", names(o.waits), names(o.aborts), strings.Join(o.reads, " "), strings.Join(o.final, ", "))
}

func names(txns []schedule.Txn) string {
	if len(txns) == 0 {
		return "none"
	}
	out := make([]string, len(txns))
	for i, t := range txns {
		out[i] = t.String()
	}
	return strings.Join(out, ", ")
}
