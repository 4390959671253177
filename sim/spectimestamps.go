package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"interleave/internal/units"
	"interleave/nodes"
	"interleave/reports"
	"interleave/sim/clock"
	"interleave/sim/netsim"
	"interleave/sim/rng"
	"interleave/txnproto"
)

// timestampFields are the settings of where timestamps come from.
func timestampFields() []Field {
	source := choice(Field{
		Name: "timestamps", Group: groupTimestamps, Default: "counter", Many: true,
		Choices: func() []string { return txnproto.TimestampSourceNames },
		Help:    "where they come from: a counter that costs nothing, each client's own clock, or an oracle that must be asked",
	}, nil)
	source.set = func(r *RunSpec, s string) error {
		t, err := txnproto.ParseTimestampSource(s)
		if err != nil {
			return unknownName("timestamps", s, txnproto.TimestampSourceNames)
		}
		r.Timestamps = t
		return nil
	}
	source.get = func(r *RunSpec) string { return r.Timestamps.String() }
	with := func(t txnproto.TimestampSource, f Field) Field {
		f.with = &t
		return f
	}
	skewed := func(f Field) Field {
		f.skewed = true
		return with(txnproto.FromClock, f)
	}
	return []Field{
		source,
		with(txnproto.FromClock, duration(Field{
			Name: "clock-skew", Group: groupTimestamps, Default: "0s", Many: true,
			Help: "with timestamps clock: most that a client's clock is ahead or behind; its offset is uniform within",
		}, func(r *RunSpec) *time.Duration { return &r.ClockSkew })),
		skewed(decimal(Field{
			Name: "clock-drift", Group: groupTimestamps, Default: "0", Many: true, Max: clock.MaxDrift,
			Help: "with timestamps clock: most that a clock gains or loses, in parts per million, until it turns at the skew's bound",
		}, func(r *RunSpec) *float64 { return &r.ClockDrift })),
		skewed(boolean(Field{
			Name: "clock-catch-up", Group: groupTimestamps, Default: "false", Many: true,
			Help: "with timestamps clock: a client that came too late moves its clock on past what the shard has met",
		}, func(r *RunSpec) *bool { return &r.ClockCatchUp })),
		with(txnproto.FromOracle, dist(Field{
			Name: "oracle-service", Group: groupTimestamps, Default: "10µs",
			Help: "with timestamps oracle: processor time of one request at the oracle, a distribution",
		}, func(r *RunSpec) *rng.Dist { return &r.OracleService })),
	}
}

// usedIn reports whether a run with r's source of timestamps has a use for the field.
func (f *Field) usedIn(r *RunSpec) bool {
	return f.with == nil || *f.with == r.Timestamps && (!f.skewed || r.ClockSkew > 0)
}

// checkTimestampUse refuses a setting of timestamps that was given and that no run has a
// use for.
func (s *Spec) checkTimestampUse(f *Field, runs []RunSpec) error {
	if f.with == nil || !s.given[f.Name] || s.Get(f.Name) == f.Default || slices.ContainsFunc(runs, func(r RunSpec) bool { return f.usedIn(&r) }) {
		return nil
	}
	if slices.ContainsFunc(runs, func(r RunSpec) bool { return *f.with == r.Timestamps }) {
		return fmt.Errorf("%s: %s has no use with clock-skew %s, under which all clocks are right: want a clock-skew above 0s", f.Name, s.Get(f.Name), s.Get("clock-skew"))
	}
	return fmt.Errorf("%s: %s has no use with timestamps %s: want timestamps %v", f.Name, s.Get(f.Name), s.Get("timestamps"), *f.with)
}

// dropUnused sets what the run has no use for to its default.
func (r *RunSpec) dropUnused() error {
	for i := range fieldTable {
		if f := &fieldTable[i]; !f.usedIn(r) {
			if err := f.set(r, f.first()); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkTimestamps checks the source of timestamps against the protocol and the length
// of the run.
func (r *RunSpec) checkTimestamps() error {
	p, ok := txnproto.ProtocolNamed(r.Protocol)
	if !ok || r.Timestamps != txnproto.FromClock || p.Draws == 0 {
		return nil
	}
	if !p.OnClocks() {
		return fmt.Errorf("timestamps: clock cannot be used with protocol %s, whose snapshots need timestamps in order of real time: want counter or oracle", r.Protocol)
	}
	if span := r.MaxVirtualTime + electBound + 2*r.ClockSkew; span > txnproto.LongestClocked(r.Clients) {
		return fmt.Errorf("max-virtual-time: %s is too long for the clock timestamps of %d clients within %s: want at most %v",
			units.Duration(r.MaxVirtualTime), r.Clients, units.Duration(r.ClockSkew), txnproto.LongestClocked(r.Clients)-electBound-2*r.ClockSkew)
	}
	return nil
}

// newStamping is how the run's clients come to their timestamps.
func (r *run) newStamping() txnproto.Stamping {
	s := &r.spec
	st := txnproto.Stamping{Source: s.Timestamps, Draws: r.protocol.Draws}
	if s.Timestamps == txnproto.FromClock {
		st.CatchUp = s.ClockCatchUp
		cfg := clock.Config{Bound: s.ClockSkew, Drift: s.ClockDrift}
		st.Clocks = clock.New(s.Seed, "clocks", s.Clients, cfg)
		if r.protocol.ClockCommit {
			st.NodeClocks = clock.New(s.Seed, "clocks/nodes", s.Machines, cfg)
		}
	}
	return st
}

// clockGroups divides the clients into quarters by how slow their clocks are at the
// start, or puts each by itself where there are fewer than four. It returns nothing
// where all clocks are right.
func clockGroups(c *clock.Clocks) (ranges []reports.ClockRange, groupOf []uint8) {
	n := c.Len()
	if c.Bound() == 0 {
		return nil, nil
	}
	groups := min(n, reports.ClientQuarters)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(c.Offset(i, 0), c.Offset(j, 0)) })
	groupOf = make([]uint8, n)
	for g := range groups {
		from, to := g*n/groups, (g+1)*n/groups
		for _, i := range order[from:to] {
			groupOf[i] = uint8(g)
		}
		ranges = append(ranges, reports.ClockRange{From: c.Offset(order[from], 0), To: c.Offset(order[to-1], 0)})
	}
	return ranges, groupOf
}

// placeOracle adds the oracle's machine to the network, in the first zone, where the run
// asks an oracle.
func (r *run) placeOracle(n *netsim.Config) *nodes.OracleConfig {
	if r.spec.Timestamps != txnproto.FromOracle || r.protocol.Draws == 0 {
		return nil
	}
	n.Sites = append(n.Sites, 0)
	return &nodes.OracleConfig{Site: netsim.Site(len(n.Sites) - 1), Service: r.spec.OracleService}
}
