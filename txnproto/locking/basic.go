package locking

import (
	"fmt"
	"slices"

	"interleave/txnproto"
)

// Basic two-phase locking
//
// A transaction that has reached its lock point gives up the locks on rows that it
// will not touch again, before it commits; so does every transaction when it asks to
// commit (Bernstein, Hadzilacos, Goodman 1987, ch. 3.2: a two phase scheduler
// that is not strict). Its writes there are exposed: others read and overwrite them
// although they may yet be taken back. Transactions are still equivalent to their serial order by
// lock points, as far as all of them commit. What differs is what an abort does (ch. 1.2, 2.4):
//
//	w1(x) r2(x) w2(y) r3(y) a1     T2 has read from T1 and must abort, and T3 with it: a cascade
//	w1(x) r2(x) c2 a1              T2 has read what never was, and cannot be aborted any more:
//	                               the schedule is not recoverable
//
// With recoverable=true the commit of T2 waits until T1 has committed. It holds no locks
// by then, and whom it waits for passed the lock point before it did: no cycle of waits can come
// of it. With recoverable=false, the definition's own case, it does not wait.
//
// T2 depends on T1 when it reads from T1, as in the definition of recoverability. One that
// only overwrites does not: exposed writes are versions, numbered in the order in which they are
// exposed, and are installed in that order whoever commits first. To take one back is to leave
// it out, where the book has to restore before images in the right order (ch. 1.2, strictness).
//
// Keys that come and go. An exposed write counts as done for the gaps between keys
// (nextkey.go); when it is taken back, keys vanish or come back under the locks of
// others, which takeBack sees to.

// basic is what the controller keeps under basic two-phase locking.
type basic struct {
	exposures
	recoverable bool
	open        []openTxn // by owner
	on          []txnproto.TxnID
}

// openTxn is a transaction's part in it.
type openTxn struct {
	id      txnproto.TxnID
	exposed []exposureID
	from    []source // undecided ones that it has read from
	readers []reader // who has read from it
	doomed  bool     // Host.Kill was asked for it
	waits   bool     // its prepare waits for those in from
	tainted uint64   // how many it has read from have aborted, and it was prepared
}

// source is an undecided transaction that another has read from, first at key, when
// it had set so many savepoints.
type source struct {
	o    owner
	id   txnproto.TxnID
	key  txnproto.Key
	save int
}

// reader is a transaction that has read from another. It is kept when it has committed.
type reader struct {
	o         owner
	id        txnproto.TxnID
	committed bool
}

func newBasic(recoverable bool) *basic { return &basic{recoverable: recoverable} }

// txn returns o's part.
func (b *basic) txn(o owner, id txnproto.TxnID) *openTxn {
	for int(o) >= len(b.open) {
		b.open = append(b.open, openTxn{})
	}
	t := &b.open[o]
	if t.id != id {
		t.reset(id)
	}
	return t
}

func (t *openTxn) reset(id txnproto.TxnID) {
	*t = openTxn{id: id, exposed: t.exposed[:0], from: t.from[:0], readers: t.readers[:0]}
}

// live returns the part of o if it is still id's.
func (b *basic) live(o owner, id txnproto.TxnID) *openTxn {
	if int(o) < len(b.open) && b.open[o].id == id {
		return &b.open[o]
	}
	return nil
}

// Shrink implements txnproto.Exposer.
func (c *twoPhase) Shrink(tx *txnproto.Txn, ahead []txnproto.Op) {
	c.shrink(c.branch(tx), ahead)
	if !c.quiet() {
		c.settle()
	}
}

// shrink releases o's locks on what it will not touch again, and exposes its writes there.
func (c *twoPhase) shrink(o owner, ahead []txnproto.Op) {
	t := c.table
	tx := c.branches[o].tx
	ids := t.owned[o]
	kept := ids[:0]
	for _, id := range ids {
		k := t.entries[t.requests[id].entry].key
		if touches(ahead, k) {
			kept = append(kept, id)
			continue
		}
		if p := tx.Put(k); p != nil && p.Version == 0 {
			c.expose(o, p)
		}
		c.release(id)
	}
	t.owned[o] = kept
}

// touches reports whether one of ops needs a lock on k. What scans need is not known.
func touches(ops []txnproto.Op, k txnproto.Key) bool {
	return slices.ContainsFunc(ops, func(op txnproto.Op) bool { return op.Key == k || op.Kind == txnproto.Scan })
}

// expose shows o's write to others.
func (c *twoPhase) expose(o owner, p *txnproto.Put) {
	if p.Version == 0 {
		p.Version = c.host.NewVersion()
	}
	t := c.basic.txn(o, c.branches[o].id)
	t.exposed = append(t.exposed, c.basic.add(o, p))
}

// See implements txnproto.Exposer.
func (c *twoPhase) See(tx *txnproto.Txn, k txnproto.Key) txnproto.Row {
	row := c.host.Store().Get(k)
	if id := c.basic.over(k, row.Version); id != 0 {
		return c.sees(tx, id)
	}
	return row
}

// SeeRange implements txnproto.Exposer.
func (c *twoPhase) SeeRange(tx *txnproto.Txn, lo, hi txnproto.Key, rows []txnproto.Row) []txnproto.Row {
	at := 0
	for k, _, ok := c.basic.keys.Ceil(lo); ok && k < hi; k, _, ok = c.basic.keys.Ceil(k + 1) {
		if tx.Put(k) != nil {
			continue
		}
		for at < len(rows) && rows[at].Key < k {
			at++
		}
		committed := at < len(rows) && rows[at].Key == k
		v := txnproto.Version(0)
		if committed {
			v = rows[at].Version
		}
		id := c.basic.over(k, v)
		switch {
		case id == 0:
		case committed:
			rows[at] = c.sees(tx, id)
		default:
			rows = slices.Insert(rows, at, c.sees(tx, id))
		}
	}
	return rows
}

// sees returns the row of an exposed write, which tx reads.
func (c *twoPhase) sees(tx *txnproto.Txn, id exposureID) txnproto.Row {
	x := &c.basic.pool[id]
	x.seen = true
	o := c.branch(tx)
	t := c.basic.txn(o, tx.ID)
	w := &c.basic.open[x.owner]
	if x.owner == o {
		panic(fmt.Sprintf("locking: at %v: shard %v: %v reads its own exposed write of key %d", c.host.Now(), c.host.Shard(), tx.ID, x.key))
	}
	count(c.host.Stats(), "dirty-reads")
	for i := range t.from {
		if t.from[i].id == w.id {
			return x.row()
		}
	}
	t.from = append(t.from, source{x.owner, w.id, x.key, tx.Save})
	w.readers = append(w.readers, reader{o, tx.ID, false})
	return x.row()
}

// Seen implements txnproto.Exposer.
func (c *twoPhase) Seen(tx *txnproto.Txn) bool {
	t := c.basic.live(owner(tx.Slot), tx.ID)
	return t != nil && slices.ContainsFunc(t.exposed, func(id exposureID) bool { return c.basic.pool[id].seen })
}

// forgetSources ends o's dependence on whom it has read from under a savepoint that it rolls
// back to: what it read there is not part of it any more.
func (b *basic) forgetSources(o owner, id txnproto.TxnID, save int) {
	t := b.live(o, id)
	if t == nil {
		return
	}
	t.from = slices.DeleteFunc(t.from, func(f source) bool {
		if f.save < save {
			return false
		}
		if w := b.live(f.o, f.id); w != nil {
			w.readers = slices.DeleteFunc(w.readers, func(r reader) bool { return r.id == id })
		}
		return true
	})
}

// prepareBasic gives up what is left of tx's locks and, where commits are to be
// recoverable, waits for whom it has read from.
func (c *twoPhase) prepareBasic(tx *txnproto.Txn) txnproto.Verdict {
	o := c.branch(tx)
	t := c.basic.txn(o, tx.ID)
	c.shrink(o, nil)
	if !c.quiet() {
		c.settle()
	}
	if !c.basic.recoverable || len(t.from) == 0 {
		return txnproto.Granted
	}
	t.waits = true
	on := c.basic.on[:0]
	for i := range t.from {
		on = append(on, t.from[i].id)
	}
	c.basic.on = on
	c.host.Blocked(tx, t.from[0].key, on)
	return txnproto.Waiting
}

// finishBasic ends tx for whom it has read from and who has read from it.
func (c *twoPhase) finishBasic(o owner, outcome txnproto.Outcome) {
	b := c.basic
	t := b.live(o, c.branches[o].id)
	if t == nil {
		return
	}
	s := c.host.Stats()
	committed := outcome == txnproto.Committed
	if committed && t.tainted > 0 {
		countBy(s, "unrecoverable", t.tainted)
	}
	for _, f := range t.from {
		if w := b.live(f.o, f.id); w != nil {
			i := slices.IndexFunc(w.readers, func(r reader) bool { return r.id == t.id })
			if committed {
				w.readers[i].committed = true
			} else {
				w.readers = slices.Delete(w.readers, i, i+1)
			}
		}
	}
	for _, id := range t.exposed {
		c.takeBack(id, committed)
	}
	for _, r := range t.readers {
		switch {
		case r.committed && !committed:
			count(s, "unrecoverable")
		case !r.committed:
			c.sourceEnded(r, t.id, committed)
		}
	}
	t.reset(0)
}

// sourceEnded tells a reader how a transaction that it has read from has ended.
func (c *twoPhase) sourceEnded(r reader, from txnproto.TxnID, committed bool) {
	t := c.basic.live(r.o, r.id)
	if t == nil || t.doomed {
		return
	}
	t.from = slices.DeleteFunc(t.from, func(f source) bool { return f.id == from })
	tx := c.branches[r.o].tx
	switch {
	case !committed && c.host.Kill(tx, txnproto.Cascade):
		t.doomed = true
		count(c.host.Stats(), "cascades")
	case !committed:
		t.tainted++
	case t.waits && len(t.from) == 0:
		t.waits = false
		c.host.Resolve(tx, txnproto.Granted)
	}
}

// takeBack takes away an exposed write that is committed, and so in the store, or was
// aborted. In the latter case its key may come or go under the locks of others:
//
//   - It vanishes. Who holds S on its gap gets S on the next one, as when an insert is
//     undone. (Where another has written it meanwhile it does not vanish: makePresent has
//     placed it.)
//   - It comes back. It splits the gap it lies in, and who holds S on that gets S on both
//     parts.
func (c *twoPhase) takeBack(id exposureID, committed bool) {
	k := c.basic.pool[id].key
	if committed {
		c.basic.remove(id)
		return
	}
	before := c.present(k)
	c.basic.remove(id)
	t := c.table
	switch after := c.present(k); {
	case before && !after:
		if eid := entryID(t.index.Get(k)); eid != 0 && t.entries[eid].held.gapped != 0 {
			c.mergeGap(eid)
		}
	case !before && after:
		c.cameBack(k)
	}
}

// cameBack splits the gap that k lies in for those who hold S on it.

func (c *twoPhase) cameBack(k txnproto.Key) {
	t := c.table
	eid := entryID(t.index.Get(c.gapAfter(k)))
	if eid == 0 {
		return
	}
	for g := t.entries[eid].granted.head; g != 0; g = t.requests[g].next {
		if r := &t.requests[g]; clash[r.held.Gap].has(IX) {
			c.moveGap(r.owner, k)
		}
	}
	// One who waited there as a newcomer may be a holder now, and pass.
	if eid := entryID(t.index.Get(k)); eid != 0 {
		t.walk(eid)
	}
}

// recoverBasic exposes the writes of a transaction that an earlier leader prepared.
func (c *twoPhase) recoverBasic(tx *txnproto.Txn) {
	o := c.branch(tx)
	c.basic.txn(o, tx.ID)
	for i := range tx.Puts {
		c.expose(o, &tx.Puts[i])
	}
}

// describeBasic writes what is exposed, and who depends on whom.
func (c *twoPhase) describeBasic(n *txnproto.Names) string {
	name := func(o owner) string { return n.Txn(c.branches[o].id) }
	text := c.basic.describe(name, n.Key)
	for o := range c.basic.open {
		t := &c.basic.open[o]
		for i, f := range t.from {
			sep := ", "
			if i == 0 {
				sep = n.Txn(t.id) + " has read from "
			}
			text += sep + n.Txn(f.id)
		}
		if len(t.from) > 0 {
			text += "\n"
		}
	}
	return text
}
