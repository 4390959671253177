package nodes

import (
	"time"

	"interleave/sim/event"
	"interleave/txnproto"
)

// branchState is what a branch is doing at its shard.
type branchState uint8

const (
	branchFree           branchState = iota
	branchServing                    // its operation waits for the processor or is served by it
	branchIdle                       // its last operation is answered
	branchWaitingOp                  // the controller lets its operation wait
	branchWaitingPrepare             // the controller lets its prepare wait
	branchPrepared                   // may commit: only the decision ends it
	branchDead                       // the controller aborted it; its client has yet to hear
	numBranchStates
)

// branch is an attempt's share in a shard, at the shard's leader.
type branch struct {
	tx txnproto.Txn
	branchRecord
}

// branchRecord is what the host remembers of a branch, beside what its controller sees.
type branchRecord struct {
	state     branchState
	info      txnproto.Info
	proposed  event.Time    // when the batch that it is sequenced in was given to the log
	synced    event.Time    // when the leader's disk had that
	key       uint64        // of the last message about it: what it says in turn is drawn from that
	msg       *txnproto.Msg // the operation that waits
	waitSince event.Time
	waitKey   txnproto.Key
	clockAt   event.Time           // when its machine's clock shows its attempt's timestamp: its operation waits until then
	reason    txnproto.AbortReason // branchDead: why

	// As a participant of a two-phase commit.
	coordinator txnproto.ShardID
	coord       int32              // the commit's index there
	finishing   bool               // its finish entry is on the way to the log
	own         bool               // this shard coordinates it
	prepareTS   txnproto.Timestamp // under ClockCommit: its machine's clock when it prepared
	readOnly    bool               // the whole transaction wrote nowhere

	accessed []span // by operations on single rows
	ranges   bool   // it scanned, inserted or deleted

	before int32  // the slot + 1 of the same client's next older live branch, 0: none
	held   []held // operations of the same client's next attempts: see Host.hold

	undo []undoPut // what to put back when it rolls back to a savepoint, newest last

	rolledBack bool // its program ended it: a completion, no abort

	cpu  time.Duration // processor time spent on it here
	disk time.Duration // disk time spent on it here
}

// undoPut is the workspace's row before a write under a savepoint.
type undoPut struct {
	save int // the newest savepoint when it was written
	had  bool
	old  txnproto.Put // if had
}

// put writes to the workspace; under a savepoint it notes what was there.
func (b *branch) put(p txnproto.Put) {
	if b.tx.Save > 0 {
		u := undoPut{save: b.tx.Save}
		if old := b.tx.Put(p.Key); old != nil {
			u.had, u.old = true, *old
		}
		b.undo = append(b.undo, u)
	}
	b.tx.SetPut(p)
}

// killable reports whether a controller may still abort the branch.
func (b *branch) killable() bool {
	switch b.state {
	case branchServing, branchIdle, branchWaitingOp, branchWaitingPrepare:
		return true
	case branchFree, branchPrepared, branchDead:
		return false
	default:
		panic("nodes: unknown branch state")
	}
}

// reset empties r, whose slices keep their memory.
func (r *branchRecord) reset() {
	accessed, held, undo := r.accessed[:0], r.held[:0], r.undo[:0]
	*r = branchRecord{} // in place: a literal with these fields would be built elsewhere and copied
	r.accessed, r.held, r.undo = accessed, held, undo
}

// newBranch takes a slot for tx.
func (h *Host) newBranch(i *txnproto.Info) *branch {
	var b *branch
	if n := len(h.freeSlots); n > 0 {
		b = h.branches[h.freeSlots[n-1]]
		h.freeSlots = h.freeSlots[:n-1]
	} else {
		b = &branch{}
		b.tx.Slot = len(h.branches)
		h.branches = append(h.branches, b)
	}
	b.reset()
	b.state, b.info = branchIdle, *i
	b.tx.Reset()
	b.tx.ID, b.tx.Request, b.tx.Client, b.tx.Class = i.ID, i.Request, i.Client, i.Class
	b.tx.Attempt, b.tx.Hits, b.tx.TS, b.tx.FirstTS = i.Attempt, i.Hits, i.TS, i.FirstTS
	b.tx.ReadOnly = i.ReadOnly
	b.tx.Place = i.Place
	b.cpu = h.scouted(i)
	c := int(i.Client)
	for c >= len(h.newestOf) {
		h.newestOf = append(h.newestOf, 0)
	}
	b.before = h.newestOf[c]
	h.newestOf[c] = int32(b.tx.Slot) + 1
	h.live++
	return b
}

// freeBranch gives the slot back and books the branch's cost by its outcome.
func (h *Host) freeBranch(b *branch, o txnproto.Outcome) {
	work := &h.node.work
	switch {
	case o == txnproto.Committed:
		work.UsefulCPU += b.cpu
		work.UsefulDisk += b.disk
	case b.rolledBack:
		work.RolledBackCPU += b.cpu
		work.RolledBackDisk += b.disk
	default:
		work.WastedCPU += b.cpu
		work.WastedDisk += b.disk
	}
	h.letGo(b)
	for at := &h.newestOf[b.info.Client]; *at != 0; at = &h.branches[*at-1].before {
		if *at == int32(b.tx.Slot)+1 {
			*at = b.before
			break
		}
	}
	b.state = branchFree
	b.tx.ID = 0
	h.freeSlots = append(h.freeSlots, int32(b.tx.Slot))
	h.live--
}

// hold reports whether operation m is held back because an earlier attempt of its
// client, whose outcome the client knows, has yet to be carried out here and has
// accessed the same rows: the decision to commit it is on its way, or the word that it is
// aborted, which m has overtaken. A client so finds its own writes in place or gone,
// and never waits for or aborts because of itself.
func (h *Host) hold(m *txnproto.Msg) bool {
	c := int(m.Tx.Client)
	if c >= len(h.newestOf) {
		return false
	}
	for at := h.newestOf[c]; at != 0; {
		b := h.branches[at-1]
		if b.info.ID < m.Tx.ID && b.state != branchDead && (h.c.coordinatorLog || b.meets(&m.Op)) {
			b.held = append(b.held, held{m, h.Now()})
			return true
		}
		at = b.before
	}
	return false
}

// awaitsClock reports whether an operation of the branch waits for its machine's clock
// until after the given time.
func (b *branch) awaitsClock(until event.Time) bool {
	return b.state == branchServing && b.clockAt > until
}

// held is an operation that is held back. One client can have several: of an
// attempt that was killed meanwhile, and of the next.
type held struct {
	m     *txnproto.Msg
	since event.Time
}

// span is the keys that an operation accessed.
type span struct{ lo, hi txnproto.Key }

func spanOf(op *txnproto.Op) span {
	if op.Kind == txnproto.Scan {
		return span{op.Key, op.End}
	}
	return span{op.Key, op.Key + 1}
}

// meets reports whether op may touch what the branch has touched. Where rows come
// and go, or ranges are read, neighbours count too: then it says yes.
func (b *branch) meets(op *txnproto.Op) bool {
	if b.state == branchServing || b.state == branchWaitingOp {
		return true // what it is at has not been noted
	}
	switch op.Kind {
	case txnproto.Insert, txnproto.Delete, txnproto.Scan, txnproto.Reconnoitre:
		return true
	default:
	}
	if b.ranges {
		return true
	}
	s := spanOf(op)
	for _, t := range b.accessed {
		if s.lo < t.hi && t.lo < s.hi {
			return true
		}
	}
	return false
}

// note remembers what a granted operation has accessed.
func (b *branch) note(op *txnproto.Op) {
	switch op.Kind {
	case txnproto.Insert, txnproto.Delete, txnproto.Scan:
		b.ranges = true
	default:
		b.accessed = append(b.accessed, spanOf(op))
	}
}

// letGo ends what b holds back. The time counts to the commit protocol or, where it was
// spent until the word of an abort arrived, to the network.
func (h *Host) letGo(b *branch) {
	part := txnproto.PartNetwork
	if b.state == branchPrepared {
		part = txnproto.PartCommit
	}
	for _, o := range b.held {
		o.m.Parts[part] += h.Now().Sub(o.since)
		h.c.loop.After(0, h.c.hServed, o.m.Index())
	}
	b.held = b.held[:0]
}

// seek returns the branch that m is about, or nil. Its client may not know the
// slot yet; then it is one of the client's few here.
func (h *Host) seek(m *txnproto.Msg) *branch {
	if m.Slot >= 0 {
		return h.find(m.Tx.ID, m.Slot)
	}
	c := int(m.Tx.Client)
	if c >= len(h.newestOf) {
		return nil
	}
	for at := h.newestOf[c]; at != 0; at = h.branches[at-1].before {
		if b := h.branches[at-1]; b.tx.ID == m.Tx.ID {
			return b
		}
	}
	return nil
}

// find returns the live branch of txn, or nil. slot is where its client last
// saw it; without one (-1) all are searched.
func (h *Host) find(txn txnproto.TxnID, slot int32) *branch {
	if slot >= 0 {
		if int(slot) < len(h.branches) && h.branches[slot].tx.ID == txn {
			return h.branches[slot]
		}
		return nil
	}
	for _, b := range h.branches {
		if b.tx.ID == txn {
			return b
		}
	}
	return nil
}
