package reports

import (
	"slices"
	"strings"
)

// counters shows what protocols count for themselves: writes skipped, versions kept.
func (c *comparison) counters() string {
	g := c.grid("counted by the protocol itself")
	g.left++
	for _, r := range c.results {
		var names []string
		for name := range r.ProtocolExtra { // order: sorted below
			names = append(names, name)
		}
		slices.Sort(names)
		for i, name := range names {
			names[i] = strings.ReplaceAll(name, "-", " ") + " " + formatCount(r.ProtocolExtra[name])
		}
		if len(names) > 0 {
			g.add(append(c.label(r), strings.Join(names, " · "))...)
		}
	}
	if len(g.rows) == 0 {
		return ""
	}
	return g.render()
}
