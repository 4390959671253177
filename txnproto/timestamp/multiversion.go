package timestamp

import (
	"cmp"
	"fmt"
	"slices"

	"interleave/txnproto"
)

func init() {
	txnproto.Register(&txnproto.Protocol{
		Name:         "mvto",
		Family:       "timestamp ordering",
		Promise:      "serializable",
		Help:         "multiversion timestamp ordering: reads never come too late, they go to the version of their time",
		Source:       "Reed 1978, 1983; Bernstein, Goodman 1983",
		Versioning:   txnproto.VersionByBegin,
		Draws:        txnproto.DrawsBegin,
		DropReadOnly: true,
		New:          func(h txnproto.Host, _ txnproto.Params) txnproto.Controller { return newMultiversion(h) },
	})
}

// multiversion is multiversion timestamp ordering. Every write makes a version of
// its writer's timestamp. For a transaction of timestamp ts, and v the newest version
// older than ts:
//
//	read    v uncommitted: wait for its writer's end. Else R(v) = max(R(v), ts), read v.
//	write   R(v) > ts: a younger one has read v where it should have read this, abort.
//	        Else it is a new version, uncommitted until its transaction ends.
//
// Reads never abort. Every wait is for an older transaction, hence there is no
// deadlock. A transaction that commits has read what the serial order of timestamps
// gives it, so that order is an equivalent one; versions need not be installed in it.
//
// A scan reads every key of its range, absent ones too. Its timestamp is kept for
// the range as a whole (ranges.go), and a write that is older than the youngest scan
// over its key aborts, even where that scan has read a version younger than the
// write. Reed's protocol has no scans.
//
// R of rows is not in the log. A new leader counts every version as read by the
// newest transaction begun before it came: older ones abort with leader-change.
type multiversion struct {
	host     txnproto.Host
	lost     txnproto.Timestamp // the newest one drawn before this controller's birth
	versions versions
	ranges   ranges
	branches []mvBranch // by Txn.Slot
	woken    []*txnproto.Txn
}

// mvBranch is what the controller keeps per transaction.
type mvBranch struct {
	id      txnproto.TxnID
	tx      *txnproto.Txn
	op      *txnproto.Op
	writes  versionID // the newest of its pending versions
	waits   bool
	on      int32   // while it waits: whose end it waits for
	waiters []int32 // who waits for its end
}

func newMultiversion(h txnproto.Host) *multiversion {
	return &multiversion{host: h, lost: h.NewestTS(), versions: newVersions()}
}

func (c *multiversion) branch(tx *txnproto.Txn) *mvBranch {
	for tx.Slot >= len(c.branches) {
		c.branches = append(c.branches, mvBranch{})
	}
	b := &c.branches[tx.Slot]
	if b.id != tx.ID {
		*b = mvBranch{id: tx.ID, tx: tx, waiters: b.waiters[:0]}
	}
	return b
}

// Access finds the version to read or the place of the one to write.
func (c *multiversion) Access(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	b := c.branch(tx)
	if tx.TS <= c.lost {
		return txnproto.Abort(txnproto.LeaderChange)
	}
	b.op = op
	return c.try(b)
}

// try runs b's operation; it is called again after each wait.
func (c *multiversion) try(b *mvBranch) txnproto.Verdict {
	op := b.op
	op.Snapshot = txnproto.Version(b.tx.TS)
	switch op.Kind {
	case txnproto.Read, txnproto.ReadForUpdate:
		return c.read(b)
	case txnproto.Write, txnproto.Delete:
		return c.write(b)
	case txnproto.Modify, txnproto.Insert:
		if v := c.read(b); !v.IsGranted() {
			return v
		}
		return c.write(b)
	case txnproto.Scan:
		return c.scan(b)
	default:
		panic("timestamp: unknown operation")
	}
}

func (c *multiversion) read(b *mvBranch) txnproto.Verdict {
	k, ts := b.op.Key, b.tx.TS
	if b.tx.Put(k) != nil {
		return txnproto.Granted // its own write
	}
	id := c.versions.ensure(k, c.lost)
	v := c.versions.below(id, ts)
	if c.versions.nodes[v].pending {
		return c.wait(b, k, v)
	}
	r := c.versions.readOf(id, v)
	*r = max(*r, ts)
	return txnproto.Granted
}

func (c *multiversion) write(b *mvBranch) txnproto.Verdict {
	k, ts := b.op.Key, b.tx.TS
	id := c.versions.ensure(k, c.lost)
	if c.versions.of(id, ts) != 0 {
		return txnproto.Granted
	}
	v := c.versions.below(id, ts)
	if *c.versions.readOf(id, v) > ts || c.ranges.read(k) > ts {
		return tooLate
	}
	c.addPending(b, id, k)
	return txnproto.Granted
}

func (c *multiversion) addPending(b *mvBranch, id chainID, k txnproto.Key) {
	b.writes = c.versions.add(id, version{key: k, ts: b.tx.TS, owner: int32(b.tx.Slot), nextOwn: b.writes})
}

// scan waits for what it shall read and is still uncommitted, and then gives the range
// its read timestamp.
func (c *multiversion) scan(b *mvBranch) txnproto.Verdict {
	lo, end, ts := b.op.Key, b.op.End, b.tx.TS
	if lo >= end {
		return txnproto.Granted
	}
	keys := &c.versions.pendingKeys
	for k, id, ok := keys.Ceil(lo); ok && k < end; k, id, ok = keys.Ceil(k + 1) {
		if v := c.versions.below(id, ts); c.versions.nodes[v].pending && b.tx.Put(k) == nil {
			return c.wait(b, k, v)
		}
	}
	c.ranges.raise(lo, end, ts)
	return txnproto.Granted
}

// wait makes b wait for the end of v's writer.
func (c *multiversion) wait(b *mvBranch, k txnproto.Key, v versionID) txnproto.Verdict {
	n := &c.versions.nodes[v]
	if n.ts >= b.tx.TS {
		panic(fmt.Sprintf("timestamp: %v at %v would wait for a transaction of timestamp %d, younger than its own %d",
			b.id, c.host.Now(), n.ts, b.tx.TS))
	}
	o := &c.branches[n.owner]
	o.waiters = append(o.waiters, int32(b.tx.Slot))
	b.waits, b.on = true, n.owner
	s := c.host.Stats()
	s.QueueCount++
	s.QueueSum += uint64(len(o.waiters))
	s.QueueMax = max(s.QueueMax, len(o.waiters))
	on := [1]txnproto.TxnID{o.id}
	c.host.Blocked(b.tx, k, on[:])
	return txnproto.Waiting
}

// Prepare has nothing to validate: every operation was checked when it came.
func (c *multiversion) Prepare(*txnproto.Txn) txnproto.Verdict { return txnproto.Granted }

// Finish settles the branch's versions and wakes those who waited for them, the
// oldest first.
func (c *multiversion) Finish(tx *txnproto.Txn, o txnproto.Outcome) {
	if tx.Slot >= len(c.branches) || c.branches[tx.Slot].id != tx.ID {
		return
	}
	b := &c.branches[tx.Slot]
	if b.waits {
		o := &c.branches[b.on]
		i := slices.Index(o.waiters, int32(tx.Slot))
		o.waiters = slices.Delete(o.waiters, i, i+1)
	}
	oldest := c.host.OldestTS()
	for v := b.writes; v != 0; {
		n := c.versions.nodes[v]
		// What a rollback to a savepoint has undone is not there to be read.
		c.versions.settle(v, o == txnproto.Committed && tx.Put(n.key) != nil)
		c.versions.fold(n.chain, oldest)
		v = n.nextOwn
	}
	c.woken = c.woken[:0]
	for _, s := range b.waiters {
		c.woken = append(c.woken, c.branches[s].tx)
	}
	*b = mvBranch{waiters: b.waiters[:0]}
	slices.SortFunc(c.woken, func(x, y *txnproto.Txn) int { return cmp.Compare(x.TS, y.TS) })
	for _, t := range c.woken {
		w := &c.branches[t.Slot]
		w.waits = false
		if v := c.try(w); !v.IsWaiting() {
			c.host.Resolve(t, v)
		}
	}
}

// Recover makes a prepared branch's versions pending again.
func (c *multiversion) Recover(tx *txnproto.Txn) {
	b := c.branch(tx)
	for i := range tx.Puts {
		k := tx.Puts[i].Key
		c.addPending(b, c.versions.ensure(k, c.lost), k)
	}
}

// String shows the versions of every key touched, newest first, for people.
func (c *multiversion) String() string { return c.versions.describe(c, nil) + c.ranges.String() }
