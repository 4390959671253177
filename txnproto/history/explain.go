package history

import (
	"fmt"
	"slices"
)

// reason is what is known about an edge of a cycle: the first entries that make
// it, the last, and those of a lost update.
type reason struct {
	first, last, lost edge
	known, isLost     bool
}

// reasons finds out why the edges of cycles are there.
func (c *resolver) reasons(cycles [][]link, sel *selection) map[link]*reason {
	wanted := make(map[link]*reason)
	for _, cycle := range cycles {
		for _, l := range cycle {
			wanted[l] = &reason{}
		}
	}
	c.edges(func(e edge) {
		if _, _, ok := sel.keeps(&e); !ok {
			return
		}
		r := wanted[link{e.from, e.to, e.kind}]
		if r == nil {
			return
		}
		if !r.known {
			r.first, r.known = e, true
		}
		r.last = e
		if e.kind == RW && !r.isLost && c.overwrites(e) {
			r.lost, r.isLost = e, true
		}
	})
	return wanted
}

// report names and explains cycles and adds them to f.
func (c *resolver) report(cycles [][]link, sel *selection, f *found) {
	wanted := c.reasons(cycles, sel)
	for _, cycle := range cycles {
		c.reportCycle(cycle, wanted, f, nil)
	}
}

// overwrites reports whether the reader of an rw edge wrote the key after the
// version that overwrote what it read.
func (c *resolver) overwrites(e edge) bool {
	for q, ok := c.next(e.next); ok; q, ok = c.next(q) {
		if c.writer[q] == e.from {
			return true
		}
	}
	return false
}

// reportCycle names a cycle and adds it to f. realTime explains real-time edges,
// where there may be some.
func (c *resolver) reportCycle(cycle []link, wanted map[link]*reason, f *found, realTime func(link) string) {
	s := shapeOf(cycle)
	kind := s.kind()
	shown := make([]edge, len(cycle))
	for i, l := range cycle {
		r := wanted[l]
		if l.kind != RealTime && !r.known {
			panic(fmt.Sprintf("history: no reason for %v before %v (%v)", c.ids[l.from], c.ids[l.to], l.kind))
		}
		shown[i] = r.first
	}
	if kind == GSingle {
		kind = c.single(cycle, wanted, shown, s)
	}
	a := Anomaly{Kind: kind, Txns: make([]TxnID, len(cycle)), Cycle: make([]Edge, len(cycle))}
	sig := make([]uint64, 0, 2*len(cycle))
	for i, l := range cycle {
		from, to := c.ids[l.from], c.ids[l.to]
		a.Txns[i] = from
		sig = append(sig, uint64(from), uint64(l.kind))
		why := ""
		if l.kind == RealTime {
			why = realTime(l)
		} else {
			why = c.because(shown[i], f)
		}
		a.Cycle[i] = Edge{From: from, To: to, Kind: l.kind, Because: why}
	}
	f.add(a, s.breaks(), signature('c', sig...))
}

// single tells apart the cycles with one rw, choosing the reasons that show it.
func (c *resolver) single(cycle []link, wanted map[link]*reason, shown []edge, s shape) Kind {
	at := slices.IndexFunc(cycle, func(l link) bool { return l.kind == RW })
	r := wanted[cycle[at]]
	if s.wr == 0 && r.isLost {
		shown[at] = r.lost
		return LostUpdate
	}
	if len(cycle) == 2 && s.wr == 1 {
		saw := wanted[cycle[1-at]].first
		if saw.place != noPlace && r.last.place != noPlace && saw.place < r.last.place {
			shown[at] = r.last
			return OTV
		}
	}
	return GSingle
}

// because explains an edge in one sentence.
func (c *resolver) because(e edge, f *found) string {
	from, to := c.ids[e.from], c.ids[e.to]
	key := f.key(c.keyOf(e.seen &^ outside))
	switch e.kind {
	case WW:
		return fmt.Sprintf("%v wrote version %d of %s; %v wrote the next, %d", from, c.version(e.seen), key, to, c.version(e.next))
	case WR:
		return fmt.Sprintf("%v read %s at version %d, written by %v", to, key, c.version(e.seen), from)
	case RW:
		return fmt.Sprintf("%v read %s at %s; %v wrote the next version, %d",
			from, key, c.seenVersion(e.seen), to, c.version(e.next))
	case PredicateRW:
		what := "inserted"
		if c.ver[e.next]&1 != 0 {
			what = "deleted"
		}
		return fmt.Sprintf("%v scanned a range with %s at %s; %v %s it at the next version, %d",
			from, key, c.seenVersion(e.seen), to, what, c.version(e.next))
	default:
		panic(fmt.Sprintf("history: no versions explain an edge of kind %v", e.kind))
	}
}

// seenVersion describes the version that a read saw.
func (c *resolver) seenVersion(slot uint32) string {
	if slot&outside != 0 {
		return "a version from outside the window"
	}
	v := fmt.Sprintf("version %d", c.version(slot))
	if w := c.writer[slot]; w != initialTxn {
		v += fmt.Sprintf(" (written by %v)", c.ids[w])
	}
	return v
}
