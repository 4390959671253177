package optimistic

import (
	"cmp"
	"slices"

	"interleave/txnproto"
)

func init() {
	txnproto.Register(&txnproto.Protocol{
		Name:         "occ",
		Family:       "optimistic",
		Promise:      "serializable",
		Help:         "optimistic, serial backward validation: aborts who read what has been overwritten since",
		Source:       "Kung, Robinson 1981",
		DropReadOnly: false, // see "What several shards force"
		New:          func(h txnproto.Host, _ txnproto.Params) txnproto.Controller { return newSerial(h) },
	})
	txnproto.Register(&txnproto.Protocol{
		Name:    "occ-parallel",
		Family:  "optimistic",
		Promise: "serializable",
		Help:    "optimistic, parallel backward validation: also aborts who would write what another is about to write",
		Source:  "Kung, Robinson 1981, sec. 5",
		New: func(h txnproto.Host, _ txnproto.Params) txnproto.Controller {
			c := newSerial(h)
			c.parallel = true
			return c
		},
	})
}

// serial is one shard's controller.
type serial struct {
	host        txnproto.Host
	distributed bool
	parallel    bool // see "Parallel validation"
	now         moment
	records     records
	writers     index // all records
	readers     index // pending records, when distributed
	branches    []branch
	woken       []*txnproto.Txn

	// Branches not yet validated, in order of start, linked by slot+1.
	oldest, youngest int32
	// Pending records that scanned, and those of unknown reads.
	scanned, unknown int
}

// branch is what the controller keeps per transaction.
type branch struct {
	id      txnproto.TxnID
	tx      *txnproto.Txn
	start   number // every number up to it had finished when the branch began
	began   moment
	reads   []txnproto.Key
	readAt  []moment // of each read
	ranges  []interval
	rangeAt []moment
	record  number // 0 until validated

	older, newer int32 // in the list of those not yet validated, slot+1

	waits   bool
	on      int32   // while it waits: whose end it waits for
	waiters []int32 // who waits for its end
}

// interval is [lo, hi).
type interval struct{ lo, hi txnproto.Key }

func (i interval) has(k txnproto.Key) bool { return i.lo <= k && k < i.hi }

func covered(ranges []interval, k txnproto.Key) bool {
	for _, r := range ranges {
		if r.has(k) {
			return true
		}
	}
	return false
}

func newSerial(h txnproto.Host) *serial {
	return &serial{
		host: h, distributed: h.Shards() > 1,
		records: newRecords(), writers: newIndex(), readers: newIndex(),
	}
}

// branch returns tx's state; a newcomer starts its read phase.
func (c *serial) branch(tx *txnproto.Txn) *branch {
	for tx.Slot >= len(c.branches) {
		c.branches = append(c.branches, branch{})
	}
	b := &c.branches[tx.Slot]
	if b.id != tx.ID {
		*b = branch{
			id: tx.ID, tx: tx, start: c.records.pending - 1, began: c.now,
			reads: b.reads[:0], readAt: b.readAt[:0], ranges: b.ranges[:0], rangeAt: b.rangeAt[:0], waiters: b.waiters[:0],
		}
		c.link(b)
	}
	return b
}

// Access notes what op reads. Nothing ever waits in the read phase.
func (c *serial) Access(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	b := c.branch(tx)
	switch op.Kind {
	case txnproto.Read, txnproto.ReadForUpdate, txnproto.Modify, txnproto.Insert:
		if tx.Put(op.Key) == nil { // else it reads its own write
			b.reads = append(b.reads, op.Key)
			b.readAt = append(b.readAt, c.now)
		}
	case txnproto.Scan:
		if op.Key < op.End {
			b.ranges = append(b.ranges, interval{op.Key, op.End})
			b.rangeAt = append(b.rangeAt, c.now)
		}
	case txnproto.Write, txnproto.Delete:
	default:
		panic("optimistic: unknown operation")
	}
	return txnproto.Granted
}

// Prepare validates the branch.
func (c *serial) Prepare(tx *txnproto.Txn) txnproto.Verdict {
	return c.validate(c.branch(tx))
}

// validate applies the paper's test and, when distributed, that against the pending.
func (c *serial) validate(b *branch) txnproto.Verdict {
	check := verdict{c: c, b: b}
	c.checkReads(&check)
	if (c.distributed || c.parallel) && !check.invalid {
		c.checkWrites(&check)
	}
	switch {
	case check.invalid:
		return txnproto.Abort(check.reason)
	case check.waitFor != 0:
		return c.wait(b, check.waitFor, check.key)
	}
	c.unlink(b)
	c.now++
	r := record{txn: b.id, client: b.tx.Client, slot: int32(b.tx.Slot), ranges: len(b.ranges) > 0}
	b.record = c.records.add(r)
	c.protect(b)
	return txnproto.Granted
}

// verdict gathers the conflicts of a branch under validation.
type verdict struct {
	c       *serial
	b       *branch
	invalid bool
	reason  txnproto.AbortReason
	waitFor number // a pending record, when it is not invalid
	key     txnproto.Key
}

// conflict adds one with record n over k.
func (v *verdict) conflict(n number, k txnproto.Key) {
	r := v.c.records.at(n)
	if r.finished == 0 && v.c.distributed && !v.c.parallel && byAge(v.b.tx, v.c.branches[r.slot].tx) < 0 {
		v.waitFor, v.key = n, k
		return
	}
	v.invalid, v.reason = true, txnproto.Validation
	if r.unknown {
		v.reason = txnproto.LeaderChange
	}
}

// byAge orders transactions by their requests' first begin, the oldest first.
// Two attempts of one request can meet while the end of the first is on its way.
func byAge(a, b *txnproto.Txn) int {
	return cmp.Or(cmp.Compare(a.FirstTS, b.FirstTS), cmp.Compare(a.TS, b.TS))
}

// concerns reports whether b must be validated against record n: it was not
// finished when b began, and may have been written what b read.
func (c *serial) concerns(b *branch, n number) bool {
	if n <= b.start {
		return false
	}
	r := c.records.at(n)
	return !r.aborted && (r.finished == 0 || r.finished > b.began)
}

// ownBefore reports whether record n is of b's own client and had finished when b
// read: then b has read what n wrote. The paper's transactions begin when those
// before them have finished their write phase; a client that has heard its commit
// goes on while the write phase is still on its way to other shards.
func (c *serial) ownBefore(b *branch, n number, read moment) bool {
	r := c.records.at(n)
	return r.client == b.tx.Client && r.finished != 0 && r.finished <= read
}

// scanMissed reports whether a scan of b's covered k, which n wrote, before n's
// write is known to have been there.
func (c *serial) scanMissed(b *branch, n number, k txnproto.Key) bool {
	for i, r := range b.ranges {
		if r.has(k) && !c.ownBefore(b, n, b.rangeAt[i]) {
			return true
		}
	}
	return false
}

// checkReads is the paper's condition: nobody validated since b's start wrote what b read.
func (c *serial) checkReads(v *verdict) {
	b := v.b
	for i, k := range b.reads {
		for id := c.writers.newest(k); id != 0 && !v.invalid; id = c.writers.nodes[id].next {
			if n := c.writers.nodes[id].record; c.concerns(b, n) && !c.ownBefore(b, n, b.readAt[i]) {
				v.conflict(n, k)
			}
		}
	}
	if len(b.ranges) == 0 {
		return
	}
	for n := max(b.start+1, c.records.first); n <= c.records.last && !v.invalid; n++ {
		if !c.concerns(b, n) {
			continue
		}
		for id := c.records.at(n).writes; id != 0; id = c.writers.nodes[id].own {
			if k := c.writers.nodes[id].key; c.scanMissed(b, n, k) {
				v.conflict(n, k)
				break
			}
		}
	}
}

// checkWrites is the condition that several shards force: nobody pending has
// read or writes what b writes. On one shard parallel validation asks for the
// second half.
func (c *serial) checkWrites(v *verdict) {
	puts := v.b.tx.Puts
	for i := range puts {
		k := puts[i].Key
		for id := c.writers.newest(k); id != 0 && !v.invalid; id = c.writers.nodes[id].next {
			if n := c.writers.nodes[id].record; c.records.at(n).finished == 0 {
				v.conflict(n, k)
			}
		}
		for id := c.readers.newest(k); id != 0 && !v.invalid; id = c.readers.nodes[id].next {
			v.conflict(c.readers.nodes[id].record, k)
		}
	}
	if len(puts) == 0 || c.scanned == 0 && c.unknown == 0 {
		return
	}
	for n := c.records.pending; n <= c.records.last && !v.invalid; n++ {
		r := c.records.at(n)
		switch {
		case r.finished != 0:
		case r.unknown:
			v.conflict(n, puts[0].Key)
		case r.ranges:
			for i := range puts {
				if covered(c.branches[r.slot].ranges, puts[i].Key) {
					v.conflict(n, puts[i].Key)
					break
				}
			}
		}
	}
}

// protect enters a validated branch's writes and, when distributed, its reads.
func (c *serial) protect(b *branch) {
	r := c.records.at(b.record)
	for i := range b.tx.Puts {
		r.writes = c.writers.add(b.tx.Puts[i].Key, b.record, r.writes)
	}
	if !c.distributed {
		return
	}
	for _, k := range b.reads {
		r.reads = c.readers.add(k, b.record, r.reads)
	}
	if r.ranges {
		c.scanned++
	}
	if r.unknown {
		c.unknown++
	}
}

// wait makes b wait for the end of pending record n.
func (c *serial) wait(b *branch, n number, k txnproto.Key) txnproto.Verdict {
	r := c.records.at(n)
	o := &c.branches[r.slot]
	o.waiters = append(o.waiters, int32(b.tx.Slot))
	b.waits, b.on = true, r.slot
	s := c.host.Stats()
	s.QueueCount++
	s.QueueSum += uint64(len(o.waiters))
	s.QueueMax = max(s.QueueMax, len(o.waiters))
	on := [1]txnproto.TxnID{r.txn}
	c.host.Blocked(b.tx, k, on[:])
	return txnproto.Waiting
}

// Finish ends the branch: what it wrote counts from now on as seen by those who
// begin, and what it read is no longer protected.
func (c *serial) Finish(tx *txnproto.Txn, o txnproto.Outcome) {
	if tx.Slot >= len(c.branches) || c.branches[tx.Slot].id != tx.ID {
		return
	}
	b := &c.branches[tx.Slot]
	if b.waits {
		w := &c.branches[b.on].waiters
		i := slices.Index(*w, int32(tx.Slot))
		*w = slices.Delete(*w, i, i+1)
	}
	if b.record == 0 {
		c.unlink(b)
	} else {
		c.endRecord(b.record, o)
	}
	c.woken = c.woken[:0]
	for _, s := range b.waiters {
		c.woken = append(c.woken, c.branches[s].tx)
	}
	*b = branch{reads: b.reads[:0], readAt: b.readAt[:0], ranges: b.ranges[:0], rangeAt: b.rangeAt[:0], waiters: b.waiters[:0]}
	c.prune()
	// Each is validated anew; the oldest first, which then may make the others abort.
	slices.SortFunc(c.woken, byAge)
	for _, t := range c.woken {
		w := &c.branches[t.Slot]
		w.waits = false
		if v := c.validate(w); !v.IsWaiting() {
			c.host.Resolve(t, v)
		}
	}
}

func (c *serial) endRecord(n number, o txnproto.Outcome) {
	r := c.records.at(n)
	c.now++
	c.readers.removeAll(r.reads)
	r.reads = 0
	if r.ranges && c.distributed {
		c.scanned--
	}
	if r.unknown && c.distributed {
		c.unknown--
	}
	c.records.finish(n, c.now, o != txnproto.Committed)
}

// prune forgets records that no branch can have to be validated against.
func (c *serial) prune() {
	until := c.records.pending - 1
	if c.oldest != 0 {
		until = min(until, c.branches[c.oldest-1].start)
	}
	for c.records.first <= until {
		r := c.records.at(c.records.first)
		c.writers.removeAll(r.writes)
		r.writes = 0
		c.records.first++
	}
}

// Recover makes a prepared branch pending again, with unknown reads.
func (c *serial) Recover(tx *txnproto.Txn) {
	b := c.branch(tx)
	c.unlink(b)
	c.now++
	b.record = c.records.add(record{txn: b.id, client: tx.Client, slot: int32(tx.Slot), unknown: true})
	c.protect(b)
}

// link puts b, which starts, behind those not yet validated.
func (c *serial) link(b *branch) {
	self := int32(b.tx.Slot) + 1
	b.older, b.newer = c.youngest, 0
	if b.older != 0 {
		c.branches[b.older-1].newer = self
	} else {
		c.oldest = self
	}
	c.youngest = self
}

func (c *serial) unlink(b *branch) {
	if b.older != 0 {
		c.branches[b.older-1].newer = b.newer
	} else {
		c.oldest = b.newer
	}
	if b.newer != 0 {
		c.branches[b.newer-1].older = b.older
	} else {
		c.youngest = b.older
	}
	b.older, b.newer = 0, 0
}

// String shows the records kept and the branches in their read phase, for people.
func (c *serial) String() string { return c.Describe(nil) }
