package deterministic

import (
	"fmt"
	"time"

	"interleave/sim/event"
	"interleave/txnproto"
	"interleave/txnproto/keymap"
)

// scheduler is one shard's part in following the order.
type scheduler struct {
	peers    []peer // by shard
	frontier uint64 // every epoch up to this one has been taken
	entries  []entry
	free     []entryID
	index    keymap.Map // transaction → entry
	table    table
	// early are entries whose transaction asked before its batch came.
	early     []entryID
	blockedOn []txnproto.TxnID // scratch
	// gone are transactions that ended before their batch came, oldest first.
	gone []goneTxn
}

// peer is what a scheduler knows of one sequencer.
type peer struct {
	birth uint64    // of its leader; 0: has not been heard
	heard uint64    // the epochs up to this one are known
	queue []entryID // received and not yet taken, in order, from head on
	head  int
}

// entry is a transaction at this shard, named by its place in a pool; 0 is none.
type entry struct {
	id     txnproto.TxnID
	place  txnproto.Place
	stage  stage
	tx     *txnproto.Txn // nil until it has come to an operation here
	op     *txnproto.Op  // the operation that waits
	claims []txnproto.Claim
}

type entryID int32

// stage is how far a transaction has come here.
type stage uint8

const (
	expected stage = iota // it has asked for an operation, its batch has not come
	queued                // its batch is here, its epoch has not been taken
	admitted              // its locks are asked for
	dropped               // it ended while it was queued
)

// goneTxn is a transaction that must not be queued when its batch comes.
type goneTxn struct {
	id    txnproto.TxnID
	until event.Time
}

// goneFor is how long a transaction that has ended is remembered where its batch has
// not come. Longer than any message takes: it comes after that only from a leader whose
// messages are no longer taken.
const goneFor = 10 * time.Second

func newScheduler(shards int) scheduler {
	return scheduler{peers: make([]peer, shards), entries: make([]entry, 1), table: newTable()}
}

func (c *controller) newEntry(id txnproto.TxnID) entryID {
	var eid entryID
	if n := len(c.free); n > 0 {
		eid = c.free[n-1]
		c.free = c.free[:n-1]
	} else {
		eid = entryID(len(c.entries))
		c.entries = append(c.entries, entry{})
	}
	e := &c.entries[eid]
	*e = entry{id: id, claims: e.claims[:0]}
	*c.index.Ref(txnproto.Key(id)) = int32(eid)
	return eid
}

// forget gives an entry back.
func (c *controller) forget(eid entryID) {
	e := &c.entries[eid]
	if e.stage != dropped {
		c.index.Delete(txnproto.Key(e.id))
	}
	*e = entry{claims: e.claims[:0]}
	c.free = append(c.free, eid)
}

// take queues a sequencer's batch, as far as it is this shard's.
func (c *controller) take(from txnproto.ShardID, b *txnproto.Batch) {
	at := int32(0)
	for i := range b.Txns {
		t := &b.Txns[i]
		claims := b.Claims[at : at+t.Claims]
		at += t.Claims
		if c.isGone(t.ID) {
			continue
		}
		eid := entryID(c.index.Get(txnproto.Key(t.ID)))
		if eid == 0 {
			eid = c.newEntry(t.ID)
		}
		e := &c.entries[eid]
		e.place, e.stage = t.Place, queued
		e.claims = append(e.claims[:0], claims...)
		p := &c.peers[from]
		p.queue = append(p.queue, eid)
	}
}

// isGone reports whether the transaction has ended already, and forgets that.
func (c *controller) isGone(id txnproto.TxnID) bool {
	for i := range c.gone {
		if c.gone[i].id == id {
			c.gone = append(c.gone[:i], c.gone[i+1:]...)
			return true
		}
	}
	return false
}

// advance takes the epochs that every sequencer has been heard about.
func (c *controller) advance() {
	to := c.peers[0].heard
	for i := range c.peers {
		if c.peers[i].birth == 0 && !c.impatient {
			return
		}
		if c.impatient {
			to = max(to, c.peers[i].heard)
		} else {
			to = min(to, c.peers[i].heard)
		}
	}
	for {
		next := c.first(to)
		if next == nil {
			break
		}
		eid := next.queue[next.head]
		if next.head++; next.head == len(next.queue) {
			next.queue, next.head = next.queue[:0], 0
		}
		c.admit(eid)
	}
	if to > c.frontier {
		c.frontier = to
		if !c.impatient {
			c.refuseLate()
		}
	}
}

// first is the peer with the earliest transaction of the epochs up to the given one.
func (c *controller) first(to uint64) *peer {
	var best *peer
	var place txnproto.Place
	for i := range c.peers {
		p := &c.peers[i]
		if p.head == len(p.queue) {
			continue
		}
		if at := c.entries[p.queue[p.head]].place; at.Epoch() <= to && (best == nil || at < place) {
			best, place = p, at
		}
	}
	return best
}

// admit asks for a transaction's locks.
func (c *controller) admit(eid entryID) {
	e := &c.entries[eid]
	if e.stage == dropped {
		c.forget(eid)
		return
	}
	e.stage = admitted
	c.table.claim(eid, e.claims)
	if c.table.owner(eid).missing == 0 {
		c.goOn(eid)
	} else if e.op != nil {
		c.reportWait(eid)
	}
}

// refuseLate ends the waits of those whose batches have not come and will not.
func (c *controller) refuseLate() {
	n := 0
	for _, eid := range c.early {
		e := &c.entries[eid]
		switch {
		case e.stage != expected || e.op == nil: // it has come, or the transaction has ended
		case e.place.Epoch() <= c.frontier:
			c.host.Resolve(e.tx, txnproto.Abort(txnproto.LeaderChange))
			e.op = nil
		default:
			c.early[n] = eid
			n++
		}
	}
	c.early = c.early[:n]
}

// run answers an operation of tx.
func (c *controller) run(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	eid := entryID(c.index.Get(txnproto.Key(tx.ID)))
	if eid == 0 {
		switch {
		case tx.Place == 0: // it has declared nothing at all
			return txnproto.Abort(txnproto.Reconnaissance)
		case tx.Place.Epoch() <= c.frontier && !c.impatient:
			return txnproto.Abort(txnproto.LeaderChange)
		}
		eid = c.newEntry(tx.ID)
		c.entries[eid].place = tx.Place
		c.early = append(c.early, eid)
	}
	e := &c.entries[eid]
	e.tx = tx
	if e.stage == admitted && c.table.owner(eid).missing == 0 {
		return c.check(e, op)
	}
	e.op = op
	if e.stage == admitted {
		c.reportWait(eid)
	}
	return txnproto.Waiting
}

// goOn lets a transaction that has all its locks run the operation that waits for them.
func (c *controller) goOn(eid entryID) {
	e := &c.entries[eid]
	if e.op == nil {
		return
	}
	v := c.check(e, e.op)
	e.op = nil
	c.host.Resolve(e.tx, v)
}

// check looks whether an operation is among what was claimed.
func (c *controller) check(e *entry, op *txnproto.Op) txnproto.Verdict {
	ok := false
	switch op.Kind {
	case txnproto.Read:
		ok = e.hasRow(op.Key) != nil || e.hasRange(op.Key, op.Key+1) != nil
	case txnproto.Scan:
		r := e.hasRange(op.Key, op.End)
		ok = op.Key >= op.End || r != nil && c.asFound(e, r)
	case txnproto.ReadForUpdate, txnproto.Write, txnproto.Modify, txnproto.Insert, txnproto.Delete:
		r := e.hasRow(op.Key)
		ok = r != nil && r.Exclusive
	case txnproto.LockShared, txnproto.LockExclusive, txnproto.RollbackTo, txnproto.Sequence, txnproto.Reconnoitre, txnproto.NumOpKinds:
		panic("deterministic: not an operation for a scheduler: " + op.Kind.String())
	default:
		panic("deterministic: unknown operation")
	}
	if !ok {
		return txnproto.Abort(txnproto.Reconnaissance)
	}
	return txnproto.Granted
}

// hasRow returns the claim of row k, or nil. Claims are sorted by key, a row's before
// ranges that begin with it.
func (e *entry) hasRow(k txnproto.Key) *txnproto.Claim {
	lo, hi := 0, len(e.claims)
	for lo < hi {
		mid := (lo + hi) / 2
		if e.claims[mid].Key < k {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(e.claims) && e.claims[lo].Key == k && !e.claims[lo].Ranged() {
		return &e.claims[lo]
	}
	return nil
}

// hasRange returns a claim that covers [lo, hi), or nil.
func (e *entry) hasRange(lo, hi txnproto.Key) *txnproto.Claim {
	for i := range e.claims {
		if r := &e.claims[i]; r.Ranged() && r.Key <= lo && hi <= r.End {
			return r
		}
	}
	return nil
}

// checkedRows marks a range whose rows have been compared: they stay as they are.
const checkedRows = -1

// asFound reports whether a range holds the rows that the reconnaissance found in it:
// each is claimed by itself, and they are as many.
func (c *controller) asFound(e *entry, r *txnproto.Claim) bool {
	if r.Rows == checkedRows {
		return true
	}
	rows := int32(0)
	st := c.host.Store()
	for k, ok := st.NextKey(r.Key); ok && k < r.End; k, ok = st.NextKey(k + 1) {
		if e.hasRow(k) == nil {
			return false
		}
		rows++
	}
	if rows != r.Rows {
		return false
	}
	r.Rows = checkedRows
	return true
}

// end lets go of what tx has here.
func (c *controller) end(tx *txnproto.Txn) {
	eid := entryID(c.index.Get(txnproto.Key(tx.ID)))
	if eid == 0 {
		c.noteGone(tx)
		return
	}
	e := &c.entries[eid]
	switch e.stage {
	case expected:
		c.early = without(c.early, eid)
		c.forget(eid)
		c.noteGone(tx)
	case queued:
		c.index.Delete(txnproto.Key(e.id))
		e.stage, e.tx, e.op = dropped, nil, nil
	case admitted:
		e.op = nil
		c.table.release(eid)
		c.forget(eid)
		c.goOnWoken()
	case dropped:
		panic(fmt.Sprintf("deterministic: at %v: %v ends twice", c.host.Now(), tx.ID))
	default:
		panic("deterministic: unknown stage")
	}
}

// without takes eid out of a list.
func without(list []entryID, eid entryID) []entryID {
	n := 0
	for _, o := range list {
		if o != eid {
			list[n] = o
			n++
		}
	}
	return list[:n]
}

// goOnWoken lets those run who have got their last lock.
func (c *controller) goOnWoken() {
	for _, eid := range c.table.woken {
		c.goOn(eid)
	}
	c.table.woken = c.table.woken[:0]
}

// noteGone remembers a transaction that has ended while its batch may be on the way.
func (c *controller) noteGone(tx *txnproto.Txn) {
	if tx.Place != 0 && tx.Place.Epoch() <= c.frontier {
		return
	}
	now := c.host.Now()
	for len(c.gone) > 0 && c.gone[0].until < now {
		c.gone = c.gone[1:]
	}
	c.gone = append(c.gone, goneTxn{tx.ID, now.Add(goneFor)})
}

// reportWait tells who is in the way of a transaction that has come for its operation.
func (c *controller) reportWait(eid entryID) {
	t := &c.table
	rid := t.firstMissing(eid)
	row := &t.rows[t.requests[rid].row]
	s := c.host.Stats()
	s.QueueCount++
	s.QueueSum += uint64(row.waiting)
	s.QueueMax = max(s.QueueMax, int(row.waiting))
	t.blockers = t.appendBlockers(t.blockers[:0], rid)
	ids := c.blockedOn[:0]
	for _, o := range t.blockers {
		ids = append(ids, c.entries[o].id)
	}
	c.blockedOn = ids
	c.host.Blocked(c.entries[eid].tx, row.key, ids)
}
