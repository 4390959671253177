package reports

import "strings"

// seedGroup is the runs that differ in nothing but their seed.
type seedGroup struct {
	label  []string
	others string // the label without the protocol
	runs   map[string]*Result
	seeds  []string // in order
}

// overSeeds shows means over the seeds, with 95 % intervals by Student's t, and
// how each protocol differs from the first one of its settings: on the same
// seeds, clients issue the same programs, so the differences are taken in pairs.
func (c *comparison) overSeeds() string {
	groups := c.seedGroups()
	if len(groups) == len(c.results) {
		return ""
	}
	heads := c.labelHeads()
	g := &grid{heads: [][]string{append(without(heads, heads, "seed"), "seeds", "commits/s", "±", "abort ratio", "±", "p99", "±", "difference", "±")}}
	g.left = len(without(heads, heads, "seed"))
	for i := range groups {
		x := &groups[i]
		throughput := x.interval(func(r *Result) float64 { return r.Throughput })
		aborts := x.interval(func(r *Result) float64 { return r.AbortRatio })
		p99 := x.interval(func(r *Result) float64 { return float64(r.Latency.P99NS) })
		cells := append(append([]string{}, x.label...), itoa(int64(len(x.seeds))),
			formatRate(throughput.Mean), formatRate(throughput.Half), formatRatio(aborts.Mean), formatRatio(aborts.Half),
			formatTime(int64(p99.Mean)), formatTime(int64(p99.Half)))
		g.add(append(cells, x.difference(firstOf(groups, x))...)...)
	}
	return "Over seeds: mean ± 95 % (Student); the last columns: mean difference from the first protocol, seed by seed\n" + g.render()
}

// without returns the cells whose head is not name.
func without(cells, heads []string, name string) []string {
	var out []string
	for i, c := range cells {
		if heads[i] != name {
			out = append(out, c)
		}
	}
	return out
}

func (c *comparison) seedGroups() []seedGroup {
	var groups []seedGroup
	at := map[string]int{}
	heads := c.labelHeads()
	for _, r := range c.results {
		label := without(c.label(r), heads, "seed")
		key := strings.Join(label, "\x00")
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key] = i
			groups = append(groups, seedGroup{label: label, others: strings.Join(label[1:], "\x00"), runs: map[string]*Result{}})
		}
		seed := r.Setting("seed")
		if groups[i].runs[seed] == nil {
			groups[i].seeds = append(groups[i].seeds, seed)
		}
		groups[i].runs[seed] = r
	}
	return groups
}

// firstOf returns the first group with the settings of x but for the protocol.
func firstOf(groups []seedGroup, x *seedGroup) *seedGroup {
	for i := range groups {
		if groups[i].others == x.others {
			return &groups[i]
		}
	}
	return x
}

func (x *seedGroup) interval(of func(*Result) float64) Interval {
	values := make([]float64, len(x.seeds))
	for i, s := range x.seeds {
		values[i] = of(x.runs[s])
	}
	return intervalOf(values)
}

// difference returns the cells of the paired difference in throughput from base.
func (x *seedGroup) difference(base *seedGroup) []string {
	if x == base {
		return []string{"", ""}
	}
	var d []float64
	for _, s := range x.seeds {
		if b, ok := base.runs[s]; ok {
			d = append(d, x.runs[s].Throughput-b.Throughput)
		}
	}
	if len(d) < 2 {
		return []string{"–", ""}
	}
	i := intervalOf(d)
	sign := "+"
	if i.Mean < 0 {
		sign, i.Mean = "−", -i.Mean
	}
	return []string{sign + formatRate(i.Mean), formatRate(i.Half)}
}
