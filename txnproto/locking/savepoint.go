package locking

import "interleave/txnproto"

// Savepoints
//
// A rollback to a savepoint releases the locks taken since it was set. What
// was read under them is not part of the transaction any more and what was written
// is undone, so it is as if they had never been asked for, and two-phase locking
// stands: the rest of the transaction's locks still only grow. Locks
// that were strengthened since get their former mode back (Gray, Reuter 1993
// ch. 7; PostgreSQL does the same with the locks of a subtransaction). With
// savepoint-locks=keep all stay until the end, as in InnoDB.

// savedLock says what a transaction held at a key before it took more under a savepoint.
type savedLock struct {
	key    txnproto.Key
	save   int // the newest savepoint then
	before Lock
}

// noteSaved records what o holds at k if it is about to take more under a savepoint.
func (c *twoPhase) noteSaved(o owner, k txnproto.Key, l Lock) {
	b := &c.branches[o]
	var before Lock
	if eid := entryID(c.table.index.Get(k)); eid != 0 {
		if id := c.table.find(o, eid); id != 0 {
			before = c.table.requests[id].held
		}
	}
	if !before.covers(l) {
		b.saved = append(b.saved, savedLock{k, b.tx.Save, before})
	}
}

// moveGap gives o, which has S on another gap, S on that of k. It belongs to
// what o held before any savepoint, to be safe.
func (c *twoPhase) moveGap(o owner, k txnproto.Key) {
	c.table.force(o, k, Lock{Gap: S})
	saved := c.branches[o].saved
	for i := range saved {
		if saved[i].key == k {
			saved[i].before = saved[i].before.join(Lock{Gap: S})
		}
	}
}

// RollbackTo releases what tx took under savepoint save and later ones.
func (c *twoPhase) RollbackTo(tx *txnproto.Txn, save int) {
	o := c.branch(tx)
	b := &c.branches[o]
	if c.basic != nil {
		c.basic.forgetSources(o, tx.ID, save)
	}
	for n := len(b.saved); n > 0 && b.saved[n-1].save >= save; n-- {
		s := b.saved[n-1]
		b.saved = b.saved[:n-1]
		if !c.config.keepLocks {
			c.weaken(o, s.key, s.before)
		}
	}
	if c.config.granularity == granularityAuto && c.tableMode(o) == None {
		// All is undone; gaps that were moved and therefore kept go with their table.
		c.releaseAll(o)
	}
	if !c.quiet() {
		c.settle()
	}
}

// weaken takes o's lock at k back to before.
func (c *twoPhase) weaken(o owner, k txnproto.Key, before Lock) {
	t := c.table
	eid := entryID(t.index.Get(k))
	if eid == 0 {
		return // it was never granted, or was skipped
	}
	id := t.find(o, eid)
	if id == 0 || t.requests[id].held == before {
		return
	}
	if before == (Lock{}) {
		t.disown(o, id)
		c.release(id)
		return
	}
	r := &t.requests[id]
	gone := r.indexed && before.Row != X
	t.setHeld(&t.entries[eid], r, before)
	if gone {
		r.indexed = false
		c.uncommitted.Delete(k)
		if t.entries[eid].held.gapped != 0 {
			c.mergeGap(eid)
		}
	}
	t.walk(eid)
}
