package snapshot

import (
	"fmt"
	"math"
	"strings"

	"interleave/txnproto"
)

// conflicts is what serializable snapshot isolation adds to snapshot isolation.
//
// A history under snapshot isolation that is not serializable has a cycle with two
// anti-dependencies in a row, T1 -rw-> T2 -rw-> T3, between concurrent
// transactions, of which T3 committed first of all the cycle, or is T1 (Fekete et al.
// 2005; Ports and Grittner 2012, sec. 3.2). If T1 only reads, T3 committed even
// before T1's snapshot (their theorem 3). So it is enough that no T2, the pivot,
// commits in such a dangerous structure.
//
// Conflicts come up where a row is: a reader finds the row written by a concurrent
// transaction, or a writer finds the trace that a concurrent reader left
// (their SIREAD lock) on the row or on a range around it. Reads are never blocked
// by writers, nor writers by readers, but for those that have prepared: whoever
// runs into one waits for its end, as the transaction it has to reckon with must
// be known. Hence what a branch knows of its conflicts when it prepares is
// complete, but for conflicts with those that begin to matter after its end, who find
// its outcome.
//
// The conflicts of a transaction may come up on several shards. Its branches vote with
// two timestamps,
//
//	out   the least at which one whose write it missed committed, or may commit
//	in    the greatest before which that must be to be dangerous for one that missed
//	      a write of its own: that one's commit, its snapshot if it only reads, or,
//	      while it runs, any time
//
// and the coordinator aborts it (ssi-pivot) when the least out of all branches is
// not above the greatest in. What is agreed comes back with the decision and is kept
// with the trace: someone who later misses a write of this transaction knows whether it
// makes it a pivot that has committed. Then it is the newcomer that aborts, unless
// it may be harmless by reading only; then it goes on, and aborts when it writes.
//
// Differences from PostgreSQL's: there a transaction may be told to abort at any
// operation, here a pivot is found at its commit or by whoever would make a committed
// one dangerous; there traces are on pages and index ranges too, here on rows and
// the ranges of scans exactly; a transaction that prepares on several shards counts
// everyone active whose write it missed as possibly the first to commit. Of the
// read-only optimization there is what the theorem gives; as in PostgreSQL, a
// declared read-only transaction gets it from the start. Deferrable
// transactions, which wait for a safe snapshot, are not offered.
type conflicts struct {
	host     txnproto.Host
	records  []record
	free     []recordID
	reads    touches
	writes   touches
	scanners []recordID // those with ranges
	edges    edges
	done     []recordID // committed, in order of their end; from doneAt on
	doneAt   int
}

const never = txnproto.Timestamp(math.MaxUint64)

func newConflicts(h txnproto.Host) *conflicts {
	return &conflicts{
		host: h, records: make([]record, 1), reads: newTouches(false), writes: newTouches(true),
		edges: edges{all: make([]edge, 1)},
	}
}

// begin remembers a transaction.
func (c *conflicts) begin(tx *txnproto.Txn) recordID {
	id := c.newRecord()
	r := &c.records[id]
	*r = record{
		txn: tx.ID, ts: tx.TS, slot: int32(tx.Slot), state: recordActive, readOnly: tx.ReadOnly,
		scanner: -1, ranges: r.ranges[:0],
	}
	return id
}

// read leaves r's trace on [lo, hi), a scan's or a single row, and notes whose writes
// there it does not see. No row of it is being decided.
func (c *conflicts) read(r recordID, tx *txnproto.Txn, lo, hi txnproto.Key, scan bool) txnproto.Verdict {
	if !scan {
		if !c.missRow(r, tx, c.writes.first(lo)) {
			return txnproto.Abort(txnproto.SSIPivot)
		}
		me := &c.records[r]
		me.reads = c.reads.add(lo, r, me.reads)
		return txnproto.Granted
	}
	if lo >= hi {
		return txnproto.Granted
	}
	for k, id, ok := c.writes.sorted.Ceil(lo); ok && k < hi; k, id, ok = c.writes.sorted.Ceil(k + 1) {
		if tx.Put(k) != nil {
			continue
		}
		if !c.missRow(r, tx, id) {
			return txnproto.Abort(txnproto.SSIPivot)
		}
	}
	me := &c.records[r]
	if me.scanner < 0 {
		me.scanner = int32(len(c.scanners))
		c.scanners = append(c.scanners, r)
	}
	me.ranges = append(me.ranges, interval{lo, hi})
	return txnproto.Granted
}

// missRow notes that r does not see the version that follows the one it sees, given
// the last touch of the row, and reports false when r must abort. Its writer is the
// earliest of the committed ones after r's snapshot, else one that is active. Of
// these there may be several, though the row's lock is one's: a rollback to a
// savepoint releases it, and the touch of the write that was undone stays, as it may be
// done again. So with
//
//	T1 savepoint, T1 writes x, T1 rolls back, T2 writes x, T3 reads x
//
// T3 precedes T2, and T1 in case; which of the two wrote last does not tell.
func (c *conflicts) missRow(r recordID, tx *txnproto.Txn, last touchID) bool {
	var next recordID
	for t := last; t != 0; t = c.writes.all[t].next {
		w := c.writes.all[t].record
		switch o := &c.records[w]; o.state {
		case recordActive:
		case recordCommitted:
			if o.commit > c.records[r].ts {
				next = w
			}
		case recordPrepared: // it has undone this write, or r would wait for it
		case recordFree:
			panic("snapshot: a write of a transaction that is forgotten")
		default:
			panic("snapshot: unknown state of a record")
		}
	}
	if next != 0 {
		return c.miss(r, tx, next)
	}
	for t := last; t != 0; t = c.writes.all[t].next {
		w := c.writes.all[t].record
		if w != r && c.records[w].state == recordActive && !c.miss(r, tx, w) {
			return false
		}
	}
	return true
}

// miss notes that r does not see w's write, and reports false when r must abort
// because w is a pivot that has committed.
func (c *conflicts) miss(r recordID, tx *txnproto.Txn, w recordID) bool {
	me, o := &c.records[r], &c.records[w]
	c.conflict(r, w)
	if o.state != recordCommitted || o.firstOut >= o.commit {
		return true
	}
	if o.firstOut < me.ts {
		return false
	}
	if me.readOnly {
		return true
	}
	me.fragile = true
	return len(tx.Puts) == 0
}

// write lists r as a writer of k, whose lock it has, and notes who has read the version
// before. It waits for a reader that has prepared, and returns its slot.
func (c *conflicts) write(r recordID, tx *txnproto.Txn, k txnproto.Key) (v txnproto.Verdict, on int32) {
	me := &c.records[r]
	if me.fragile {
		return txnproto.Abort(txnproto.SSIPivot), 0
	}
	for t := c.reads.first(k); t != 0; t = c.reads.all[t].next {
		if c.readBefore(c.reads.all[t].record, r) {
			return txnproto.Waiting, c.records[c.reads.all[t].record].slot
		}
	}
	for _, s := range c.scanners {
		for _, i := range c.records[s].ranges {
			if i.lo <= k && k < i.hi {
				if c.readBefore(s, r) {
					return txnproto.Waiting, c.records[s].slot
				}
				break
			}
		}
	}
	for t := c.writes.first(k); t != 0; t = c.writes.all[t].next {
		if c.writes.all[t].record == r {
			return txnproto.Granted, 0
		}
	}
	me.writes = c.writes.add(k, r, me.writes)
	return txnproto.Granted, 0
}

// readBefore notes that reader has read what r is about to overwrite, if they are
// concurrent, and reports true when the reader has prepared: then its end must come first.
func (c *conflicts) readBefore(reader, r recordID) (wait bool) {
	if reader == r {
		return false
	}
	switch o := &c.records[reader]; o.state {
	case recordActive:
		c.conflict(reader, r)
	case recordPrepared:
		return true
	case recordCommitted:
		if o.readOnly && o.ts > c.records[r].ts || !o.readOnly && o.commit > c.records[r].ts {
			c.conflict(reader, r)
		}
	case recordFree:
		panic("snapshot: a read of a transaction that is forgotten")
	default:
		panic("snapshot: unknown state of a record")
	}
	return false
}

// Votes. Timestamps are merged by their maximum, so out is kept as its complement.
const (
	voteOut   = iota // ^out, 0: none
	voteIn           // 0: none
	voteFlags        // merged by or
)

const (
	flagKnown   = 1 << iota // the vote is not lost
	flagWrote               // the branch has written
	flagFragile             // the transaction must not write
)

// prepare returns the vote of r's branch, which is complete from now on.
func (c *conflicts) prepare(r recordID, tx *txnproto.Txn, now txnproto.Timestamp) txnproto.Vote {
	me := &c.records[r]
	me.state, me.bound = recordPrepared, now
	v := txnproto.Vote{voteFlags: flagKnown}
	if len(tx.Puts) > 0 {
		v[voteFlags] |= flagWrote
	}
	if me.fragile {
		v[voteFlags] |= flagFragile
	}
	for e := me.out; e != 0; e = c.edges.all[e].nextOut {
		if out := c.earliest(c.edges.all[e].to, tx.Alone, now); out != never {
			v[voteOut] = max(v[voteOut], ^uint64(out))
		}
	}
	for e := me.in; e != 0; e = c.edges.all[e].nextIn {
		v[voteIn] = max(v[voteIn], uint64(c.latest(c.edges.all[e].from)))
	}
	return v
}

// earliest is when the writer w has committed or may at the earliest.
func (c *conflicts) earliest(w recordID, alone bool, now txnproto.Timestamp) txnproto.Timestamp {
	switch o := &c.records[w]; o.state {
	case recordCommitted:
		return o.commit
	case recordPrepared:
		return o.bound + 1
	case recordActive:
		if alone {
			return never // later than who asks, who is decided now
		}
		return now + 1
	case recordFree:
		panic("snapshot: a conflict with a transaction that is forgotten")
	default:
		panic("snapshot: unknown state of a record")
	}
}

// latest is until when a third one must have committed to be a danger to the reader o.
func (c *conflicts) latest(reader recordID) txnproto.Timestamp {
	o := &c.records[reader]
	switch {
	case o.readOnly:
		return o.ts
	case o.state == recordCommitted:
		return o.commit
	default:
		return never
	}
}

// agree merges votes and ends the commit of a pivot.
func agree(sum, v txnproto.Vote) (txnproto.Vote, txnproto.AbortReason) {
	sum[voteOut] = max(sum[voteOut], v[voteOut])
	sum[voteIn] = max(sum[voteIn], v[voteIn])
	sum[voteFlags] |= v[voteFlags]
	pivot := sum[voteOut] != 0 && ^sum[voteOut] <= sum[voteIn]
	const broken = flagWrote | flagFragile
	if pivot || sum[voteFlags]&broken == broken {
		return sum, txnproto.SSIPivot
	}
	return sum, txnproto.NoReason
}

// finish ends r: an aborted transaction has conflicts with nobody, a committed one is
// remembered for a while.
func (c *conflicts) finish(id recordID, tx *txnproto.Txn, o txnproto.Outcome) {
	if o != txnproto.Committed {
		c.forget(id)
		return
	}
	r := &c.records[id]
	for t := &r.writes; *t != 0; { // those undone by a rollback to a savepoint
		n := &c.writes.all[*t]
		if tx.Put(n.key) != nil {
			t = &n.own
			continue
		}
		own := n.own
		c.writes.unlist(*t)
		*t = own
	}
	r.state, r.commit, r.readOnly = recordCommitted, tx.CommitTS, tx.CommitTS == 0
	r.ended = c.host.NewestTS()
	switch {
	case tx.Agreed[voteFlags]&flagKnown == 0:
		r.firstOut = 0 // lost with the coordinator's leader
	default:
		r.firstOut = txnproto.Timestamp(^tx.Agreed[voteOut])
	}
	c.done = append(c.done, id)
	c.prune()
}

// prune forgets committed transactions that nobody running is concurrent with.
func (c *conflicts) prune() {
	oldest := c.host.OldestTS()
	for c.doneAt < len(c.done) && c.records[c.done[c.doneAt]].ended < oldest {
		c.forget(c.done[c.doneAt])
		c.doneAt++
	}
	if c.doneAt > 256 && 2*c.doneAt > len(c.done) {
		n := copy(c.done, c.done[c.doneAt:])
		c.done, c.doneAt = c.done[:n], 0
	}
}

// describe shows the transactions remembered and their conflicts.
func (c *conflicts) describe(n *txnproto.Names) string {
	var b strings.Builder
	for i := range c.records {
		r := &c.records[i]
		if r.state == recordFree {
			continue
		}
		fmt.Fprintf(&b, "%s at %d", n.Txn(r.txn), r.ts)
		switch r.state {
		case recordActive:
		case recordPrepared:
			b.WriteString(" prepared")
		case recordCommitted:
			if r.readOnly {
				b.WriteString(" committed, read only")
			} else {
				fmt.Fprintf(&b, " committed at %d", r.commit)
			}
		case recordFree:
		default:
			panic("snapshot: unknown state of a record")
		}
		for e := r.out; e != 0; e = c.edges.all[e].nextOut {
			b.WriteString(" -rw-> " + n.Txn(c.records[c.edges.all[e].to].txn))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
