package history

import (
	"fmt"
	"slices"
)

// EdgeKind is what makes one transaction come before another.
type EdgeKind uint8

// The kinds of edges.
const (
	WW          EdgeKind = iota // write, then overwrite
	WR                          // write, then read
	RW                          // read, then overwrite
	PredicateRW                 // scan, then insert or delete in its range
	RealTime                    // end, then begin
	numEdgeKinds
)

// MarshalText writes the kind as explanations print it.
func (k EdgeKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// String returns the kind as explanations print it.
func (k EdgeKind) String() string {
	switch k {
	case WW:
		return "ww"
	case WR:
		return "wr"
	case RW:
		return "rw"
	case PredicateRW:
		return "predicate rw"
	case RealTime:
		return "real-time"
	default:
		panic(fmt.Sprintf("history: unknown edge kind %d", uint8(k)))
	}
}

func (k EdgeKind) anti() bool { return k == RW || k == PredicateRW }

// kindSet is a set of edge kinds, one bit each.
type kindSet uint8

func (s kindSet) has(k EdgeKind) bool { return s&(1<<k) != 0 }

const (
	onlyWW       = kindSet(1 << WW)
	dependencies = onlyWW | 1<<WR
	itemEdges    = dependencies | 1<<RW
	allEdges     = itemEdges | 1<<PredicateRW
)

// edge is one edge of the graph, with the entries that are its reason.
type edge struct {
	from, to uint32 // committed nodes
	kind     EdgeKind
	seen     uint32 // the slot read, or the entry overwritten
	next     uint32 // the entry that overwrote it; for wr, seen again
}

// resolver turns recorded reads into slots.
type resolver struct {
	*columns
	opt *Options
	scope
	shown Scan // decoded scan, reused
}

// resolveReads fills the columns of reads. Reads that no good history has go to f.
func (c *resolver) resolveReads(f *found) {
	all := c.buffer
	c.scans = make([]scanRef, 0, c.stats.scans)
	node, placed := uint32(0), uint32(0)
	c.eachRecord(
		func(cur *cursor, chunk int, h *commitHead) {
			var key Key
			for range h.reads {
				r := cur.read(key)
				key = r.Key
				if at, ok := c.keys.place(key); ok {
					c.readsBy.put(all, access{version: uint64(r.Version), at: at, node: node})
					placed++
				} else {
					c.resolveUnwritten(node, r, f)
				}
			}
			for range h.scans {
				c.resolveScan(cur, scanRef{node: node, chunk: uint32(chunk), off: uint32(cur.off)}, f)
			}
			node++
		},
		func(TxnID) {},
		func(cur *cursor, _ TxnID, n int) { skipWrites(cur, n) })
	kept := 0
	for i := range all[:placed] {
		r := all[i]
		id, ok := c.keys.number(r.at)
		if !ok {
			c.resolveUnwritten(r.node, Read{c.keys.base + Key(r.at), Version(r.version)}, f)
			continue
		}
		if slot, ok := c.resolve(r.node, id, Version(r.version), f); ok {
			all[kept] = access{at: slot, node: r.node}
			kept++
		}
	}
	c.reads = all[:kept]
}

// resolveScan notes a scan and reports what is wrong with it.
func (c *resolver) resolveScan(cur *cursor, ref scanRef, f *found) {
	c.scans = append(c.scans, ref)
	s := &c.shown
	cur.scan(s)
	for _, r := range s.Seen {
		if id, ok := c.keys.id(r.Key); ok {
			c.resolve(ref.node, id, r.Version, f)
		} else {
			c.resolveUnwritten(ref.node, r, f)
		}
	}
	if s.Shard != AllShards && c.opt.ShardOf == nil {
		t := c.ids[ref.node]
		f.inconsistent(t, fmt.Sprintf("%v scanned one shard, and it is not known which keys belong to it", t))
	}
}

// resolveUnwritten judges a read of a key that nobody wrote.
func (c *resolver) resolveUnwritten(node uint32, r Read, f *found) {
	if r.Version != 0 && !c.partial {
		f.unknownVersion(c.ids[node], r)
	}
}

// resolve returns the entry that a read of node saw. It is false when the read
// makes no edges: the transaction's own version, or a version that no good history
// shows to others, which is reported to f unless f is nil.
func (c *resolver) resolve(node, id uint32, v Version, f *found) (uint32, bool) {
	slot, ok := c.find(id, v)
	if !ok && c.partial {
		return slot | outside, true
	}
	if !ok {
		if f != nil {
			f.unknownVersion(c.ids[node], Read{c.keys.key(id), v})
		}
		return 0, false
	}
	w := c.writer[slot]
	switch {
	case w < c.nCommit:
		return slot, w != node
	case w == initialTxn:
		return slot, true
	case w&^superseded == node:
		return 0, false
	case w&^superseded < c.nCommit:
		if f != nil {
			f.intermediateRead(c.ids[node], Read{c.keys.key(id), v}, c.ids[w&^superseded])
		}
		return 0, false
	}
	w &^= superseded
	aborted := c.aborted[w-c.nCommit]
	if !aborted && (c.partial || c.cut) {
		return slot | outside, true // its end lies outside the window, or after the run
	}
	if f != nil {
		f.abortedRead(c.ids[node], Read{c.keys.key(id), v}, c.ids[w], aborted)
	}
	return 0, false
}

// edges yields every edge, in an order that depends on the history alone. An edge
// may come several times, for several keys.
func (c *resolver) edges(yield func(e edge)) {
	c.versionEdges(yield)
	for _, r := range c.reads {
		c.readEdges(r.node, r.at, yield)
	}
	for _, ref := range c.scans {
		c.scanEdges(ref, yield)
	}
}

// versionEdges yields the ww edges.
func (c *resolver) versionEdges(yield func(e edge)) {
	last := none
	for p, w := range c.writer {
		if w < c.nCommit {
			if last != none && c.writer[last] != w {
				yield(edge{from: c.writer[last], to: w, kind: WW, seen: last, next: uint32(p)})
			}
			last = uint32(p)
		} else if w == initialTxn {
			last = none
		}
	}
}

// readEdges yields the edges of one item read.
func (c *resolver) readEdges(node, slot uint32, yield func(e edge)) {
	p := slot &^ outside
	if w := c.writer[p]; w < c.nCommit && slot == p && w != node {
		yield(edge{from: w, to: node, kind: WR, seen: p, next: p})
	}
	if q, ok := c.next(p); ok && c.writer[q] != node {
		yield(edge{from: node, to: c.writer[q], kind: RW, seen: slot, next: q})
	}
}

// scanEdges yields the edges of one piece of a scan. Only keys that have versions
// make any.
func (c *resolver) scanEdges(ref scanRef, yield func(e edge)) {
	cur := cursor{b: c.chunks[ref.chunk].data, off: int(ref.off)}
	s := &c.shown
	cur.scan(s)
	if s.Shard != AllShards && c.opt.ShardOf == nil {
		return // reported when reads were resolved
	}
	if !slices.IsSortedFunc(s.Seen, byKey) {
		slices.SortFunc(s.Seen, byKey)
	}
	if s.Lo >= s.Hi {
		return
	}
	seen := s.Seen
	for id, end := c.keys.lower(s.Lo), c.keys.lower(s.Hi); id < end; id++ {
		head := c.start[id]
		if c.start[id+1]-head == 1 {
			continue
		}
		key := c.keys.key(id)
		if s.Shard != AllShards && c.opt.ShardOf(key) != s.Shard {
			continue
		}
		for len(seen) > 0 && seen[0].Key < key {
			seen = seen[1:]
		}
		slot := head
		if len(seen) > 0 && seen[0].Key == key {
			p, ok := c.resolve(ref.node, id, seen[0].Version, nil)
			if !ok {
				continue
			}
			slot = p
		}
		c.scannedEdges(ref.node, slot, key, yield)
	}
}

func byKey(a, b Read) int {
	switch {
	case a.Key < b.Key:
		return -1
	case a.Key > b.Key:
		return 1
	default:
		return 0
	}
}

// scannedEdges yields the edges of one key of a scan.
func (c *resolver) scannedEdges(node, slot uint32, key Key, yield func(e edge)) {
	p := slot &^ outside
	if w := c.writer[p]; w < c.nCommit && slot == p && w != node {
		yield(edge{from: w, to: node, kind: WR, seen: p, next: p})
	}
	q, ok := c.next(p)
	if !ok || c.writer[q] == node {
		return
	}
	kind := RW
	// Of a version outside the window it is not known whether it was a row. Taken for
	// a change of the range, it cannot break repeatable read without cause.
	if slot != p || c.present(p, key) != c.present(q, key) {
		kind = PredicateRW
	}
	yield(edge{from: node, to: c.writer[q], kind: kind, seen: slot, next: q})
}

// present reports whether the row exists at that entry.
func (c *resolver) present(p uint32, key Key) bool {
	if c.writer[p] == initialTxn {
		return c.opt.Present != nil && c.opt.Present(key)
	}
	return c.ver[p]&1 == 0
}
