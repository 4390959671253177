package history

import (
	"fmt"
	"slices"
)

// reason is what is known about an edge of a cycle: the first entries that make
// it, and those of a lost update.
type reason struct {
	first, lost   edge
	known, isLost bool
}

// reasons is what is known about a set of cycles.
type reasons struct {
	edges map[link]*reason
	// reads are those of the readers in cycles that may be vanishing transactions, in
	// program order.
	reads map[uint32][]Read
	// realTime explains a real-time edge; nil where there are none.
	realTime func(link) string
}

// reasons finds out why the edges of cycles are there.
func (c *resolver) reasons(cycles [][]link, sel *selection) *reasons {
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
		if e.kind == RW && !r.isLost && c.overwrites(e) {
			r.lost, r.isLost = e, true
		}
	})
	return &reasons{edges: wanted}
}

// mayVanish returns the reader of a cycle of two whose edges are one wr and one rw.
func mayVanish(cycle []link) (reader uint32, ok bool) {
	if len(cycle) != 2 {
		return 0, false
	}
	for i, l := range cycle {
		if l.kind == WR && cycle[1-i].kind == RW {
			return l.to, true
		}
	}
	return 0, false
}

// readsOf returns the reads of the transactions that may have seen one vanish.
func (c *resolver) readsOf(cycles [][]link) map[uint32][]Read {
	reads := make(map[uint32][]Read)
	for _, cycle := range cycles {
		if n, ok := mayVanish(cycle); ok {
			reads[n] = nil
		}
	}
	if len(reads) == 0 {
		return reads
	}
	node := uint32(0)
	c.eachRecord(
		func(cur *cursor, _ int, h *commitHead) {
			if _, ok := reads[node]; !ok {
				skipReads(cur, h)
			} else {
				var key Key
				for range h.reads {
					r := cur.read(key)
					key = r.Key
					reads[node] = append(reads[node], r)
				}
				for range h.scans {
					cur.skipScan()
				}
			}
			node++
		},
		func(TxnID) {},
		func(cur *cursor, _ TxnID, n int) { skipWrites(cur, n) })
	return reads
}

// report names and explains cycles and adds them to f.
func (c *resolver) report(cycles [][]link, sel *selection, f *found) {
	w := c.reasons(cycles, sel)
	w.reads = c.readsOf(cycles)
	for _, cycle := range cycles {
		c.reportCycle(cycle, w, f)
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

// reportCycle names a cycle and adds it to f.
func (c *resolver) reportCycle(cycle []link, w *reasons, f *found) {
	s := shapeOf(cycle)
	kind := s.kind()
	shown := make([]edge, len(cycle))
	for i, l := range cycle {
		r := w.edges[l]
		if l.kind != RealTime && !r.known {
			panic(fmt.Sprintf("history: no reason for %v before %v (%v)", c.ids[l.from], c.ids[l.to], l.kind))
		}
		shown[i] = r.first
	}
	if kind == GSingle {
		kind = c.single(cycle, w, shown, s)
	}
	a := Anomaly{Kind: kind, Txns: make([]TxnID, len(cycle)), Cycle: make([]Edge, len(cycle))}
	sig := make([]uint64, 0, 2*len(cycle))
	for i, l := range cycle {
		from, to := c.ids[l.from], c.ids[l.to]
		a.Txns[i] = from
		sig = append(sig, uint64(from), uint64(l.kind))
		why := ""
		if l.kind == RealTime {
			why = w.realTime(l)
		} else {
			why = c.because(shown[i], f)
		}
		a.Cycle[i] = Edge{From: from, To: to, Kind: l.kind, Because: why}
	}
	f.add(a, s.breaks(), signature('c', sig...))
}

// single tells apart the cycles with one rw, and chooses the reasons that show it.
func (c *resolver) single(cycle []link, w *reasons, shown []edge, s shape) Kind {
	at := slices.IndexFunc(cycle, func(l link) bool { return l.kind == RW })
	if r := w.edges[cycle[at]]; s.wr == 0 && r.isLost {
		shown[at] = r.lost
		return LostUpdate
	}
	if reader, ok := mayVanish(cycle); ok {
		saw, missed, ok := c.vanished(reader, cycle[at].to, w.reads[reader])
		if ok {
			shown[1-at], shown[at] = saw, missed
			return OTV
		}
	}
	return GSingle
}

// vanished looks for a read that saw a version of writer and a later one of a
// version that writer overwrote.
func (c *resolver) vanished(reader, writer uint32, reads []Read) (saw, missed edge, ok bool) {
	seen := false
	for _, r := range reads {
		id, ok := c.keys.id(r.Key)
		if !ok {
			continue
		}
		slot, ok := c.resolve(reader, id, r.Version, nil)
		if !ok {
			continue
		}
		c.readEdges(reader, slot, func(e edge) {
			switch {
			case e.kind == WR && e.from == writer && !seen:
				saw, seen = e, true
			case e.kind == RW && e.to == writer && seen && missed == (edge{}):
				missed = e
			}
		})
	}
	return saw, missed, missed != (edge{})
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
