package optimistic

import (
	"fmt"
	"slices"
	"strings"

	"interleave/txnproto"
)

// rule is what one protocol on shared is.
type rule interface {
	// access notes what a running member reads, and may make it wait for a pending
	// one; it is asked again at that one's end.
	access(m *member, op *txnproto.Op) txnproto.Verdict
	// check tests m, which asks to commit and is in no conflict over what it writes.
	check(m *member, v *test)
	// enter is told that m is pending now.
	enter(m *member)
	// leave is told that pending m ends.
	leave(m *member, o txnproto.Outcome)
}

// shared is what the protocols of this package have in common but for those that
// are written around transaction numbers (serial.go): which members run, which are
// pending, what the pending have written and read, and who waits for whom.
type shared struct {
	host        txnproto.Host
	rule        rule
	distributed bool
	exclusive   bool // two pending members never write the same row, on one shard either
	protects    bool // nobody writes what a pending member of several shards has read

	now     moment
	members []member
	writers index // of the pending, by slot+1
	readers index // likewise, when protects
	special []int32
	changes changes
	woken   []*txnproto.Txn
	test    test // the one under way, here so that it costs no allocation

	oldest, youngest int32 // the running in order of begin, linked by slot+1
	running, pending int
}

func newShared(h txnproto.Host, exclusive, protects bool) shared {
	return shared{
		host: h, distributed: h.Shards() > 1, exclusive: exclusive, protects: protects,
		writers: newIndex(), readers: newIndex(),
	}
}

// member returns tx's state; a newcomer begins.
func (c *shared) member(tx *txnproto.Txn) *member {
	for tx.Slot >= len(c.members) {
		c.members = append(c.members, member{})
	}
	m := &c.members[tx.Slot]
	if m.id != tx.ID {
		m.end()
		m.id, m.tx, m.began = tx.ID, tx, c.now
		c.link(m)
	}
	return m
}

// Access asks the rule.
func (c *shared) Access(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	return c.rule.access(c.member(tx), op)
}

// Prepare validates the branch.
func (c *shared) Prepare(tx *txnproto.Txn) txnproto.Verdict { return c.validate(c.member(tx)) }

// test gathers what is wrong with a member that asks to commit.
type test struct {
	c       *shared
	m       *member
	reason  txnproto.AbortReason // NoReason: valid so far
	waitFor int32                // slot+1 of a pending member
	key     txnproto.Key
}

// fail says that the member is not valid.
func (v *test) fail() { v.reason = txnproto.Validation }

// conflict says that the member and the pending one in the slot must not be pending
// together. On one shard the member waits, as it holds nothing; on several it may
// be pending elsewhere, so only the older waits.
func (v *test) conflict(slot int32, k txnproto.Key) {
	o := &v.c.members[slot]
	if !v.c.distributed || byAge(v.m.tx, o.tx) < 0 {
		v.waitFor, v.key = slot+1, k
		return
	}
	v.reason = txnproto.Validation
	if o.unknown {
		v.reason = txnproto.LeaderChange
	}
}

func (c *shared) validate(m *member) txnproto.Verdict {
	v := &c.test
	*v = test{c: c, m: m}
	c.checkWrites(v)
	if v.reason == txnproto.NoReason && v.waitFor == 0 {
		c.rule.check(m, v)
	}
	switch {
	case v.reason != txnproto.NoReason:
		return txnproto.Abort(v.reason)
	case v.waitFor != 0:
		return c.wait(m, v.waitFor-1, v.key, nil)
	}
	c.enter(m)
	return txnproto.Granted
}

// checkWrites tests what m writes against the pending.
func (c *shared) checkWrites(v *test) {
	puts := v.m.tx.Puts
	for i := range puts {
		k := puts[i].Key
		if c.exclusive || c.distributed {
			for id := c.writers.newest(k); id != 0 && v.reason == txnproto.NoReason; id = c.writers.nodes[id].next {
				v.conflict(c.writers.slot(id), k)
			}
		}
		if c.protects {
			for id := c.readers.newest(k); id != 0 && v.reason == txnproto.NoReason; id = c.readers.nodes[id].next {
				v.conflict(c.readers.slot(id), k)
			}
		}
	}
	if !c.protects || len(puts) == 0 {
		return
	}
	for _, s := range c.special {
		o := &c.members[s]
		if v.reason != txnproto.NoReason {
			return
		}
		if o.unknown {
			v.conflict(s, puts[0].Key)
			continue
		}
		for i := range puts {
			if o.guards && o.covers(puts[i].Key) {
				v.conflict(s, puts[i].Key)
				break
			}
		}
	}
}

// covers reports whether m has scanned k.
func (m *member) covers(k txnproto.Key) bool {
	for i := range m.ranges {
		if m.ranges[i].has(k) {
			return true
		}
	}
	return false
}

// slot is whose touch it is, in an index of members.
func (x *index) slot(id nodeID) int32 { return int32(x.nodes[id].record - 1) }

// pendingWriter returns the slot of the newest pending writer of k, or -1.
func (c *shared) pendingWriter(k txnproto.Key) int32 {
	if id := c.writers.newest(k); id != 0 {
		return c.writers.slot(id)
	}
	return -1
}

// enter makes m pending.
func (c *shared) enter(m *member) {
	c.unlink(m)
	m.pending = true
	c.pending++
	n := number(m.tx.Slot) + 1
	for i := range m.tx.Puts {
		p := &m.tx.Puts[i]
		m.writes = c.writers.add(p.Key, n, m.writes)
		if p.Deleted || m.unknown || !c.host.Store().Get(p.Key).Exists {
			m.structural = append(m.structural, p.Key)
		}
	}
	m.guards = c.protects && !m.tx.Alone
	if m.guards {
		for i := range m.reads {
			m.protected = c.readers.add(m.reads[i].key, n, m.protected)
		}
	}
	if m.isSpecial() {
		c.special = append(c.special, int32(m.tx.Slot))
	}
	c.rule.enter(m)
}

// isSpecial reports whether what m has read or written is more than its keys.
func (m *member) isSpecial() bool { return m.unknown || len(m.ranges) > 0 || len(m.structural) > 0 }

// wait makes m wait for the end of the pending member in the slot.
func (c *shared) wait(m *member, slot int32, k txnproto.Key, op *txnproto.Op) txnproto.Verdict {
	o := &c.members[slot]
	o.waiters = append(o.waiters, int32(m.tx.Slot))
	m.waits, m.on, m.op = true, slot, op
	s := c.host.Stats()
	s.QueueCount++
	s.QueueSum += uint64(len(o.waiters))
	s.QueueMax = max(s.QueueMax, len(o.waiters))
	on := [1]txnproto.TxnID{o.id}
	c.host.Blocked(m.tx, k, on[:])
	return txnproto.Waiting
}

// Finish ends the branch.
func (c *shared) Finish(tx *txnproto.Txn, o txnproto.Outcome) {
	if tx.Slot >= len(c.members) || c.members[tx.Slot].id != tx.ID {
		return
	}
	m := &c.members[tx.Slot]
	if m.waits {
		w := &c.members[m.on].waiters
		i := slices.Index(*w, int32(tx.Slot))
		*w = slices.Delete(*w, i, i+1)
	}
	if m.pending {
		c.leave(m, o)
	} else {
		c.unlink(m)
	}
	c.woken = c.woken[:0]
	for _, s := range m.waiters {
		c.woken = append(c.woken, c.members[s].tx)
	}
	m.end()
	if c.oldest == 0 {
		c.changes.forget(c.now)
	} else {
		c.changes.forget(c.members[c.oldest-1].began)
	}
	c.wake()
}

// leave takes m from the pending.
func (c *shared) leave(m *member, o txnproto.Outcome) {
	c.writers.removeAll(m.writes)
	c.readers.removeAll(m.protected)
	if m.isSpecial() {
		i := slices.Index(c.special, int32(m.tx.Slot))
		c.special = slices.Delete(c.special, i, i+1)
	}
	c.pending--
	c.now++
	c.rule.leave(m, o)
	if o == txnproto.Committed && c.oldest != 0 {
		for _, k := range m.structural {
			c.changes.add(change{key: k, at: c.now, ts: m.low})
		}
	}
}

// wake asks again for those who waited, the oldest first, which then may make the
// others abort or wait.
func (c *shared) wake() {
	slices.SortFunc(c.woken, byAge)
	for _, t := range c.woken {
		m := &c.members[t.Slot]
		m.waits = false
		if m.doomed {
			continue
		}
		var v txnproto.Verdict
		if m.op != nil {
			v = c.rule.access(m, m.op)
		} else {
			v = c.validate(m)
		}
		if !v.IsWaiting() {
			m.op = nil
			c.host.Resolve(t, v)
		}
	}
}

// Recover makes a prepared branch pending again, with unknown reads.
func (c *shared) Recover(tx *txnproto.Txn) {
	m := c.member(tx)
	m.unknown = true
	c.enter(m)
}

// noteRead adds the newest version of k to what m has read, unless m reads its own write.
func (c *shared) noteRead(m *member, k txnproto.Key) {
	if m.tx.Put(k) == nil {
		m.reads = append(m.reads, seen{key: k, version: c.host.Store().Get(k).Version})
	}
}

// noteScan adds a range, and the rows that are there, to what m has read.
func (c *shared) noteScan(m *member, lo, hi txnproto.Key) {
	if lo >= hi {
		return
	}
	m.ranges = append(m.ranges, scanned{interval: interval{lo, hi}, at: c.now})
	store := c.host.Store()
	for k, ok := store.NextKey(lo); ok && k < hi; k, ok = store.NextKey(k + 1) {
		c.noteRead(m, k)
	}
}

// note does what access does for a protocol that never waits there.
func (c *shared) note(m *member, op *txnproto.Op) txnproto.Verdict {
	switch op.Kind {
	case txnproto.Read, txnproto.ReadForUpdate, txnproto.Modify, txnproto.Insert:
		c.noteRead(m, op.Key)
	case txnproto.Scan:
		c.noteScan(m, op.Key, op.End)
	case txnproto.Write, txnproto.Delete:
	default:
		panic("optimistic: unknown operation")
	}
	return txnproto.Granted
}

// link puts m, which begins, behind the running.
func (c *shared) link(m *member) {
	self := int32(m.tx.Slot) + 1
	m.listed = true
	m.older, m.newer = c.youngest, 0
	if m.older != 0 {
		c.members[m.older-1].newer = self
	} else {
		c.oldest = self
	}
	c.youngest = self
	c.running++
}

func (c *shared) unlink(m *member) {
	if !m.listed {
		return
	}
	m.listed = false
	if m.older != 0 {
		c.members[m.older-1].newer = m.newer
	} else {
		c.oldest = m.newer
	}
	if m.newer != 0 {
		c.members[m.newer-1].older = m.older
	} else {
		c.youngest = m.older
	}
	m.older, m.newer = 0, 0
	c.running--
}

// Leftover says what is kept though no transaction is open, or "".
func (c *shared) Leftover() string {
	if c.running+c.pending+len(c.special) > 0 || c.writers.heads.Len() > 0 || c.readers.heads.Len() > 0 || len(c.changes.queue) > 0 {
		return fmt.Sprintf("%d running, %d pending, %d rows written, %d rows read, %d changes",
			c.running, c.pending, c.writers.heads.Len(), c.readers.heads.Len(), len(c.changes.queue))
	}
	return ""
}

// String shows the members, for tests.
func (c *shared) String() string { return c.Describe(nil) }

// Describe implements txnproto.Describer: the pending by slot, with what they write,
// then the running by age, with the versions they have read.
func (c *shared) Describe(n *txnproto.Names) string {
	var b strings.Builder
	for i := range c.members {
		m := &c.members[i]
		if !m.pending {
			continue
		}
		var keys []txnproto.Key
		for j := range m.tx.Puts {
			keys = append(keys, m.tx.Puts[j].Key)
		}
		fmt.Fprintf(&b, "%s pending, wrote %s", n.Txn(m.id), keyList(n, keys))
		m.describeReads(&b, n)
	}
	for s := c.oldest; s != 0; s = c.members[s-1].newer {
		m := &c.members[s-1]
		fmt.Fprintf(&b, "%s runs", n.Txn(m.id))
		m.describeReads(&b, n)
	}
	return b.String()
}

func (m *member) describeReads(b *strings.Builder, n *txnproto.Names) {
	if m.unknown {
		b.WriteString(", read nobody knows what\n")
		return
	}
	b.WriteString(", read")
	for i := range m.reads {
		fmt.Fprintf(b, " %s@%d", n.Key(m.reads[i].key), m.reads[i].version)
	}
	for i := range m.ranges {
		b.WriteString(" " + n.Range(m.ranges[i].lo, m.ranges[i].hi))
	}
	b.WriteByte('\n')
}
