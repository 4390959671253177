package snapshot

import (
	"fmt"

	"interleave/txnproto"
	"interleave/txnproto/keymap"
)

// record is a transaction as ssi remembers it at one shard: while it runs, and after
// its commit until every transaction that was concurrent with it has ended.
type record struct {
	txn      txnproto.TxnID
	ts       txnproto.Timestamp // its snapshot
	slot     int32
	state    recordState
	readOnly bool               // it has declared, or turned out, to write nothing
	fragile  bool               // it must not write: see conflicts.read
	bound    txnproto.Timestamp // prepared: it commits at a later timestamp
	commit   txnproto.Timestamp // committed updater: when
	firstOut txnproto.Timestamp // committed: least commit of those it read before, never if none
	ended    txnproto.Timestamp // committed: the newest timestamp then

	reads, writes touchID
	ranges        []interval
	scanner       int32  // its place in scanners, -1: none
	out, in       edgeID // conflicts with who wrote what it read, and who read what it wrote
}

type recordState uint8

const (
	recordFree recordState = iota
	recordActive
	recordPrepared
	recordCommitted
)

type (
	recordID int32
	touchID  int32
	edgeID   int32
)

// interval is the keys of a scan.
type interval struct{ lo, hi txnproto.Key }

// touch is one transaction's read or write of one row.
type touch struct {
	key        txnproto.Key
	record     recordID
	next, prev touchID // of the same row: earlier, later
	own        touchID // the transaction's previous one
}

// touches lists, for each row, who touched it, the last first.
type touches struct {
	index  keymap.Map              // row -> touch; reads
	sorted keymap.Ordered[touchID] // the same for writes, which scans look for
	inKeys bool                    // sorted is used
	all    []touch
	free   []touchID
}

func newTouches(inKeys bool) touches { return touches{inKeys: inKeys, all: make([]touch, 1)} }

func (t *touches) first(k txnproto.Key) touchID {
	if t.inKeys {
		id, _ := t.sorted.Get(k)
		return id
	}
	return touchID(t.index.Get(k))
}

func (t *touches) setFirst(k txnproto.Key, id touchID) {
	switch {
	case t.inKeys && id == 0:
		t.sorted.Delete(k)
	case t.inKeys:
		t.sorted.Set(k, id)
	case id == 0:
		t.index.Delete(k)
	default:
		*t.index.Ref(k) = int32(id)
	}
}

// add lists r's touch of k, which links to own.
func (t *touches) add(k txnproto.Key, r recordID, own touchID) touchID {
	var id touchID
	if n := len(t.free); n > 0 {
		id = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		id = touchID(len(t.all))
		t.all = append(t.all, touch{})
	}
	next := t.first(k)
	t.all[id] = touch{key: k, record: r, next: next, own: own}
	if next != 0 {
		t.all[next].prev = id
	}
	t.setFirst(k, id)
	return id
}

// unlist takes a touch off its row and frees it.
func (t *touches) unlist(id touchID) {
	n := &t.all[id]
	if n.prev != 0 {
		t.all[n.prev].next = n.next
	} else {
		t.setFirst(n.key, n.next)
	}
	if n.next != 0 {
		t.all[n.next].prev = n.prev
	}
	t.free = append(t.free, id)
}

// unlistAll takes a transaction's touches off, from the last one on.
func (t *touches) unlistAll(last touchID) {
	for id := last; id != 0; {
		own := t.all[id].own
		t.unlist(id)
		id = own
	}
}

// edge says that from read a version and to wrote the next one, or may yet.
type edge struct {
	from, to         recordID
	nextOut, prevOut edgeID // of from's
	nextIn, prevIn   edgeID // of to's
}

// edges are the conflicts between records, each once.
type edges struct {
	all  []edge
	free []edgeID
}

// conflict notes that from read before to.
func (c *conflicts) conflict(from, to recordID) {
	f, t := &c.records[from], &c.records[to]
	for e := f.out; e != 0; e = c.edges.all[e].nextOut {
		if c.edges.all[e].to == to {
			return
		}
	}
	var id edgeID
	if n := len(c.edges.free); n > 0 {
		id = c.edges.free[n-1]
		c.edges.free = c.edges.free[:n-1]
	} else {
		id = edgeID(len(c.edges.all))
		c.edges.all = append(c.edges.all, edge{})
	}
	c.edges.all[id] = edge{from: from, to: to, nextOut: f.out, nextIn: t.in}
	if f.out != 0 {
		c.edges.all[f.out].prevOut = id
	}
	if t.in != 0 {
		c.edges.all[t.in].prevIn = id
	}
	f.out, t.in = id, id
}

// drop takes a conflict off both ends.
func (c *conflicts) drop(id edgeID) {
	all := c.edges.all
	e := &all[id]
	if e.prevOut != 0 {
		all[e.prevOut].nextOut = e.nextOut
	} else {
		c.records[e.from].out = e.nextOut
	}
	if e.nextOut != 0 {
		all[e.nextOut].prevOut = e.prevOut
	}
	if e.prevIn != 0 {
		all[e.prevIn].nextIn = e.nextIn
	} else {
		c.records[e.to].in = e.nextIn
	}
	if e.nextIn != 0 {
		all[e.nextIn].prevIn = e.prevIn
	}
	c.edges.free = append(c.edges.free, id)
}

func (c *conflicts) newRecord() recordID {
	var id recordID
	if n := len(c.free); n > 0 {
		id = c.free[n-1]
		c.free = c.free[:n-1]
	} else {
		id = recordID(len(c.records))
		c.records = append(c.records, record{})
	}
	return id
}

// forget drops a record with all that hangs on it.
func (c *conflicts) forget(id recordID) {
	r := &c.records[id]
	if r.state == recordFree {
		panic(fmt.Sprintf("snapshot: record %d is forgotten twice", id))
	}
	c.reads.unlistAll(r.reads)
	c.writes.unlistAll(r.writes)
	for r.out != 0 {
		c.drop(r.out)
	}
	for r.in != 0 {
		c.drop(r.in)
	}
	if r.scanner >= 0 {
		last := len(c.scanners) - 1
		c.scanners[r.scanner] = c.scanners[last]
		c.records[c.scanners[r.scanner]].scanner = r.scanner
		c.scanners = c.scanners[:last]
	}
	*r = record{ranges: r.ranges[:0]}
	c.free = append(c.free, id)
}
