package snapshot

import (
	"fmt"
	"slices"
	"strings"

	"interleave/txnproto"
)

// controller is one shard's concurrency control under any of the protocols.
//
// An operation that reads takes its snapshot, waits while what it would see is being
// decided, and goes. One that writes, or reads for update, asks the lock table
// first, and is checked when it has its lock.
type controller struct {
	host      txnproto.Host
	kind      kind
	lost      txnproto.Timestamp // the newest one drawn before this controller's birth
	calm      txnproto.Timestamp // see admits; 0: not yet known
	locks     *rowLocks
	prepared  preparedRows
	conflicts *conflicts // ssi only
	branches  []branch   // by Txn.Slot
	woken     []*txnproto.Txn
}

// branch is what the controller keeps per transaction.
type branch struct {
	id       txnproto.TxnID
	tx       *txnproto.Txn
	op       *txnproto.Op
	locked   bool // its operation has the lock that it needs
	prepared bool
	bound    txnproto.Timestamp // when prepared: it commits at no earlier timestamp
	record   recordID           // ssi: what is remembered of it

	waits   bool    // for the end of a prepared transaction; waits for locks are the lock table's
	on      int32   // while it waits: whose end it waits for
	waiters []int32 // who waits for its end
}

var (
	_ txnproto.Recoverer   = (*controller)(nil)
	_ txnproto.Timed       = (*controller)(nil)
	_ txnproto.Messenger   = (*controller)(nil)
	_ txnproto.Savepointer = (*controller)(nil)
)

func newController(h txnproto.Host, k kind, p txnproto.Params) *controller {
	c := &controller{host: h, kind: k, lost: h.NewestTS()}
	defs := rowLockParams()
	if k == lockingUpdaters {
		defs = lockManager().Params
	}
	c.locks = newRowLocks(h, p, defs)
	if k == serializableSnapshot {
		c.conflicts = newConflicts(h)
	}
	return c
}

func (c *controller) branch(tx *txnproto.Txn) *branch {
	for tx.Slot >= len(c.branches) {
		c.branches = append(c.branches, branch{})
	}
	b := &c.branches[tx.Slot]
	if b.id != tx.ID {
		*b = branch{id: tx.ID, tx: tx, waiters: b.waiters[:0]}
		if c.conflicts != nil {
			b.record = c.conflicts.begin(tx)
		}
	}
	return b
}

// admits reports whether a transaction of timestamp ts is concurrent with none that
// may have lost traces of its reads with this shard's former leader.
func (c *controller) admits(ts txnproto.Timestamp) bool {
	if c.lost == 0 {
		return true
	}
	if c.calm == 0 {
		if c.host.OldestTS() <= c.lost {
			return false
		}
		c.calm = c.host.NewestTS()
	}
	return ts > c.calm
}

// Access runs op at its snapshot, or locks what it changes.
func (c *controller) Access(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	locks := c.mustLock(tx, op)
	relies := c.kind == serializableSnapshot || c.kind == lockingUpdaters && op.Kind.Writes()
	if relies && !c.admits(tx.TS) {
		return txnproto.Abort(txnproto.LeaderChange)
	}
	b := c.branch(tx)
	b.op, b.locked = op, false
	if !locks {
		op.Snapshot = c.snapshot(tx, op)
		return c.read(b)
	}
	if c.overtaken(b) { // there is no point in waiting for the lock
		return txnproto.Abort(txnproto.WriteConflict)
	}
	v := c.locks.control.Access(tx, op)
	if v.IsGranted() {
		v = c.change(b)
	}
	c.pass()
	return v
}

// mustLock reports whether op needs the lock table.
func (c *controller) mustLock(tx *txnproto.Txn, op *txnproto.Op) bool {
	switch op.Kind {
	case txnproto.Read, txnproto.Scan:
		return c.kind == lockingUpdaters && !tx.ReadOnly
	case txnproto.ReadForUpdate, txnproto.Write, txnproto.Modify, txnproto.Insert, txnproto.Delete,
		txnproto.LockShared, txnproto.LockExclusive:
		if tx.ReadOnly {
			panic(fmt.Sprintf("snapshot: %v at %v: %v of key %d by a program that has declared to read only",
				tx.ID, c.host.Now(), op.Kind, op.Key))
		}
		return true
	case txnproto.RollbackTo:
		panic("snapshot: a rollback to a savepoint is the host's")
	default:
		panic("snapshot: unknown operation")
	}
}

// snapshot is what a read of op sees: all that was decided up to it.
func (c *controller) snapshot(tx *txnproto.Txn, op *txnproto.Op) txnproto.Version {
	if c.kind != readCommitted {
		return txnproto.Version(tx.TS)
	}
	if op.Snapshot != 0 {
		return op.Snapshot // a scan's, from the first shard it was on
	}
	return txnproto.Version(c.host.NewestTS())
}

// read lets b's operation read when nothing that it might see is being decided.
func (c *controller) read(b *branch) txnproto.Verdict {
	op := b.op
	lo, hi := op.Key, op.Key+1
	if op.Kind == txnproto.Scan {
		hi = op.End
	}
	for k := lo; ; k++ {
		at, writer, ok := c.prepared.within(k, hi)
		if !ok {
			break
		}
		// Under ssi the outcome of a writer it cannot see matters too.
		if op.Snapshot > txnproto.Version(c.branches[writer].bound) || c.conflicts != nil {
			return c.wait(b, at, writer)
		}
		k = at
	}
	if c.conflicts == nil || op.Kind != txnproto.Scan && b.tx.Put(op.Key) != nil {
		return txnproto.Granted
	}
	return c.conflicts.read(b.record, b.tx, lo, hi, op.Kind == txnproto.Scan)
}

// overtaken reports whether the row of b's operation has a version that b does not see
// and must not overwrite.
func (c *controller) overtaken(b *branch) bool {
	if c.kind != snapshotIsolation && c.kind != serializableSnapshot {
		return false
	}
	return c.host.Store().Get(b.op.Key).Version > txnproto.Version(b.tx.TS)
}

// change checks b's operation, which has its lock.
func (c *controller) change(b *branch) txnproto.Verdict {
	op := b.op
	b.locked = true
	if op.Skip {
		return txnproto.Granted
	}
	switch c.kind {
	case readCommitted, lockingUpdaters:
		// The newest version is committed, and nobody can be about to install another.
		op.Snapshot = 0
		return txnproto.Granted
	case snapshotIsolation, serializableSnapshot:
		if c.overtaken(b) {
			return txnproto.Abort(txnproto.WriteConflict)
		}
		op.Snapshot = txnproto.Version(b.tx.TS)
	default:
		panic("snapshot: unknown protocol")
	}
	if c.conflicts == nil {
		return txnproto.Granted
	}
	if !op.Kind.Writes() {
		return c.read(b)
	}
	v, reader := c.conflicts.write(b.record, b.tx, op.Key)
	if v.IsWaiting() {
		return c.wait(b, op.Key, reader)
	}
	return v
}

// wait makes b wait for the end of the prepared transaction in slot on.
func (c *controller) wait(b *branch, k txnproto.Key, on int32) txnproto.Verdict {
	o := &c.branches[on]
	if !o.prepared || int(on) == b.tx.Slot {
		panic(fmt.Sprintf("snapshot: %v at %v would wait for %v, which has not prepared", b.id, c.host.Now(), o.id))
	}
	o.waiters = append(o.waiters, int32(b.tx.Slot))
	b.waits, b.on = true, on
	s := c.host.Stats()
	s.QueueCount++
	s.QueueSum += uint64(len(o.waiters))
	s.QueueMax = max(s.QueueMax, len(o.waiters))
	ids := [1]txnproto.TxnID{o.id}
	c.host.Blocked(b.tx, k, ids[:])
	return txnproto.Waiting
}

// pass takes the lock table's answers to those who waited for it.
func (c *controller) pass() {
	l := c.locks
	for i := 0; i < len(l.answered); i++ {
		a := l.answered[i]
		v := a.v
		if v.IsGranted() {
			v = c.change(&c.branches[a.tx.Slot])
		}
		if !v.IsWaiting() {
			c.host.Resolve(a.tx, v)
		}
	}
	l.answered = l.answered[:0]
}

// Prepare puts the branch's writes among those being decided. Under ssi the branch
// votes with its conflicts.
func (c *controller) Prepare(tx *txnproto.Txn) txnproto.Verdict {
	b := c.branch(tx)
	if v := c.locks.control.Prepare(tx); !v.IsGranted() {
		panic("snapshot: " + tx.ID.String() + ": the lock table does not let it prepare")
	}
	b.prepared, b.bound = true, c.host.PrepareTS(tx)
	c.prepared.add(tx)
	if c.conflicts != nil {
		tx.Vote = c.conflicts.prepare(b.record, tx, b.bound)
	}
	return txnproto.Granted
}

// Finish releases what tx holds and lets those go on who waited for its end.
func (c *controller) Finish(tx *txnproto.Txn, o txnproto.Outcome) {
	if tx.Slot >= len(c.branches) || c.branches[tx.Slot].id != tx.ID {
		return
	}
	b := &c.branches[tx.Slot]
	if b.waits {
		o := &c.branches[b.on]
		i := slices.Index(o.waiters, int32(tx.Slot))
		o.waiters = slices.Delete(o.waiters, i, i+1)
	}
	if b.prepared {
		c.prepared.remove(tx)
	}
	if b.record != 0 {
		c.conflicts.finish(b.record, tx, o)
	}
	c.woken = c.woken[:0]
	for _, s := range b.waiters {
		c.woken = append(c.woken, c.branches[s].tx)
	}
	*b = branch{waiters: b.waiters[:0]}
	for _, t := range c.woken {
		w := &c.branches[t.Slot]
		w.waits = false
		var v txnproto.Verdict
		if w.locked {
			v = c.change(w)
		} else {
			v = c.read(w)
		}
		if !v.IsWaiting() {
			c.host.Resolve(t, v)
		}
	}
	c.locks.control.Finish(tx, o)
	c.pass()
	c.admits(0) // find out whether this was the last of the old ones
}

// Recover takes back a prepared branch's locks.
func (c *controller) Recover(tx *txnproto.Txn) {
	b := c.branch(tx)
	if b.record != 0 {
		// Whoever could conflict with it is not admitted.
		c.conflicts.forget(b.record)
		b.record = 0
	}
	b.prepared, b.bound = true, tx.TS
	c.prepared.add(tx)
	c.locks.control.(txnproto.Recoverer).Recover(tx)
	c.pass()
}

// RollbackTo tells the lock table.
func (c *controller) RollbackTo(tx *txnproto.Txn, save int) {
	if s, ok := c.locks.control.(txnproto.Savepointer); ok {
		s.RollbackTo(tx, save)
		c.pass()
	}
}

// Timer is the lock table's.
func (c *controller) Timer(arg uint64) {
	c.locks.control.(txnproto.Timed).Timer(arg)
	c.pass()
}

// Receive is the lock table's.
func (c *controller) Receive(from txnproto.ShardID, m *txnproto.Message) {
	c.locks.control.(txnproto.Messenger).Receive(from, m)
	c.pass()
}

// PeerReset is the lock table's.
func (c *controller) PeerReset(s txnproto.ShardID) {
	c.locks.control.(txnproto.Messenger).PeerReset(s)
	c.pass()
}

// String shows locks, rows being decided and conflicts, for people.
func (c *controller) String() string { return c.Describe(nil) }

// Describe implements txnproto.Describer: the locks, the rows being decided, and under
// ssi the transactions remembered with their conflicts.
func (c *controller) Describe(n *txnproto.Names) string {
	var b strings.Builder
	if d, ok := c.locks.control.(txnproto.Describer); ok {
		b.WriteString(d.Describe(n))
	}
	for k, w, ok := c.prepared.rows.Ceil(0); ok; k, w, ok = c.prepared.rows.Ceil(k + 1) {
		fmt.Fprintf(&b, "%s: decided by %s\n", n.Key(k), n.Txn(c.branches[w].id))
	}
	if c.conflicts != nil {
		b.WriteString(c.conflicts.describe(n))
	}
	return b.String()
}
