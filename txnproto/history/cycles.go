package history

import "slices"

// judge looks for cycles of the serialization graph and reports whether there are any.
func (c *resolver) judge(f *found) (cyclic bool) {
	var rank []uint32
	reach, total := c.backward(nil)
	f.edges += total
	if reach == nil {
		return false
	}
	// Protocols that order by timestamp commit out of order, but begin in it. A short
	// stretch is searched sooner than another order is tried.
	if spanned(reach) > c.nCommit/8 {
		byBegin := c.rankByTxn()
		reach2, _ := c.backward(byBegin)
		if reach2 == nil {
			return false
		}
		if spanned(reach2) < spanned(reach) {
			reach, rank = reach2, byBegin
		}
	}
	sel := c.blocks(reach, rank)
	g := sel.build(c.edges)
	all := view{graph: g, kinds: allEdges}
	comp, cyclic := all.components()
	if !cyclic {
		return false
	}
	core := sel.narrow(comp)
	g = core.build(c.edges)
	g.tidy()
	c.judgeCore(g, core, f)
	return true
}

// backward finds the edges that go backward when transactions are ordered by rank
// (nil: by node). It returns for each place in the order the last place from which
// an edge comes back to it, nil if there is no such edge; and the number of edges.
func (c *resolver) backward(rank []uint32) (reach []uint32, total int) {
	c.edges(func(e edge) {
		total++
		from, to := e.from, e.to
		if rank != nil {
			from, to = rank[from], rank[to]
		}
		if from < to {
			return
		}
		if reach == nil {
			reach = make([]uint32, c.nCommit)
		}
		reach[to] = max(reach[to], from)
	})
	return reach, total
}

// rankByTxn returns each committed node's place in order of TxnID.
func (c *resolver) rankByTxn() []uint32 {
	order := make([]uint32, c.nCommit)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortStableFunc(order, func(a, b uint32) int {
		switch {
		case c.ids[a] < c.ids[b]:
			return -1
		case c.ids[a] > c.ids[b]:
			return 1
		default:
			return 0
		}
	})
	return invert(order)
}

func invert(perm []uint32) []uint32 {
	inv := make([]uint32, len(perm))
	for i, v := range perm {
		inv[v] = uint32(i)
	}
	return inv
}

// spans calls visit for each maximal stretch of the order that backward edges
// cover. A cycle must come back over every place it has passed, so it lies within
// one stretch.
func spans(reach []uint32, visit func(lo, hi uint32)) {
	for i := uint32(0); i < uint32(len(reach)); i++ {
		if reach[i] <= i {
			continue
		}
		lo, hi := i, reach[i]
		for i = lo + 1; i <= hi; i++ {
			hi = max(hi, reach[i])
		}
		i = hi
		visit(lo, hi)
	}
}

// spanned returns how many places backward edges cover.
func spanned(reach []uint32) (n uint32) {
	spans(reach, func(lo, hi uint32) { n += hi - lo + 1 })
	return n
}

// blocks selects the transactions in the stretches, each stretch a group, numbered
// in the order.
func (c *resolver) blocks(reach, rank []uint32) *selection {
	s := newSelection(c.nCommit)
	var order []uint32
	if rank != nil {
		order = invert(rank)
	}
	n := spanned(reach)
	s.node, s.group = make([]uint32, 0, n), make([]uint32, 0, n)
	group := uint32(0)
	spans(reach, func(lo, hi uint32) {
		for p := lo; p <= hi; p++ {
			node := p
			if order != nil {
				node = order[p]
			}
			s.pick(node, group)
		}
		group++
	})
	return s
}

// narrow keeps the nodes of components that have cycles, each a group.
func (s *selection) narrow(comp []uint32) *selection {
	t := newSelection(uint32(len(s.local)))
	for u, node := range s.node {
		if comp[u] != single {
			t.pick(node, comp[u])
		}
	}
	return t
}

// hunt is one kind of search for cycles.
type hunt struct {
	kinds   kindSet
	layered bool
	closing kindSet  // the edges that cycles are looked for through
	breaks  levelSet // by any cycle of the view
	finds   []Kind
}

// hunts are the searches, by the definitions of the levels.
var hunts = []hunt{
	{kinds: onlyWW, closing: onlyWW, breaks: everyLevel, finds: []Kind{G0}},
	{kinds: dependencies, closing: 1 << WR, breaks: fromCommitted, finds: []Kind{G1c}},
	{
		kinds: allEdges, layered: true, closing: 1<<RW | 1<<PredicateRW, breaks: fromSnapshot,
		finds: []Kind{LostUpdate, OTV, GSingle, GNonadjacent, G2},
	},
	{kinds: itemEdges, closing: 1 << RW, breaks: fromRepeatable, finds: []Kind{LostUpdate, OTV, GSingle, GNonadjacent, G2Item}},
	{kinds: allEdges, closing: 1 << PredicateRW, breaks: fromSerial, finds: []Kind{G2}},
}

// judgeCore names the cycles of the part of the graph that is made of them.
func (c *resolver) judgeCore(g *graph, sel *selection, f *found) {
	f.broken |= fromSerial
	known := make(map[string]struct{})
	var cycles [][]link
	for i := range hunts {
		h := &hunts[i]
		v := &view{graph: g, kinds: h.kinds, layered: h.layered}
		comp, cyclic := v.components()
		if !cyclic {
			continue
		}
		f.broken |= h.breaks
		cycles = c.hunt(h, v, comp, f, known, cycles)
	}
	c.report(cycles, sel, f)
}

// hunt appends the shortest cycle through each closing edge of the view, up to the
// bounds of the search.
func (c *resolver) hunt(h *hunt, v *view, comp []uint32, f *found, known map[string]struct{}, cycles [][]link) [][]link {
	pf := newPathFinder(v, comp)
	finds := 0
	n := uint32(len(v.node))
	for from := range n {
		for i := v.off[from]; i < v.off[from+1]; i++ {
			to := v.adj[i] >> kindBits
			if !h.closing.has(EdgeKind(v.adj[i] & kindMask)) {
				continue
			}
			start := to
			if h.layered {
				start = to + n
			}
			if comp[from] == single || comp[from] != comp[start] {
				continue
			}
			if finds >= f.opt.MaxCount || finds > 0 && pf.visited > f.opt.SearchEdges {
				for _, k := range h.finds {
					f.more[k] = true
				}
				return cycles
			}
			cycle := v.links(from, i, pf.path(start, from))
			if h.layered {
				cycle = splitRepeats(cycle)
			}
			key := cycleKey(cycle)
			if _, ok := known[key]; ok {
				continue
			}
			known[key] = struct{}{}
			cycles = append(cycles, cycle)
			finds++
		}
	}
	return cycles
}

// links returns the cycle of an edge and a path back, rotated to start at its
// first node.
func (v *view) links(from, edge uint32, path []uint32) []link {
	cycle := make([]link, 0, len(path)+1)
	u := from
	for _, i := range append([]uint32{edge}, path...) {
		to := v.adj[i] >> kindBits
		cycle = append(cycle, link{v.node[u], v.node[to], EdgeKind(v.adj[i] & kindMask)})
		u = to
	}
	return rotate(cycle)
}

func rotate(cycle []link) []link {
	first := 0
	for i := range cycle {
		if cycle[i].from < cycle[first].from {
			first = i
		}
	}
	return append(slices.Clone(cycle[first:]), cycle[:first]...)
}

// splitRepeats cuts a closed walk without two anti-dependencies in a row down to a
// cycle without them. Where the walk meets a node twice it is two closed walks, and
// one of them has the property too: if joining its ends brought anti-dependencies
// together in both, the walk had them together at that node.
func splitRepeats(walk []link) []link {
	for i := range walk {
		for j := i + 1; j < len(walk); j++ {
			if walk[i].from != walk[j].from {
				continue
			}
			inner := walk[i:j]
			outer := append(slices.Clone(walk[:i]), walk[j:]...)
			if shapeOf(outer).splits() && (!shapeOf(inner).splits() || len(outer) < len(inner)) {
				inner = outer
			}
			return splitRepeats(rotate(inner))
		}
	}
	return walk
}

// splits reports whether the cycle contradicts every choice of snapshots.
func (s shape) splits() bool { return s.anti == 1 || !s.adjacent }

func cycleKey(cycle []link) string {
	parts := make([]uint64, len(cycle))
	for i, l := range cycle {
		parts[i] = uint64(l.from)<<kindBits | uint64(l.kind)
	}
	return signature('c', parts...)
}
