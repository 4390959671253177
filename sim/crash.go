package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"interleave/internal/units"
	"interleave/sim/event"
	"interleave/txnproto"
)

// crash is one planned stop of a node.
type crash struct {
	node txnproto.NodeID
	at   time.Duration // after the clients have begun
	down time.Duration // until it is restarted; 0: for good
}

const crashForm = "want NODE@TIME+DOWN, such as n1@300ms+2s, or NODE@TIME for good; several separated by commas"

// crashes reads the run's plan of crashes.
func (r *RunSpec) crashes() ([]crash, error) {
	if r.Crash == "" {
		return nil, nil
	}
	if r.Replication != "raft" {
		return nil, fmt.Errorf("crash: %q cannot be used with replication %s: want replication raft", r.Crash, r.Replication)
	}
	var plan []crash
	for _, text := range strings.Split(r.Crash, ",") {
		c, err := parseCrash(strings.TrimSpace(text), r.Machines)
		if err != nil {
			return nil, err
		}
		for _, before := range plan {
			if c.overlaps(before) {
				return nil, fmt.Errorf("crash: %q: n%d is down from %v%s anyhow: want times that are apart", text, c.node+1, before.at, before.until())
			}
		}
		plan = append(plan, c)
	}
	return plan, nil
}

// overlaps reports whether both crashes keep the same node down at some time.
func (c crash) overlaps(d crash) bool {
	endsBefore := func(a, b crash) bool { return a.down > 0 && a.at+a.down < b.at }
	return c.node == d.node && !endsBefore(c, d) && !endsBefore(d, c)
}

func (c crash) until() string {
	if c.down == 0 {
		return " on"
	}
	return " to " + (c.at + c.down).String()
}

func parseCrash(text string, machines int) (crash, error) {
	bad := func() (crash, error) { return crash{}, fmt.Errorf("crash: %q: %s", text, crashForm) }
	node, when, ok := strings.Cut(text, "@")
	number, isNode := strings.CutPrefix(node, "n")
	n, err := strconv.Atoi(number)
	if !ok || !isNode || err != nil {
		return bad()
	}
	if n < 1 || n > machines {
		return crash{}, fmt.Errorf("crash: %q: there is no node %s: want n1 to n%d", text, node, machines)
	}
	at, down, restarts := strings.Cut(when, "+")
	c := crash{node: txnproto.NodeID(n - 1)}
	if c.at, err = time.ParseDuration(at); err != nil || c.at < 0 {
		return bad()
	}
	if restarts {
		if c.down, err = time.ParseDuration(down); err != nil || c.down <= 0 {
			return bad()
		}
	}
	return c, nil
}

// planCrashes schedules the crashes and restarts.
func (r *run) planCrashes() error {
	plan, err := r.spec.crashes()
	if err != nil {
		return err
	}
	hCrash := r.loop.Handle("fault.crash", func(n uint64) { r.cluster.Crash(txnproto.NodeID(n)) })
	hRestart := r.loop.Handle("fault.restart", func(n uint64) {
		if err := r.cluster.Restart(txnproto.NodeID(n)); err != nil {
			panic(err) // a store of the run's own cannot be opened again
		}
	})
	r.crashPlan, r.crashFrom = plan, r.loop.Now()
	for _, c := range plan {
		at := r.loop.Now().Add(c.at)
		r.loop.At(at, hCrash, uint64(c.node))
		if c.down > 0 {
			r.loop.At(at.Add(c.down), hRestart, uint64(c.node))
		}
	}
	return nil
}

// noteLateCrashes says which planned crashes the run did not live to see at now.
func (r *run) noteLateCrashes(now event.Time) {
	for _, c := range r.crashPlan {
		if lasted := now.Sub(r.crashFrom); c.at > lasted {
			r.result.Notes = append(r.result.Notes, fmt.Sprintf("the crash of n%d was planned for %s after the clients began, and the run ended after %v: it did not happen",
				c.node+1, units.Duration(c.at), lasted.Round(time.Microsecond)))
		}
	}
}
