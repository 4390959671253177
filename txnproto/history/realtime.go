package history

import (
	"fmt"
	"slices"
	"sort"
)

// timeline is what real time adds to the serialization graph: T1 comes before T2
// when it ended before T2 began.
type timeline struct {
	begin, end []Time   // by committed node
	rank       []uint32 // by committed node: place in order of end; nil: node order is that
}

func (c *resolver) loadTimeline() *timeline {
	t := &timeline{begin: make([]Time, 0, c.nCommit), end: make([]Time, 0, c.nCommit)}
	c.eachRecord(
		func(cur *cursor, _ int, h *commitHead) {
			skipReads(cur, h)
			t.begin = append(t.begin, h.Begin)
			t.end = append(t.end, h.End)
		},
		func(TxnID) {},
		func(cur *cursor, _ TxnID, n int) { skipWrites(cur, n) })
	if slices.IsSorted(t.end) {
		return t
	}
	order := make([]uint32, c.nCommit)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortStableFunc(order, func(a, b uint32) int {
		switch {
		case t.end[a] < t.end[b]:
			return -1
		case t.end[a] > t.end[b]:
			return 1
		default:
			return 0
		}
	})
	t.rank = invert(order)
	return t
}

// judgeRealTime looks for cycles with real-time edges in a graph that has none
// without. Ordered by end, real-time edges go forward, so again only the stretches
// that backward edges span can hold a cycle.
func (c *resolver) judgeRealTime(f *found) {
	t := c.loadTimeline()
	reach, _ := c.backward(t.rank)
	if reach == nil {
		return
	}
	sel := c.blocks(reach, t.rank)
	g := sel.build(c.edges)
	g.tidy()
	cycles := t.pairs(g, f)
	if len(cycles) == 0 {
		cycles = t.longer(g, sel, f)
	}
	if len(cycles) == 0 {
		return
	}
	f.broken |= onlyStrict
	c.reportRealTime(cycles, sel, t, f)
}

// pairs returns the cycles of one edge and one step back in time.
func (t *timeline) pairs(g *graph, f *found) (cycles [][]link) {
	seen := link{from: none}
	for u, from := range g.node {
		for _, a := range g.adj[g.off[u]:g.off[u+1]] {
			to := g.node[a>>kindBits]
			if t.end[to] >= t.begin[from] || seen.from == from && seen.to == to {
				continue
			}
			if len(cycles) >= f.opt.MaxCount {
				f.more[GRealTime] = true
				return cycles
			}
			seen = link{from, to, EdgeKind(a & kindMask)}
			cycles = append(cycles, []link{seen, {to, from, RealTime}})
		}
	}
	return cycles
}

// longer returns cycles of several edges and steps back in time. Instead of an edge
// for every ordered pair, each transaction has a moment, that of its end: it leads
// to its moment, moments to the next one, and the last moment before a transaction
// began to that transaction.
func (t *timeline) longer(g *graph, sel *selection, f *found) (cycles [][]link) {
	x := t.withMoments(g, sel)
	v := &view{graph: x, kinds: allEdges | 1<<RealTime}
	comp, cyclic := v.components()
	if !cyclic {
		return nil
	}
	pf := newPathFinder(v, comp)
	known := make(map[string]struct{})
	for from := range uint32(len(g.node)) {
		for i := x.off[from]; i < x.off[from+1]; i++ {
			to := x.adj[i] >> kindBits
			if EdgeKind(x.adj[i]&kindMask) == RealTime || comp[from] == single || comp[from] != comp[to] {
				continue
			}
			if len(cycles) >= f.opt.MaxCount || len(cycles) > 0 && pf.visited > f.opt.SearchEdges {
				f.more[GRealTime] = true
				return cycles
			}
			cycle := v.skipMoments(from, i, pf.path(to, from))
			key := cycleKey(cycle)
			if _, ok := known[key]; !ok {
				known[key] = struct{}{}
				cycles = append(cycles, cycle)
			}
		}
	}
	return cycles
}

// withMoments returns the graph with a moment for each node: node n+u is the end of u.
func (t *timeline) withMoments(g *graph, sel *selection) *graph {
	n := uint32(len(g.node))
	starts := make([][]uint32, n) // by node: the transactions that its moment leads to
	for lo := uint32(0); lo < n; {
		hi := lo + 1
		for hi < n && sel.group[hi] == sel.group[lo] {
			hi++
		}
		block := g.node[lo:hi]
		for u := lo; u < hi; u++ {
			b := t.begin[g.node[u]]
			before := sort.Search(len(block), func(i int) bool { return t.end[block[i]] >= b })
			if before > 0 {
				m := lo + uint32(before) - 1
				starts[m] = append(starts[m], u)
			}
		}
		lo = hi
	}
	x := &graph{node: append(slices.Clone(g.node), g.node...), off: make([]uint32, 1, 2*n+1)}
	for u := range n {
		x.adj = append(x.adj, g.adj[g.off[u]:g.off[u+1]]...)
		x.adj = append(x.adj, (n+u)<<kindBits|uint32(RealTime))
		x.off = append(x.off, uint32(len(x.adj)))
	}
	for u := range n {
		if u+1 < n && sel.group[u+1] == sel.group[u] {
			x.adj = append(x.adj, (n+u+1)<<kindBits|uint32(RealTime))
		}
		for _, s := range starts[u] {
			x.adj = append(x.adj, s<<kindBits|uint32(RealTime))
		}
		x.off = append(x.off, uint32(len(x.adj)))
	}
	return x
}

// skipMoments returns the cycle of an edge and a path back with each way through
// moments as one real-time edge.
func (v *view) skipMoments(from, edge uint32, path []uint32) []link {
	n := uint32(len(v.node) / 2)
	var cycle []link
	left := from // the transaction left last
	for _, i := range append([]uint32{edge}, path...) {
		to, kind := v.adj[i]>>kindBits, EdgeKind(v.adj[i]&kindMask)
		if to >= n {
			continue
		}
		if k := len(cycle); kind == RealTime && k > 0 && cycle[k-1].kind == RealTime {
			cycle[k-1].to = v.node[to]
		} else {
			cycle = append(cycle, link{v.node[left], v.node[to], kind})
		}
		left = to
	}
	return rotate(cycle)
}

// reportRealTime explains cycles with real-time edges and adds them to f.
func (c *resolver) reportRealTime(cycles [][]link, sel *selection, t *timeline, f *found) {
	w := c.reasons(cycles, sel)
	w.realTime = func(l link) string {
		return fmt.Sprintf("%v ended at %d ns; %v began at %d ns", c.ids[l.from], t.end[l.from], c.ids[l.to], t.begin[l.to])
	}
	for _, cycle := range cycles {
		c.reportCycle(cycle, w, f)
	}
}
