package history

import "slices"

// Adjacency entries are a node and the kind of the edge to it.
const (
	kindBits = 3
	kindMask = 1<<kindBits - 1
	maxNodes = 1<<(32-kindBits-1) - 1 // half: the snapshot view has two layers
)

// graph is part of the serialization graph in compressed rows. Its nodes are
// numbered from 0 apart from those of the history.
type graph struct {
	node []uint32 // by graph node: node of the history
	off  []uint32 // by graph node: its first edge; one more at the end
	adj  []uint32 // to << kindBits | kind
}

// selection picks nodes of the history for a graph, in groups that edges between
// which are left out, since no cycle uses them.
type selection struct {
	local []uint32 // by node of the history: graph node, or none
	in    []uint64 // by node of the history, a bit: local is not none
	node  []uint32 // by graph node
	group []uint32 // by graph node
}

// newSelection returns an empty selection from n nodes.
func newSelection(n uint32) *selection {
	s := &selection{local: make([]uint32, n), in: make([]uint64, n/64+1)}
	for i := range s.local {
		s.local[i] = none
	}
	return s
}

// pick adds a node of the history.
func (s *selection) pick(node, group uint32) {
	s.local[node] = uint32(len(s.node))
	s.in[node/64] |= 1 << (node % 64)
	s.node = append(s.node, node)
	s.group = append(s.group, group)
}

// keeps returns the graph nodes of an edge, if it is kept. Most edges are not, and
// the bits that say so stay in the cache.
func (s *selection) keeps(e *edge) (from, to uint32, ok bool) {
	if (s.in[e.from/64]>>(e.from%64))&(s.in[e.to/64]>>(e.to%64))&1 == 0 {
		return 0, 0, false
	}
	from, to = s.local[e.from], s.local[e.to]
	return from, to, s.group[from] == s.group[to]
}

// build collects the edges between selected nodes of one group.
func (s *selection) build(edges func(yield func(e edge))) *graph {
	g := &graph{node: s.node, off: make([]uint32, len(s.node)+1)}
	edges(func(e edge) {
		if from, _, ok := s.keeps(&e); ok {
			g.off[from+1]++
		}
	})
	for i := range s.node {
		g.off[i+1] += g.off[i]
	}
	g.adj = make([]uint32, g.off[len(s.node)])
	fill := slices.Clone(g.off[:len(s.node)])
	edges(func(e edge) {
		if from, to, ok := s.keeps(&e); ok {
			g.adj[fill[from]] = to<<kindBits | uint32(e.kind)
			fill[from]++
		}
	})
	return g
}

// tidy sorts each node's edges, dependencies before anti-dependencies, and drops
// repeated ones.
func (g *graph) tidy() {
	out := uint32(0)
	lo := uint32(0)
	for u := range g.node {
		hi := g.off[u+1]
		row := g.adj[lo:hi]
		slices.SortFunc(row, func(a, b uint32) int {
			if d := int(a&kindMask) - int(b&kindMask); d != 0 {
				return d
			}
			return int(a) - int(b)
		})
		lo = hi
		out += uint32(copy(g.adj[out:], slices.Compact(row)))
		g.off[u+1] = out
	}
	g.adj = g.adj[:out]
}

// view is a graph restricted to some kinds of edges. A layered view has each node
// twice, and its cycles are those without two anti-dependencies in a row: node u
// in the lower layer may leave by any edge; in the upper layer, n+u, it was
// entered by an anti-dependency and can leave only by a dependency.
type view struct {
	*graph
	kinds   kindSet
	layered bool
}

func (v *view) size() int {
	if v.layered {
		return 2 * len(v.node)
	}
	return len(v.node)
}

// base returns the graph node of a view node.
func (v *view) base(u uint32) uint32 {
	if n := uint32(len(v.node)); u >= n {
		return u - n
	}
	return u
}

// target returns the view node that edge i leads to from u, if the view has it.
func (v *view) target(u, i uint32) (uint32, bool) {
	a := v.adj[i]
	k := EdgeKind(a & kindMask)
	if !v.kinds.has(k) {
		return 0, false
	}
	to := a >> kindBits
	if v.layered && k.anti() {
		n := uint32(len(v.node))
		return to + n, u < n
	}
	return to, true
}

// single marks a node that is a component of its own.
const single = none - 1

// frame is a node being visited and its next edge.
type frame struct{ u, i uint32 }

// components returns the strongly connected component of each node, or single,
// and whether there is one of several nodes: a cycle. Tarjan, "Depth-first search
// and linear graph algorithms", SIAM J. Computing 1972, without recursion.
func (v *view) components() (comp []uint32, cyclic bool) {
	n := v.size()
	comp = make([]uint32, n)
	num, low := make([]uint32, n), make([]uint32, n)
	for i := range comp {
		comp[i] = none
	}
	var stack []uint32
	var calls []frame
	count, nextComp := uint32(0), uint32(0)
	open := func(u uint32) {
		count++
		num[u], low[u] = count, count
		stack = append(stack, u)
		calls = append(calls, frame{u, v.off[v.base(u)]})
	}
	for root := range uint32(n) {
		if num[root] != 0 {
			continue
		}
		open(root)
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			u := f.u
			if f.i < v.off[v.base(u)+1] {
				w, ok := v.target(u, f.i)
				f.i++
				switch {
				case !ok:
				case num[w] == 0:
					open(w)
				case comp[w] == none:
					low[u] = min(low[u], num[w])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				p := calls[len(calls)-1].u
				low[p] = min(low[p], low[u])
			}
			if low[u] != num[u] {
				continue
			}
			if stack[len(stack)-1] == u {
				stack = stack[:len(stack)-1]
				comp[u] = single
				continue
			}
			for w := none; w != u; {
				w = stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				comp[w] = nextComp
			}
			nextComp++
		}
	}
	return comp, nextComp > 0
}

// pathFinder finds shortest paths in a view by breadth-first search.
type pathFinder struct {
	*view
	comp    []uint32
	mark    []uint32 // by view node: the search that reached it last
	via     []uint32 // by view node: the edge it was reached by
	parent  []uint32
	queue   []uint32
	search  uint32
	visited int // edges looked at so far
}

func newPathFinder(v *view, comp []uint32) *pathFinder {
	n := v.size()
	return &pathFinder{view: v, comp: comp, mark: make([]uint32, n), via: make([]uint32, n), parent: make([]uint32, n)}
}

// path returns the edges of a shortest path between two nodes of one component,
// as positions in adj. There is one.
func (p *pathFinder) path(from, to uint32) []uint32 {
	p.search++
	p.queue = append(p.queue[:0], from)
	p.mark[from] = p.search
	for head := 0; p.mark[to] != p.search; head++ {
		u := p.queue[head]
		b := p.base(u)
		for i := p.off[b]; i < p.off[b+1]; i++ {
			p.visited++
			w, ok := p.target(u, i)
			if !ok || p.mark[w] == p.search || p.comp[w] != p.comp[from] {
				continue
			}
			p.mark[w], p.via[w], p.parent[w] = p.search, i, u
			p.queue = append(p.queue, w)
		}
	}
	var out []uint32
	for u := to; u != from; u = p.parent[u] {
		out = append(out, p.via[u])
	}
	slices.Reverse(out)
	return out
}
