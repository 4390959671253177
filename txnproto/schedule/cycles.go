package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// edgeKinds is a set of the kinds of dependency that an edge of a cycle may have.
type edgeKinds uint8

const (
	kindWW edgeKinds = 1 << iota
	kindWR
	kindRW     // on an item
	kindRWPred // between a scan and an insert or delete
	kindDep    = kindWW | kindWR
	kindAll    = kindDep | kindRW | kindRWPred
)

func kindOf(c Conflict) edgeKinds {
	switch c.Kind {
	case WriteWrite:
		return kindWW
	case WriteRead:
		return kindWR
	case ReadWrite:
		if c.Predicate {
			return kindRWPred
		}
		return kindRW
	default:
		panic(fmt.Sprintf("schedule: unknown dependency %d", c.Kind))
	}
}

// first returns the edge's first conflict of one of the kinds, an anti-dependency
// only when there is no other, or nil.
func (e *Edge) first(kinds edgeKinds) *Conflict {
	if kinds&kindDep != 0 && kinds&^kindDep != 0 {
		if c := e.first(kinds & kindDep); c != nil {
			return c
		}
	}
	for i := range e.Conflicts {
		if kindOf(e.Conflicts[i])&kinds != 0 {
			return &e.Conflicts[i]
		}
	}
	return nil
}

// cycles names the kinds of cycle that the graph has, each with a shortest one. The
// edges are Adya's direct dependencies and those that follow from them through
// write-write dependencies; which kinds of cycle there are is the same.
func (f *finder) cycles(g *Graph) {
	w := newWays(g)
	f.cycle(w, G0, kindWW, kindWW, 0)
	f.cycle(w, G1c, kindWR, kindDep, 0)
	f.cycle(w, GSingle, kindRW|kindRWPred, kindDep, 0)
	// A cycle with several rw counts only when none of its rw closes one alone.
	f.cycle(w, G2Item, kindRW, kindDep|kindRW, kindDep)
	f.cycle(w, G2, kindRWPred, kindAll, kindDep)
}

// cycle looks for a shortest cycle of an edge of one of the kinds lead and a way back
// by edges of the kinds rest; edges that are themselves of a kind without, or have a
// way back by those, are left out.
func (f *finder) cycle(w *ways, code Code, lead, rest, without edgeKinds) {
	var best []hop
	for i := range w.g.Edges {
		e := &w.g.Edges[i]
		c := e.first(lead)
		if len(best) == 2 {
			break // there is no shorter cycle
		}
		if c == nil || without != 0 && (e.first(without) != nil || w.way(e.To, e.From, without) != nil) {
			continue
		}
		back := w.way(e.To, e.From, rest)
		if back == nil || best != nil && len(back)+1 >= len(best) {
			continue
		}
		best = append([]hop{{e, c}}, back...)
	}
	if best == nil {
		return
	}
	n := Anomaly{Code: code, Name: code.Name(), Group: code.Group()}
	var why []string
	for _, h := range best {
		n.Txns = append(n.Txns, h.edge.From)
		if !slices.Contains(n.Items, h.by.Item) {
			n.Items = append(n.Items, h.by.Item)
		}
		for _, s := range []Step{h.by.First, h.by.Second} {
			if !slices.Contains(n.Steps, s) {
				n.Steps = append(n.Steps, s)
			}
		}
		why = append(why, fmt.Sprintf("%v → %v by %s %v (%v before %v)", h.edge.From, h.edge.To, h.by.Item, h.by.Kind, h.by.First, h.by.Second))
	}
	slices.SortFunc(n.Steps, func(x, y Step) int { return x.N - y.N })
	n.Because = strings.Join(why, "; ")
	f.found = append(f.found, n)
}

// hop is an edge of a path and the conflict that counts on it.
type hop struct {
	edge *Edge
	by   *Conflict
}

// ways finds paths in a graph.
type ways struct {
	g   *Graph
	pos map[Txn]int
	out [][]*Edge // by position of From
}

func newWays(g *Graph) *ways {
	w := &ways{g: g, pos: map[Txn]int{}, out: make([][]*Edge, len(g.Txns))}
	for i, t := range g.Txns {
		w.pos[t] = i
	}
	for i := range g.Edges {
		from := w.pos[g.Edges[i].From]
		w.out[from] = append(w.out[from], &g.Edges[i])
	}
	return w
}

// way returns a shortest path by edges of the given kinds, or nil.
func (w *ways) way(from, to Txn, kinds edgeKinds) []hop {
	prev := make([]hop, len(w.g.Txns))
	queue := []Txn{from}
	for len(queue) > 0 && prev[w.pos[to]].edge == nil {
		t := queue[0]
		queue = queue[1:]
		for _, e := range w.out[w.pos[t]] {
			at := w.pos[e.To]
			if prev[at].edge != nil || e.To == from {
				continue
			}
			if c := e.first(kinds); c != nil {
				prev[at] = hop{e, c}
				queue = append(queue, e.To)
			}
		}
	}
	var out []hop
	for t := to; t != from; {
		h := prev[w.pos[t]]
		if h.edge == nil {
			return nil
		}
		out = append(out, h)
		t = h.edge.From
	}
	slices.Reverse(out)
	return out
}
