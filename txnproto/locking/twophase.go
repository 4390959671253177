package locking

import (
	"interleave/sim/event"
	"interleave/txnproto"
)

// twoPhase is one shard's controller.
type twoPhase struct {
	host     txnproto.Host
	config   config
	table    *table
	branches []branch // by Txn.Slot

	// uncommitted holds keys that a granted insert, or write or delete of an
	// absent row, is about to make present, and those about to be deleted. With the
	// store's they are the keys that gaps lie between. See nextkey.go.
	uncommitted keySet

	current owner // whose Access is being answered, or nobody
	answer  bool  // current's operation was granted after all

	wokenDone, looksDone int // how far settle has got in table.woken and looks

	deadlocks
	prober
	scanners []owner // who holds a span; see ordered.go
	basic    *basic  // nil but under basic two-phase locking
}

const nobody owner = -1

// branch is what the controller keeps per transaction.
type branch struct {
	id      txnproto.TxnID
	tx      *txnproto.Txn
	op      *txnproto.Op
	cursor  txnproto.Key         // scan: everything in the range before it is locked
	doomed  txnproto.AbortReason // aborted by us for this; Finish follows
	wounded bool                 // Host.Kill was asked for it

	saved      []savedLock // see savepoint.go
	ranges     []span      // see ordered.go
	escalateAt int         // locks below the table when escalation is tried again

	// While it waits:
	request   requestID
	epoch     uint64 // of the wait; no two waits at a shard share one
	looked    bool   // its first look is over
	published bool   // the detector knows of it
	probe     uint64 // number of its last probe
	detectAt  event.Timer
	timeoutAt event.Timer

	// An insert's granted right to enter a gap, while it is being used.
	entering requestID

	// During a search:
	mark uint64
	from owner
}

func newTwoPhase(h txnproto.Host, c config) *twoPhase {
	t := &twoPhase{host: h, config: c, table: newTable(), current: nobody}
	if c.strategy == ordered {
		t.table.ordered = &keySet{}
	}
	if c.basic {
		t.basic = newBasic(c.recoverable)
	}
	t.startDeadlocks()
	return t
}

func (c *twoPhase) branch(tx *txnproto.Txn) owner {
	o := owner(tx.Slot)
	for int(o) >= len(c.branches) {
		c.branches = append(c.branches, branch{})
	}
	if b := &c.branches[o]; b.id != tx.ID {
		*b = branch{id: tx.ID, tx: tx, saved: b.saved[:0], ranges: b.ranges[:0]}
		c.table.grow(o)
	}
	return o
}

// Access locks what op touches.
func (c *twoPhase) Access(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	o := c.branch(tx)
	b := &c.branches[o]
	b.op, b.cursor = op, op.Key
	if c.advance(o) && c.quiet() {
		return txnproto.Granted
	}
	c.current, c.answer = o, b.request == 0
	c.settle()
	c.current = nobody
	switch {
	case b.doomed != txnproto.NoReason:
		return txnproto.Abort(b.doomed)
	case c.answer:
		return txnproto.Granted
	default:
		return txnproto.Waiting
	}
}

// Prepare has nothing to validate: who holds all its locks may commit.
func (c *twoPhase) Prepare(tx *txnproto.Txn) txnproto.Verdict {
	if c.basic != nil {
		return c.prepareBasic(tx)
	}
	return txnproto.Granted
}

// Finish releases tx's locks and grants them to whom they were denied.
func (c *twoPhase) Finish(tx *txnproto.Txn, outcome txnproto.Outcome) {
	o := owner(tx.Slot)
	if int(o) >= len(c.branches) || c.branches[o].id != tx.ID {
		return
	}
	if b := &c.branches[o]; b.request != 0 {
		id := b.request
		c.endWait(o)
		c.table.abandon(id)
	}
	if c.basic != nil {
		c.finishBasic(o, outcome)
	}
	c.releaseAll(o)
	b := &c.branches[o]
	*b = branch{saved: b.saved[:0], ranges: b.ranges[:0]}
	if !c.quiet() {
		c.settle()
	}
}

func (c *twoPhase) releaseAll(o owner) {
	t := c.table
	ids := t.owned[o]
	if c.config.granularity == granularityRow {
		for _, id := range ids {
			c.release(id)
		}
	} else {
		for i := len(ids) - 1; i >= 0; i-- { // the leaves before the root
			c.release(ids[i])
		}
	}
	t.owned[o] = ids[:0]
	if len(c.branches[o].ranges) > 0 {
		c.dropSpans(o)
	}
}

// release takes back a granted lock that its owner's list is about to lose.
func (c *twoPhase) release(id requestID) {
	t := c.table
	r := &t.requests[id]
	wrote, indexed := r.held.Row == X, r.indexed
	eid := t.take(id)
	k := t.entries[eid].key
	if indexed {
		c.uncommitted.Delete(k)
	}
	if wrote && t.entries[eid].held.gapped != 0 {
		c.mergeGap(eid)
	}
	t.walk(eid)
	t.dropIfIdle(eid)
}

// Recover takes back the exclusive locks of a prepared transaction's writes.
// Its read locks are not needed any more: it is past its lock point.
func (c *twoPhase) Recover(tx *txnproto.Txn) {
	if c.basic != nil {
		c.recoverBasic(tx)
		return
	}
	o := c.branch(tx)
	switch c.config.granularity {
	case granularityRow:
	case granularityTable:
		c.recoverLock(o, tableKey, X)
		return
	case granularityAuto:
		c.recoverLock(o, tableKey, IX)
	default:
		panic("locking: unknown granularity")
	}
	for i := range tx.Puts {
		p := &tx.Puts[i]
		id := c.recoverLock(o, p.Key, X)
		if c.config.strategy == ordered {
			continue
		}
		if p.Deleted || !c.present(p.Key) {
			c.place(id)
		}
	}
}

func (c *twoPhase) recoverLock(o owner, k txnproto.Key, m Mode) requestID {
	id, ok := c.table.acquire(o, k, Lock{Row: m})
	if !ok {
		panic("locking: two prepared transactions wrote one key: " + c.branches[o].id.String())
	}
	return id
}

// advance locks what b's operation still lacks and reports whether it has all, or goes on
// without (WaitSkip). Otherwise a wait has begun, or b is doomed.
func (c *twoPhase) advance(o owner) bool {
	if c.config.strategy == ordered {
		return c.advanceOrdered(o)
	}
	op := c.branches[o].op
	switch op.Kind {
	case txnproto.Read, txnproto.LockShared:
		return c.lockRow(o, op.Key, S)
	case txnproto.ReadForUpdate:
		return c.lockRow(o, op.Key, c.config.forUpdate)
	case txnproto.LockExclusive:
		return c.lockRow(o, op.Key, X)
	case txnproto.Write, txnproto.Modify, txnproto.Insert, txnproto.Delete:
		return c.lockRow(o, op.Key, X) && (op.Skip || c.covered(o, X) || c.makePresent(o))
	case txnproto.Scan:
		return c.lockAbove(o, S) && c.lockRange(o)
	case txnproto.RollbackTo, txnproto.NumOpKinds:
		panic("locking: not an operation for a controller: " + op.Kind.String())
	default:
		panic("locking: unknown operation")
	}
}

// lock asks for l at k. When it is not granted it reports what mustWait does.
func (c *twoPhase) lock(o owner, k txnproto.Key, l Lock) bool {
	if c.branches[o].tx.Save > 0 {
		c.noteSaved(o, k, l)
	}
	id, ok := c.table.acquire(o, k, l)
	return ok || c.mustWait(o, id)
}

// quiet reports whether nothing is left for settle.
func (c *twoPhase) quiet() bool {
	return len(c.table.woken) == 0 && len(c.table.changed) == 0 && len(c.looks) == 0
}

// settle carries on everyone whose lock was granted and looks at new waits, until
// nothing moves.
func (c *twoPhase) settle() {
	t := c.table
	for {
		switch {
		case c.wokenDone < len(t.woken):
			o := t.woken[c.wokenDone]
			c.wokenDone++
			c.endWait(o)
			if !c.advance(o) {
				continue
			}
			if o == c.current {
				c.answer = true
				continue
			}
			b := &c.branches[o]
			b.op = nil
			c.host.Resolve(b.tx, txnproto.Granted)
		case len(t.changed) > 0:
			id := t.changed[len(t.changed)-1]
			t.changed = t.changed[:len(t.changed)-1]
			if r := &t.requests[id]; r.waits() {
				c.lookAgain(r.owner)
			}
		case c.looksDone < len(c.looks):
			o := c.looks[c.looksDone]
			c.looksDone++
			if c.waits(o) {
				c.look(o)
			}
		default:
			t.woken, c.wokenDone = t.woken[:0], 0
			c.looks, c.looksDone = c.looks[:0], 0
			return
		}
	}
}

// String shows the lock table: a line per locked key, holders before waiters.
func (c *twoPhase) String() string {
	return c.Describe(nil)
}
