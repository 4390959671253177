package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Dependency is how one operation bears on a later one.
type Dependency uint8

// The dependencies, by the kinds of the earlier and the later operation.
const (
	WriteRead Dependency = iota
	ReadWrite
	WriteWrite
	numDependencies
)

var dependencyNames = [numDependencies]string{"wr", "rw", "ww"}

// String returns wr, rw or ww.
func (d Dependency) String() string {
	if d >= numDependencies {
		panic(fmt.Sprintf("schedule: unknown dependency %d", uint8(d)))
	}
	return dependencyNames[d]
}

// MarshalText writes the dependency's name.
func (d Dependency) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Conflict is a pair of conflicting operations of two transactions.
type Conflict struct {
	Item   Item       `json:"item"`
	Kind   Dependency `json:"kind"`
	First  Step       `json:"first"`
	Second Step       `json:"second"`
	// Predicate: a scan, and an insert or delete within its range.
	Predicate bool `json:"predicate,omitempty"`
}

// Step is an operation's place in the schedule, from 1, and its name.
type Step struct {
	N  int    `json:"step"`
	Op string `json:"op"`
}

// String returns r1(x) at step 3.
func (s Step) String() string { return fmt.Sprintf("%s at step %d", s.Op, s.N) }

// Edge says that From comes before To in every equivalent serial order.
type Edge struct {
	From Txn `json:"from"`
	To   Txn `json:"to"`
	// Conflicts has the first pair of each item and kind, in order of the later
	// operation.
	Conflicts []Conflict `json:"conflicts"`

	text []string // what stands at the edge of a graph that is not of conflicts; else nil
}

// Graph is the precedence graph of the projection.
type Graph struct {
	Txns  []Txn  `json:"transactions"`
	Edges []Edge `json:"edges"` // in order of From, To
	// Cycle is a shortest cycle, its first transaction repeated at the end, or empty.
	Cycle []Txn `json:"cycle,omitempty"`
}

// Edge returns the edge between two transactions, or nil.
func (g *Graph) Edge(from, to Txn) *Edge {
	for i := range g.Edges {
		if e := &g.Edges[i]; e.From == from && e.To == to {
			return e
		}
	}
	return nil
}

// labels are an edge's conflicts in short: "x rw, ww".
func (e *Edge) labels() []string {
	if e.text != nil {
		return e.text
	}
	var out []string
	var items []Item
	for _, c := range e.Conflicts {
		if !slices.Contains(items, c.Item) {
			items = append(items, c.Item)
		}
	}
	slices.SortFunc(items, CompareItems)
	for _, it := range items {
		var kinds []string
		for _, c := range e.Conflicts {
			if c.Item == it && !slices.Contains(kinds, c.Kind.String()) {
				kinds = append(kinds, c.Kind.String())
			}
		}
		slices.Sort(kinds)
		out = append(out, string(it)+" "+strings.Join(kinds, ", "))
	}
	return out
}

func dependency(x, y access) Dependency {
	switch {
	case x.write && y.write:
		return WriteWrite
	case x.write:
		return WriteRead
	default:
		return ReadWrite
	}
}

// graph builds the precedence graph (Bernstein, Hadzilacos and Goodman, Concurrency
// Control and Recovery in Database Systems, 1987, section 2.3: serialization graph).
// Every pair of conflicting operations makes an edge, not only neighbouring ones; the
// cycles are the same.
func (a *analysis) graph() *Graph {
	n := len(a.members)
	edges := make([]*Edge, n*n)
	for j, kj := range a.kept {
		y := a.acc[kj]
		for _, ki := range a.kept[:j] {
			x := a.acc[ki]
			if conflicting(x, y) {
				a.addConflict(edges, x, y)
			}
		}
	}
	g := &Graph{Txns: a.txns(a.alive)}
	for _, e := range edges {
		if e != nil {
			g.Edges = append(g.Edges, *e)
		}
	}
	g.Cycle = a.txns(shortestCycle(n, func(i, j int) bool { return edges[i*n+j] != nil }))
	return g
}

func (a *analysis) addConflict(edges []*Edge, x, y access) {
	at := x.txn*len(a.members) + y.txn
	if edges[at] == nil {
		edges[at] = &Edge{From: a.txn(x.txn), To: a.txn(y.txn)}
	}
	e := edges[at]
	c := Conflict{
		Item: a.items[x.item], Kind: dependency(x, y),
		First: a.stepOf(x.step), Second: a.stepOf(y.step),
		Predicate: x.scan && y.rows || x.rows && y.scan,
	}
	for _, old := range e.Conflicts {
		if old.Item == c.Item && old.Kind == c.Kind && old.Predicate == c.Predicate {
			return
		}
	}
	e.Conflicts = append(e.Conflicts, c)
}

func (a *analysis) stepOf(step int) Step { return Step{step + 1, a.s.Ops[step].name()} }

// shortestCycle returns a shortest cycle of n nodes with the first node repeated at
// the end, or nil: of the shortest, the one with the lowest first node, found by a
// breadth-first search from each node.
func shortestCycle(n int, edge func(i, j int) bool) []int {
	var best []int
	prev := make([]int, n)
	for from := range n {
		for i := range prev {
			prev[i] = -1
		}
		queue := []int{from}
		found := false
		for len(queue) > 0 && !found {
			i := queue[0]
			queue = queue[1:]
			for j := range n {
				if !edge(i, j) {
					continue
				}
				if j == from {
					prev[from], found = i, true
					break
				}
				if prev[j] < 0 {
					prev[j] = i
					queue = append(queue, j)
				}
			}
		}
		if !found {
			continue
		}
		cycle := []int{from}
		for i := prev[from]; i != from; i = prev[i] {
			cycle = append(cycle, i)
		}
		cycle = append(cycle, from)
		slices.Reverse(cycle)
		if best == nil || len(cycle) < len(best) {
			best = cycle
		}
	}
	return best
}

// Orders are serial orders equivalent to a schedule.
type Orders struct {
	// List holds the first orders, at most Options.MaxOrders, in order of the
	// transactions' numbers.
	List [][]Txn `json:"list"`
	// Count is how many there are, or a lower bound when More.
	Count int  `json:"count"`
	More  bool `json:"more,omitempty"`
}

// countLimit bounds the enumeration of serial orders.
const countLimit = 10000

// topological enumerates the orders of the graph's transactions that keep all edges.
func (g *Graph) topological(list int) Orders {
	n := len(g.Txns)
	before := make([]int, n) // edges still to be met
	next := make([][]int, n)
	for _, e := range g.Edges {
		i, j := slices.Index(g.Txns, e.From), slices.Index(g.Txns, e.To)
		next[i] = append(next[i], j)
		before[j]++
	}
	out := Orders{List: [][]Txn{}}
	order := make([]int, 0, n)
	used := make([]bool, n)
	var place func()
	place = func() {
		if out.More {
			return
		}
		if len(order) == n {
			out.add(list, g.Txns, order)
			return
		}
		for i := range n {
			if used[i] || before[i] > 0 {
				continue
			}
			used[i] = true
			order = append(order, i)
			for _, j := range next[i] {
				before[j]--
			}
			place()
			for _, j := range next[i] {
				before[j]++
			}
			order = order[:len(order)-1]
			used[i] = false
		}
	}
	place()
	return out
}

func (o *Orders) add(list int, names []Txn, order []int) {
	if o.Count == countLimit {
		o.More = true
		return
	}
	o.Count++
	if len(o.List) < list {
		named := make([]Txn, len(order))
		for i, t := range order {
			named[i] = names[t]
		}
		o.List = append(o.List, named)
	}
}

// arrows joins transactions: T1 → T2 → T1.
func arrows(txns []Txn, sep string) string {
	names := make([]string, len(txns))
	for i, t := range txns {
		names[i] = t.String()
	}
	return strings.Join(names, sep)
}
