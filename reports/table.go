package reports

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"interleave/txnproto"
)

// WriteTable writes the comparison of results for reading: first one row a run
// with what matters most, then where time went, why attempts aborted, which
// keys were hot and who starved. It is at most Width columns wide, save for
// settings with long values, and has no colours.
func WriteTable(w io.Writer, results []*Result) error {
	if len(results) == 0 {
		return nil
	}
	c := newComparison(results)
	sections := []string{
		c.heading(), c.summary(), c.verdicts(), c.overSeeds(), c.endings(), c.breakdown(), c.aborts(), c.classes(), c.clientGroups(), c.leaders(), c.resources(), c.oracles(), c.counters(), c.hottest(), c.starved(),
	}
	var b strings.Builder
	for _, s := range sections {
		if s != "" {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(s)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// comparison is a set of results with the settings in which they differ.
type comparison struct {
	results []*Result
	names   []string // settings, in order
	vary    []string // those that differ, without protocol, distribution and theta
}

func newComparison(results []*Result) *comparison {
	c := &comparison{results: results}
	for _, r := range results {
		for _, n := range settingNames(r.Spec) {
			if !slices.Contains(c.names, n) {
				c.names = append(c.names, n)
			}
		}
	}
	for _, n := range c.names {
		switch n {
		case "protocol", "distribution", "theta", "param":
			continue
		}
		if !c.same(n) && !c.follows(n) {
			c.vary = append(c.vary, n)
		}
	}
	return c
}

func (c *comparison) same(name string) bool {
	for _, r := range c.results {
		if r.Setting(name) != c.results[0].Setting(name) {
			return false
		}
	}
	return true
}

// follows reports whether runs differ in a setting only as some have no use for it.
func (c *comparison) follows(name string) bool {
	value := ""
	for _, r := range c.results {
		switch v := r.Setting(name); {
		case v == "" || v == value:
		case value == "":
			value = v
		default:
			return false
		}
	}
	// Clocks without skew neither drift nor catch up.
	used := !c.same("timestamps") || !c.same("clock-skew")
	return used && (strings.HasPrefix(name, "clock-") || strings.HasPrefix(name, "oracle-"))
}

// settingNames returns the names in a spec in the order in which it has them.
func settingNames(spec json.RawMessage) []string {
	d := json.NewDecoder(strings.NewReader(string(spec)))
	var names []string
	if _, err := d.Token(); err != nil {
		return nil
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return names
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return names
		}
		names = append(names, t.(string))
	}
	return names
}

// heading says what all the runs have in common.
func (c *comparison) heading() string {
	r := c.results[0]
	get := func(name string) string {
		if !c.same(name) {
			return ""
		}
		return r.Setting(name)
	}
	var parts []string
	add := func(format ...string) {
		text := strings.Join(format, "")
		if !slices.Contains(format, "") {
			parts = append(parts, text)
		}
	}
	add("workload ", get("workload"))
	if m := get("mix"); m != "custom" {
		add("mix ", m)
	}
	add("classes ", get("classes"))
	add(counted(get("keys"), "key"))
	// Classes have numbers of their own, which the table of classes shows.
	if !slices.ContainsFunc(c.results, func(r *Result) bool { return r.Setting("classes") != "" }) {
		add(counted(get("ops"), "operation a transaction", "operations a transaction"))
	}
	if rate := get("rate"); rate == "0" {
		add(counted(get("clients"), "client"))
		if t := get("think"); t != "0s" {
			add("think time ", t)
		}
	} else {
		add("open loop at ", rate, "/s")
	}
	if m := get("mpl"); m != "0" {
		add("at most ", m, " at a time")
	}
	if get("replication") == "none" {
		add(counted(get("shards"), "shard"), ", one copy of each")
	} else {
		add(counted(get("shards"), "shard"), " × ", counted(get("replicas"), "replica"), " (", get("replication"), ") on ", counted(get("machines"), "machine"))
	}
	add("network ", get("network"))
	if t := get("timestamps"); t != "counter" {
		add("timestamps ", t)
		add("clock skew ", get("clock-skew"))
		if d := get("clock-drift"); d != "0" {
			add("drift ", d, " ppm")
		}
		if get("clock-catch-up") == "true" {
			add("clients catch up")
		}
	}
	add("seed ", get("seed"))
	// Lines break between settings, not within one.
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], " ", noBreak)
	}
	text := wrap(strings.Join(parts, " · "), Width, "  ")
	return strings.ReplaceAll(text, noBreak, " ") + "\n"
}

// noBreak is the blank at which wrap breaks no line.
const noBreak = "\u00a0"

func groupDigits(s string) string {
	var n uint64
	for _, d := range s {
		if d < '0' || d > '9' || n > 1e17 {
			return s
		}
		n = n*10 + uint64(d-'0')
	}
	if s == "" {
		return s
	}
	return formatCount(n)
}

// label is what tells the run from the others, as cells.
func (c *comparison) label(r *Result) []string {
	cells := []string{r.Setting("protocol")}
	if c.hasDistribution() {
		cells = append(cells, distributionLabel(r))
	}
	for _, n := range c.vary {
		cells = append(cells, r.Setting(n))
	}
	return cells
}

func (c *comparison) labelHeads() []string {
	heads := []string{"protocol"}
	if c.hasDistribution() {
		heads = append(heads, "distribution")
	}
	return append(heads, c.vary...)
}

func (c *comparison) hasDistribution() bool { return slices.Contains(c.names, "distribution") }

func distributionLabel(r *Result) string {
	if t := r.Setting("theta"); t != "" {
		return r.Setting("distribution") + " " + t
	}
	return r.Setting("distribution")
}

// name is what tells the run from the others, in a sentence.
func (c *comparison) name(r *Result) string {
	name := r.Setting("protocol")
	if c.hasDistribution() {
		name += " under " + distributionLabel(r) + " keys"
	}
	for _, n := range c.vary {
		name += ", " + n + " " + r.Setting(n)
	}
	return name
}

// grid starts a table whose first columns tell the runs apart.
func (c *comparison) grid(heads ...string) *grid {
	labels := c.labelHeads()
	return &grid{heads: [][]string{append(labels, heads...)}, left: len(labels)}
}

func (c *comparison) summary() string {
	g := c.grid("commits/s", "±", "abort", "p50", "p99", "most", "starved", "fair", "isolation", "digest")
	second := make([]string, len(c.labelHeads()))
	second = append(second, "", "95 %", "ratio", "latency", "latency", "attempts", "", "", "found", "")
	g.heads = append(g.heads, second)
	for _, r := range c.results {
		fair := "–"
		if r.Fairness.Clients != nil {
			fair = formatRatio(*r.Fairness.Clients)
		}
		half := "–"
		if r.Confidence.Batches > 0 {
			half = formatRate(r.Confidence.Throughput.Half)
		}
		cells := append(c.label(r), formatRate(r.Throughput), half, formatRatio(r.AbortRatio),
			ofCommits(r.Committed, formatTime(r.Latency.P50NS)), ofCommits(r.Committed, formatTime(r.Latency.P99NS)),
			ofCommits(r.Committed, formatCount(uint64(r.Attempts.Max))), formatShare(r.Starved), fair, r.Isolation.Found, shortDigest(r.Digest))
		g.add(cells...)
	}
	return g.render()
}

// counted writes a whole number with what it counts, one thing or many (by default
// with an s), and nothing for "".
func counted(number, one string, many ...string) string {
	switch {
	case number == "":
		return ""
	case number == "1":
		return "1 " + one
	case len(many) == 0:
		return groupDigits(number) + " " + one + "s"
	default:
		return groupDigits(number) + " " + many[0]
	}
}

// ofCommits returns text, a figure of the committed requests, if there are any.
func ofCommits(committed uint64, text string) string {
	if committed == 0 {
		return "–"
	}
	return text
}

func shortDigest(d string) string { return d[:min(len(d), 8)] }

// verdicts explains every run that is not ok, and notes of the checker.
func (c *comparison) verdicts() string {
	var b strings.Builder
	for _, r := range c.results {
		if r.Verdict == VerdictOK {
			continue
		}
		mark := "FAILED"
		if r.Verdict == VerdictCutShort {
			mark = "CUT SHORT"
		}
		b.WriteString(wrap(mark+"  "+c.name(r)+": "+string(r.Verdict)+". "+r.Why, Width, "  ") + "\n")
		for _, a := range r.Isolation.Anomalies {
			b.WriteString("  " + a.Name + " × " + formatCount(a.Count) + ", the smallest:\n")
			for _, edge := range a.Cycle {
				b.WriteString("    " + edge + "\n")
			}
		}
		for _, l := range r.Laws {
			if !l.OK {
				b.WriteString("  broken: " + l.Name + ": " + digits(l.Expected) + " expected, " + digits(l.Measured) + " measured\n")
			}
		}
		b.WriteString("  repeat it: " + r.Command + "\n")
	}
	for _, n := range c.notes() {
		b.WriteString(wrap("note: "+n, Width, "  ") + "\n")
	}
	return b.String()
}

func (c *comparison) notes() []string {
	var notes []string
	for _, r := range c.results {
		if n := r.Isolation.Note; n != "" && !slices.Contains(notes, n) {
			notes = append(notes, n)
		}
		if r.Verdict == VerdictOK && r.Committed == 0 {
			notes = append(notes, c.name(r)+": no request committed in the window, so what commits would tell is left out")
		}
		for _, n := range r.Notes {
			if !strings.HasPrefix(n, r.Setting("protocol")+" ") { // else it is of all runs of the protocol
				n = c.name(r) + ": " + n
			}
			if !slices.Contains(notes, n) {
				notes = append(notes, n)
			}
		}
	}
	return notes
}

// endings shows how the requests ended, and those that did not.
func (c *comparison) endings() string {
	type column struct {
		head string
		of   func(r *Result) string
		seen bool // shown though it is 0 everywhere
	}
	columns := []column{
		{"committed", func(r *Result) string { return formatCount(r.Committed) }, true},
		{"rolled back", func(r *Result) string { return formatCount(r.RolledBack) }, false},
		{"given up", func(r *Result) string { return formatCount(r.GivenUp) }, false},
		{"turned away", func(r *Result) string { return formatCount(r.TurnedAway) }, false},
		{"unfinished", func(r *Result) string { return formatCount(r.Unfinished) }, true},
		{"the oldest", func(r *Result) string { return formatTime(r.OldestNS) }, true},
		{"longest wait", func(r *Result) string { return formatTime(r.LongestWaitNS) }, true},
		{"p99/p50", func(r *Result) string { return ofCommits(r.Committed, digits(r.AgeRatio)) }, true},
		{"window", func(r *Result) string { return formatTime(r.WindowNS) }, true},
	}
	columns = slices.DeleteFunc(columns, func(k column) bool {
		return !k.seen && !slices.ContainsFunc(c.results, func(r *Result) bool { return k.of(r) != "0" })
	})
	var heads []string
	for _, k := range columns {
		heads = append(heads, k.head)
	}
	g := c.grid(heads...)
	for _, r := range c.results {
		cells := c.label(r)
		for _, k := range columns {
			cells = append(cells, k.of(r))
		}
		g.add(cells...)
	}
	return "How requests ended, and how long a client went without a commit\n" + g.render()
}

// partHeads are the parts' names where room is short.
var partHeads = [txnproto.NumParts]string{
	"network", "cpu queue", "cpu", "lock wait", "disk", "replicas", "2pc", "backoff", "admission", "think", "lost", "timestamp",
}

func (c *comparison) breakdown() string {
	var parts []txnproto.Part
	for p := range txnproto.NumParts {
		if slices.ContainsFunc(c.results, func(r *Result) bool { return r.Breakdown[p] > 0 }) {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	var heads []string
	for _, p := range parts {
		heads = append(heads, partHeads[p])
	}
	g := c.grid(append([]string{"mean"}, heads...)...)
	for _, r := range c.results {
		cells := append(c.label(r), ofCommits(r.Committed, formatTime(r.Latency.MeanNS)))
		for _, p := range parts {
			cells = append(cells, ofCommits(r.Committed, formatShare(r.Breakdown.Share(p))))
		}
		g.add(cells...)
	}
	head := "Where a committed request's time went (2pc: two-phase commit; lost: in attempts that aborted"
	if slices.Contains(parts, txnproto.PartTimestamp) {
		head += ";\n  timestamp: asking the oracle, or waiting for a clock"
	}
	return head + ")\n" + g.render()
}

// reasonsWidth is at which width the list of a row's reasons is wrapped.
const reasonsWidth = 32

func (c *comparison) aborts() string {
	var reasons []string
	for i := txnproto.AbortReason(1); i < txnproto.NumReasons; i++ {
		if slices.ContainsFunc(c.results, func(r *Result) bool { return r.Aborts[i.String()] > 0 }) {
			reasons = append(reasons, i.String())
		}
	}
	if len(reasons) == 0 {
		return "No attempt was aborted.\n"
	}
	counts := []string{"aborted", "of attempts", "per commit", "wasted work", "lock waits"}
	wide, narrow := c.grid(append(slices.Clone(counts), reasons...)...), c.grid(append(counts, "reasons")...)
	narrow.prose = true
	for _, r := range c.results {
		cells := append(c.label(r), formatCount(r.AbortedAttempts), formatCount(r.FinishedAttempts()-r.RolledBack),
			ofCommits(r.Committed, formatRatio2(r.AbortsPerCommit)), formatShare(r.WastedWork), formatCount(r.LockWaits))
		var each, those []string
		for _, n := range reasons {
			each = append(each, formatCount(r.Aborts[n]))
			if r.Aborts[n] > 0 {
				those = append(those, n+noBreak+formatCount(r.Aborts[n]))
			}
		}
		for i, line := range strings.Split(wrap(strings.Join(those, ", "), reasonsWidth, ""), "\n") {
			line = strings.ReplaceAll(line, noBreak, " ")
			if i == 0 {
				narrow.add(append(slices.Clone(cells), line)...)
				continue
			}
			more := make([]string, len(cells), len(cells)+1)
			narrow.add(append(more, line)...)
		}
		wide.add(append(cells, each...)...)
	}
	g := wide
	if wide.width() > Width { // many protocols have many reasons, each few of them
		g = narrow
	}
	return "Aborted attempts, by reason\n" + g.render()
}

// formatRatio2 writes a ratio that may exceed 1.
func formatRatio2(x float64) string {
	if x >= 1 {
		return digits(x)
	}
	return formatRatio(x)
}

func (c *comparison) classes() string {
	if !slices.ContainsFunc(c.results, func(r *Result) bool { return len(r.Classes) > 1 }) {
		return ""
	}
	g := c.grid("class", "committed", "operations", "abort ratio", "p50", "p99", "most attempts", "starved")
	for _, r := range c.results {
		for i := range r.Classes {
			k := &r.Classes[i]
			g.add(append(c.label(r), k.Name, formatCount(k.Committed), ofCommits(k.Committed, digits(k.OpsMean)), formatRatio(k.AbortRatio),
				ofCommits(k.Committed, formatTime(k.Latency.P50NS)), ofCommits(k.Committed, formatTime(k.Latency.P99NS)),
				ofCommits(k.Committed, formatCount(uint64(k.Attempts.Max))), formatCount(k.Starved))...)
		}
	}
	return "By transaction class\n" + g.render()
}

// clientGroups shows who suffers where clients are not equal.
func (c *comparison) clientGroups() string {
	if !slices.ContainsFunc(c.results, func(r *Result) bool { return len(r.ClientGroups) > 0 }) {
		return ""
	}
	g := c.grid("clocks", "committed", "abort ratio", "p50", "p99", "most attempts", "starved")
	g.left++
	for _, r := range c.results {
		for i := range r.ClientGroups {
			k := &r.ClientGroups[i]
			g.add(append(c.label(r), k.Name, formatCount(k.Committed), formatRatio(k.AbortRatio),
				ofCommits(k.Committed, formatTime(k.Latency.P50NS)), ofCommits(k.Committed, formatTime(k.Latency.P99NS)),
				ofCommits(k.Committed, formatCount(uint64(k.Attempts.Max))), formatCount(k.Starved))...)
		}
	}
	who := "a client a row"
	if slices.ContainsFunc(c.results, func(r *Result) bool { return len(r.ClientGroups) == ClientQuarters }) {
		who = "a quarter of the clients a row"
	}
	by := "by how much theirs are ahead of time"
	if slices.ContainsFunc(c.results, (*Result).clocksMove) {
		by = "by how much theirs were ahead of time at the start; clocks move"
	}
	return "By client clock, " + who + " (" + by + ")\n" + g.render()
}

// clocksMove reports whether the clients' clocks do not stay as far from time as they
// were at the start.
func (r *Result) clocksMove() bool {
	return r.Setting("clock-catch-up") == "true" || r.Setting("clock-drift") != "0" && r.Setting("clock-drift") != ""
}

// leaders shows what came of faults, where leaders were lost.
func (c *comparison) leaders() string {
	if !slices.ContainsFunc(c.results, func(r *Result) bool { return r.Resources.Elections > 0 || r.Resources.LeaderlessNS > 0 }) {
		return ""
	}
	g := c.grid("elections", "without a leader")
	for _, r := range c.results {
		g.add(append(c.label(r), formatCount(r.Resources.Elections), formatTime(r.Resources.LeaderlessNS))...)
	}
	return "Leaders lost and elected in the window (without a leader: the shards' times together)\n" + g.render()
}

// resources shows which station limits the run, and what a commit costs.
func (c *comparison) resources() string {
	if !slices.ContainsFunc(c.results, func(r *Result) bool { return len(r.Resources.Stations) > 0 }) {
		return ""
	}
	g := c.grid("busiest station", "busy", "useful", "queue", "messages", "kB sent", "log entries", "batches", "syncs")
	g.left++
	for _, r := range c.results {
		cells := append(c.label(r), "–", "", "", "")
		if len(r.Resources.Stations) > 0 {
			s := slices.MaxFunc(r.Resources.Stations, func(a, b Station) int { return cmp.Compare(a.Utilisation, b.Utilisation) })
			cells = append(c.label(r), s.Name, formatShare(s.Utilisation), formatShare(s.Useful), digits(s.QueueMean))
		}
		res := &r.Resources
		for _, n := range []uint64{res.MessageCount, res.MessageBytes / 1000, res.LogEntries, res.LogBatches, res.Fsyncs} {
			cells = append(cells, ofCommits(r.Committed, digits(ratio(n, r.Committed))))
		}
		g.add(cells...)
	}
	return "What limits, and what a commit costs (useful: for attempts that committed, by leaders; from messages on: per commit)\n" + g.render()
}

// OracleStation is the name of the timestamp oracle among the stations.
const OracleStation = "oracle"

// oracles shows how far timestamp oracles are used.
func (c *comparison) oracles() string {
	g := c.grid("busy", "queue", "longest queue", "requests", "per commit")
	for _, r := range c.results {
		for _, s := range r.Resources.Stations {
			if s.Name != OracleStation {
				continue
			}
			var asked uint64
			for _, m := range r.Resources.Messages {
				if m.Kind == txnproto.MsgTimestamp.String() {
					asked = m.Count
				}
			}
			g.add(append(c.label(r), formatShare(s.Utilisation), digits(s.QueueMean), formatCount(uint64(s.QueueMax)),
				formatCount(asked), ofCommits(r.Committed, digits(ratio(asked, r.Committed))))...)
		}
	}
	if len(g.rows) == 0 {
		return ""
	}
	return "The timestamp oracle\n" + g.render()
}

func (c *comparison) hottest() string {
	const shown = 5
	g := c.grid("hottest keys: waits + aborts")
	g.left++
	for _, r := range c.results {
		var keys []string
		for _, k := range r.HottestKeys[:min(shown, len(r.HottestKeys))] {
			keys = append(keys, itoa(int64(k.Key))+": "+itoa(int64(k.Waits))+" + "+itoa(int64(k.Aborts)))
		}
		if len(keys) > 0 {
			g.add(append(c.label(r), strings.Join(keys, " · "))...)
		}
	}
	if len(g.rows) == 0 {
		return ""
	}
	return g.render()
}
