// Package timestamp is timestamp ordering: transactions behave as if each had
// run alone at the instant of its timestamp, and who comes too late for that aborts.
//
//	basic.go          to: the rules for reads, writes, scans and commits, and to-thomas
//	                  and to-strict, which differ in one rule each
//	items.go          read and write timestamps and pending writes by key
//	ranges.go         read timestamps of ranges, against phantoms
//	multiversion.go   mvto: reads go to the version of their time
//	versions.go       what mvto knows of a key's versions
package timestamp

import (
	"cmp"
	"fmt"
	"slices"

	"interleave/txnproto"
	"interleave/txnproto/keymap"
)

func init() {
	txnproto.Register(&txnproto.Protocol{
		Name:    "to",
		Family:  "timestamp ordering",
		Draws:   txnproto.DrawsBegin,
		Promise: "serializable",
		Help:    "basic timestamp ordering made recoverable: reads wait for older uncommitted writes",
		Source:  "Bernstein, Goodman 1981 (sec. 4); Bernstein, Hadzilacos, Goodman 1987 ch. 4",
		// A reader's trace is the read timestamp, and that stays when it is gone.
		DropReadOnly: true,
		New:          func(h txnproto.Host, _ txnproto.Params) txnproto.Controller { return newBasic(h, ruleBasic) },
	})
	txnproto.Register(&txnproto.Protocol{
		Name:         "to-thomas",
		Family:       "timestamp ordering",
		Draws:        txnproto.DrawsBegin,
		Promise:      "serializable",
		Help:         "to with Thomas's write rule: a write that a younger one has overtaken is skipped (counted as skipped-writes)",
		Source:       "Thomas 1979; Bernstein, Goodman 1981 (sec. 4.2)",
		DropReadOnly: true,
		New:          func(h txnproto.Host, _ txnproto.Params) txnproto.Controller { return newBasic(h, ruleThomas) },
	})
	txnproto.Register(&txnproto.Protocol{
		Name:         "to-strict",
		Family:       "timestamp ordering",
		Draws:        txnproto.DrawsBegin,
		Promise:      "serializable",
		Help:         "strict timestamp ordering: reads and writes wait for the end of the row's last writer",
		Source:       "Bernstein, Hadzilacos, Goodman 1987 (sec. 4.2)",
		DropReadOnly: true,
		New:          func(h txnproto.Host, _ txnproto.Params) txnproto.Controller { return newBasic(h, ruleStrict) },
	})
}

// rule is which of the protocols a controller follows.
type rule uint8

const (
	ruleBasic rule = iota
	// ruleThomas: of writes that do not read, ts < W is no reason to abort. The write
	// is granted, stays in the workspace for its own transaction to read, and is
	// dropped at the prepare. No version of it comes to be, so histories are
	// conflict serializable in what was installed and view serializable in all.
	ruleThomas
	// ruleStrict: W counts from the write, as where rows are changed in place. So at
	// most one write is pending on an item, and both reads and writes wait for it.
	ruleStrict
)

// basic is basic timestamp ordering with two-phase commit as Bernstein and
// Goodman describe it: a granted write is a prewrite, pending until its transaction
// ends; the write proper (their dm-write) is ordered when the branch prepares.
// Per item there are the read timestamp R, the write timestamp W and the
// pending writes. For a transaction with timestamp ts:
//
//	read    ts < W: too late, abort. A pending write of an older transaction: wait
//	        for its end. Else R = max(R, ts), go.
//	write   ts < R or ts < W: too late, abort. Else it is pending, go.
//	prepare while an item of ours has a pending write of an older transaction: wait
//	        for its end. Else W = ts for each of ours, go.
//
// So versions come in order of timestamp, nobody reads uncommitted data, and what
// aborts is only who is too late. Every wait is for an older transaction, hence
// there is no deadlock, within a shard or across.
//
// W counts from the prepare, not from the install that follows: a read between the
// two that is older than the writer aborts although it would still find its
// version. The log may show the new version before Finish is called.
//
// A scan is a read of every key in its range, present or not. For absent keys R
// would be kept nowhere, so ranges have read timestamps of their own (ranges.go).
//
// Read and write timestamps are not in the log. A new leader counts every item as
// read and written by the newest transaction begun before it came: older ones
// come too late for everything and abort with leader-change.
type basic struct {
	host     txnproto.Host
	rule     rule
	lost     txnproto.Timestamp // the newest one drawn before this controller's birth
	items    items
	ranges   ranges
	branches []branch // by Txn.Slot
	woken    []*txnproto.Txn
}

// branch is what the controller keeps per transaction.
type branch struct {
	id        txnproto.TxnID
	tx        *txnproto.Txn
	op        *txnproto.Op // what waits, nil for a prepare
	writes    pendingID    // the newest of its pending writes
	waits     bool
	on        int32   // while it waits: whose end it waits for
	waiters   []int32 // who waits for its end
	preparing bool
}

func newBasic(h txnproto.Host, r rule) *basic {
	return &basic{host: h, rule: r, lost: h.NewestTS(), items: newItems()}
}

func (c *basic) branch(tx *txnproto.Txn) *branch {
	for tx.Slot >= len(c.branches) {
		c.branches = append(c.branches, branch{})
	}
	b := &c.branches[tx.Slot]
	if b.id != tx.ID {
		*b = branch{id: tx.ID, tx: tx, waiters: b.waiters[:0]}
	}
	return b
}

// Access checks op against the timestamps of what it touches.
func (c *basic) Access(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	b := c.branch(tx)
	if tx.TS <= c.lost {
		return txnproto.Abort(txnproto.LeaderChange)
	}
	b.op = op
	return c.try(b)
}

// try runs b's operation; it is called again after each wait.
func (c *basic) try(b *branch) txnproto.Verdict {
	switch b.op.Kind {
	case txnproto.Read, txnproto.ReadForUpdate:
		return c.read(b, c.items.ensure(b.op.Key))
	case txnproto.Write, txnproto.Delete:
		return c.write(b, c.items.ensure(b.op.Key))
	case txnproto.Modify, txnproto.Insert:
		id := c.items.ensure(b.op.Key)
		if v := c.read(b, id); !v.IsGranted() {
			return v
		}
		return c.write(b, id)
	case txnproto.Scan:
		return c.scan(b)
	default:
		panic("timestamp: unknown operation")
	}
}

var tooLate = txnproto.Abort(txnproto.TSOrder)

func (c *basic) read(b *branch, id itemID) txnproto.Verdict {
	if b.tx.Put(b.op.Key) != nil {
		return txnproto.Granted // its own write, which a rollback to a savepoint may have undone
	}
	if v := c.readable(b, id, b.op.Key); !v.IsGranted() {
		return v
	}
	it := &c.items.all[id]
	it.read = max(it.read, b.tx.TS)
	return txnproto.Granted
}

// readable is the rule for reads, without its effect.
func (c *basic) readable(b *branch, id itemID, k txnproto.Key) txnproto.Verdict {
	it := &c.items.all[id]
	if b.tx.TS < it.written || c.rule == ruleStrict && it.newest != 0 && b.tx.TS < c.items.pending[it.newest].ts {
		return tooLate
	}
	if p := c.items.olderPending(id, b.tx.TS); p != 0 {
		return c.wait(b, k, p)
	}
	return txnproto.Granted
}

func (c *basic) write(b *branch, id itemID) txnproto.Verdict {
	k, ts := b.op.Key, b.tx.TS
	if c.items.pendingOf(id, ts) != 0 {
		if b.op.Kind == txnproto.Delete { // an earlier write left it present
			c.items.irregular.Set(k, struct{}{})
		}
		return txnproto.Granted
	}
	it := &c.items.all[id]
	if ts < it.read || ts < c.ranges.read(k) {
		return tooLate
	}
	switch c.rule {
	case ruleBasic:
		if ts < it.written {
			return tooLate
		}
	case ruleThomas:
		if ts < it.written {
			return txnproto.Granted // not pending, hence dropped at the prepare
		}
	case ruleStrict:
		p := it.newest
		if ts < it.written || p != 0 && ts < c.items.pending[p].ts {
			return tooLate
		}
		if p != 0 {
			return c.wait(b, k, p)
		}
	default:
		panic("timestamp: unknown rule")
	}
	c.addPending(b, id, k, b.op.Kind == txnproto.Delete)
	return txnproto.Granted
}

func (c *basic) addPending(b *branch, id itemID, k txnproto.Key, deletes bool) {
	b.writes = c.items.addPending(id, pending{
		key: k, ts: b.tx.TS, owner: int32(b.tx.Slot), item: id, nextOwn: b.writes,
	})
	if deletes || !c.host.Store().Get(k).Exists {
		c.items.irregular.Set(k, struct{}{})
	}
}

// scan applies the rule for reads to every row of the range, and gives the range
// its read timestamp when all have passed.
func (c *basic) scan(b *branch) txnproto.Verdict {
	end := b.op.End
	if b.op.Key >= end {
		return txnproto.Granted
	}
	store := c.host.Store()
	for k := b.op.Key; k < end; k++ {
		next, ok := store.NextKey(k)
		if i, _, found := c.items.irregular.Ceil(k); found && (!ok || i < next) {
			next, ok = i, true
		}
		if !ok || next >= end {
			break
		}
		k = next
		id := c.items.find(k)
		if id == 0 {
			continue // never written here
		}
		if v := c.readable(b, id, k); !v.IsGranted() {
			return v
		}
	}
	c.ranges.raise(b.op.Key, end, b.tx.TS)
	return txnproto.Granted
}

// wait makes b wait for the end of p's transaction.
func (c *basic) wait(b *branch, k txnproto.Key, p pendingID) txnproto.Verdict {
	w := &c.items.pending[p]
	if w.ts >= b.tx.TS {
		panic(fmt.Sprintf("timestamp: %v at %v would wait for a transaction of timestamp %d, younger than its own %d",
			b.id, c.host.Now(), w.ts, b.tx.TS))
	}
	o := &c.branches[w.owner]
	o.waiters = append(o.waiters, int32(b.tx.Slot))
	b.waits, b.on = true, w.owner
	s := c.host.Stats()
	s.QueueCount++
	s.QueueSum += uint64(len(o.waiters))
	s.QueueMax = max(s.QueueMax, len(o.waiters))
	on := [1]txnproto.TxnID{o.id}
	c.host.Blocked(b.tx, k, on[:])
	return txnproto.Waiting
}

// Prepare waits until the branch's writes are the oldest pending ones of their
// items; then their place in the version order is fixed.
func (c *basic) Prepare(tx *txnproto.Txn) txnproto.Verdict {
	b := c.branch(tx)
	b.op, b.preparing = nil, true
	if c.rule == ruleThomas {
		c.skipWrites(tx)
	}
	return c.tryPrepare(b)
}

// skipWrites drops the writes that came after a younger one: those that are not pending.
func (c *basic) skipWrites(tx *txnproto.Txn) {
	for i := len(tx.Puts) - 1; i >= 0; i-- {
		k := tx.Puts[i].Key
		if c.items.pendingOf(c.items.ensure(k), tx.TS) == 0 {
			tx.DropPut(k)
			c.host.Stats().Extra["skipped-writes"]++
		}
	}
}

func (c *basic) tryPrepare(b *branch) txnproto.Verdict {
	for p := b.writes; p != 0; p = c.items.pending[p].nextOwn {
		w := &c.items.pending[p]
		if older := c.items.olderPending(w.item, b.tx.TS); older != 0 {
			return c.wait(b, w.key, older)
		}
	}
	for p := b.writes; p != 0; p = c.items.pending[p].nextOwn {
		it := &c.items.all[c.items.pending[p].item]
		it.written = max(it.written, b.tx.TS)
	}
	return txnproto.Granted
}

// Finish ends the branch's pending writes and wakes those who waited for them,
// the oldest first: a younger writer must not overtake an older reader.
func (c *basic) Finish(tx *txnproto.Txn, _ txnproto.Outcome) {
	if tx.Slot >= len(c.branches) || c.branches[tx.Slot].id != tx.ID {
		return
	}
	b := &c.branches[tx.Slot]
	if b.waits {
		o := &c.branches[b.on]
		i := slices.Index(o.waiters, int32(tx.Slot))
		o.waiters = slices.Delete(o.waiters, i, i+1)
	}
	store := c.host.Store()
	for p := b.writes; p != 0; {
		w := c.items.pending[p]
		c.items.dropPending(p)
		c.items.settle(w.item, w.key, store)
		p = w.nextOwn
	}
	c.woken = c.woken[:0]
	for _, s := range b.waiters {
		c.woken = append(c.woken, c.branches[s].tx)
	}
	*b = branch{waiters: b.waiters[:0]}
	slices.SortFunc(c.woken, func(x, y *txnproto.Txn) int { return cmp.Compare(x.TS, y.TS) })
	for _, t := range c.woken {
		w := &c.branches[t.Slot]
		w.waits = false
		var v txnproto.Verdict
		if w.preparing {
			v = c.tryPrepare(w)
		} else {
			v = c.try(w)
		}
		if !v.IsWaiting() {
			c.host.Resolve(t, v)
		}
	}
}

// Recover makes a prepared branch's writes pending again. Whoever may come now is
// younger and waits for them, so their items need no write timestamp.
func (c *basic) Recover(tx *txnproto.Txn) {
	b := c.branch(tx)
	b.preparing = true
	for i := range tx.Puts {
		p := &tx.Puts[i]
		id := c.items.ensure(p.Key)
		c.addPending(b, id, p.Key, p.Deleted)
	}
}

// String shows the timestamps of every key touched, for people.
func (c *basic) String() string { return c.items.describe(c) + c.ranges.String() }

// keySet is an ordered set of keys.
type keySet = keymap.Ordered[struct{}]
