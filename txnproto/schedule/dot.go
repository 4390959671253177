package schedule

import (
	"fmt"
	"strings"
)

// GraphDOT returns the precedence graph in Graphviz's language. Edges bear the items
// and kinds of their conflicts; those of the shortest cycle are red.
func (c *Classification) GraphDOT() string { return c.Graph.dot("precedence", "Precedence graph") }

func (g *Graph) dot(name, title string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", name)
	fmt.Fprintf(&b, "  graph [label=\"%s\", labelloc=t, fontname=\"sans-serif\"];\n", title)
	b.WriteString("  node [shape=circle, fontname=\"sans-serif\"];\n")
	b.WriteString("  edge [fontname=\"sans-serif\", fontsize=11];\n")
	for _, t := range g.Txns {
		fmt.Fprintf(&b, "  %v;\n", t)
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		color := ""
		if g.onCycle(e) {
			color = ", color=\"#b3261e\", fontcolor=\"#b3261e\""
		}
		fmt.Fprintf(&b, "  %v -> %v [label=\"%s\"%s];\n", e.From, e.To, strings.Join(e.labels(), "\\n"), color)
	}
	b.WriteString("}\n")
	return b.String()
}

// onCycle reports whether the edge is one of the shortest cycle.
func (g *Graph) onCycle(e *Edge) bool {
	for i := 1; i < len(g.Cycle); i++ {
		if g.Cycle[i-1] == e.From && g.Cycle[i] == e.To {
			return true
		}
	}
	return false
}
