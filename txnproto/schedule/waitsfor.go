package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// WaitEdge says that From waits for To.
type WaitEdge struct {
	From Txn    `json:"from"`
	To   Txn    `json:"to"`
	Over string `json:"over,omitempty"` // what for: an item
}

// WaitsFor is a waits-for graph: who waits for whom at some moment.
type WaitsFor struct {
	Edges []WaitEdge `json:"edges"`
	// Cycle is a shortest cycle, its first transaction repeated at the end, or empty:
	// a deadlock.
	Cycle []Txn `json:"cycle,omitempty"`
}

// NewWaitsFor returns the graph of the given edges.
func NewWaitsFor(edges []WaitEdge) WaitsFor {
	w := WaitsFor{Edges: slices.Clone(edges)}
	w.Cycle = w.graph().Cycle
	return w
}

// graph is w in the form that is drawn.
func (w *WaitsFor) graph() *Graph {
	g := &Graph{}
	for _, e := range w.Edges {
		g.Txns = append(g.Txns, e.From, e.To)
	}
	slices.Sort(g.Txns)
	g.Txns = slices.Compact(g.Txns)
	for _, e := range w.Edges {
		old := g.Edge(e.From, e.To)
		if old == nil {
			g.Edges = append(g.Edges, Edge{From: e.From, To: e.To, text: []string{}})
			old = &g.Edges[len(g.Edges)-1]
		}
		if e.Over != "" && !slices.Contains(old.text, e.Over) {
			old.text = append(old.text, e.Over)
		}
	}
	g.Cycle = nil
	for _, i := range shortestCycle(len(g.Txns), func(i, j int) bool { return g.Edge(g.Txns[i], g.Txns[j]) != nil }) {
		g.Cycle = append(g.Cycle, g.Txns[i])
	}
	return g
}

// SVG returns the graph as a picture: an arrow from who waits to who is waited for,
// with what for, a shortest cycle in red.
func (w *WaitsFor) SVG() string { return drawGraph(w.graph(), "Waits-for graph") }

// DOT returns the graph in Graphviz's language.
func (w *WaitsFor) DOT() string { return w.graph().dot("waits_for", "Waits-for graph") }

// String returns the edges in words: T1 waits for T2 over x.
func (w *WaitsFor) String() string {
	var out []string
	for _, e := range w.Edges {
		s := fmt.Sprintf("%v waits for %v", e.From, e.To)
		if e.Over != "" {
			s += " over " + e.Over
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}
