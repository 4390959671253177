package controltest

import (
	"fmt"
	"slices"
	"strings"

	"interleave/txnproto"
)

// Edge is a dependency between two committed attempts.
type Edge struct {
	From, To int // indices in the history
	Kind     string
	Key      txnproto.Key
}

// Edges returns the direct serialization graph of a history: for each key, from
// a version's writer to the next version's (ww) and to its readers (wr), and
// from these to the next version's writer (rw).
func Edges(history []*Attempt) []Edge {
	type version struct {
		key txnproto.Key
		v   txnproto.Version
	}
	writer := map[version]int{}
	order := map[txnproto.Key][]txnproto.Version{}
	for i, a := range history {
		for _, w := range a.Writes {
			writer[version{w.Key, w.Version}] = i
			order[w.Key] = append(order[w.Key], w.Version)
		}
	}
	for _, vs := range order { // order: each by itself
		slices.Sort(vs)
	}
	// around returns the versions before and after v of k, and whether there is one after.
	around := func(k txnproto.Key, v txnproto.Version) (before, after txnproto.Version, ok bool) {
		vs := order[k]
		i, found := slices.BinarySearch(vs, v)
		if i > 0 {
			before = vs[i-1]
		}
		if found {
			i++
		}
		if i == len(vs) {
			return before, 0, false
		}
		return before, vs[i], true
	}
	var edges []Edge
	for i, a := range history {
		for _, w := range a.Writes {
			before, _, _ := around(w.Key, w.Version)
			if j, ok := writer[version{w.Key, before}]; ok && j != i {
				edges = append(edges, Edge{j, i, "ww", w.Key})
			}
		}
		for _, r := range a.Reads {
			if j, ok := writer[version{r.Key, r.Version}]; ok && j != i {
				edges = append(edges, Edge{j, i, "wr", r.Key})
			}
			if _, after, ok := around(r.Key, r.Version); ok {
				if j := writer[version{r.Key, after}]; j != i {
					edges = append(edges, Edge{i, j, "rw", r.Key})
				}
			}
		}
	}
	return edges
}

// Serializable returns an error that shows a cycle of dependencies, or nil.
func Serializable(history []*Attempt) error {
	out := make([][]Edge, len(history))
	for _, e := range Edges(history) {
		out[e.From] = append(out[e.From], e)
	}
	const (
		unseen = iota
		open
		done
	)
	state := make([]int, len(history))
	var path []Edge
	var visit func(v int) []Edge
	visit = func(v int) []Edge {
		state[v] = open
		for _, e := range out[v] {
			path = append(path, e)
			switch state[e.To] {
			case open:
				i := slices.IndexFunc(path, func(p Edge) bool { return p.From == e.To })
				return path[i:]
			case unseen:
				if c := visit(e.To); c != nil {
					return c
				}
			}
			path = path[:len(path)-1]
		}
		state[v] = done
		return nil
	}
	for v := range history {
		if state[v] != unseen {
			continue
		}
		if c := visit(v); c != nil {
			var b strings.Builder
			for _, e := range c {
				fmt.Fprintf(&b, "%v -%s(%d)-> ", history[e.From].ID, e.Kind, e.Key)
			}
			return fmt.Errorf("not serializable: %s%v", b.String(), history[c[0].From].ID)
		}
	}
	return nil
}
