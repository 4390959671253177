package nodes

import (
	"fmt"
	"time"

	"interleave/sim/event"
	"interleave/sim/rng"
	"interleave/txnproto"
)

// Host runs one shard's concurrency controller on the shard's leader: it is
// what txnproto.Host promises to the controller, and what carries out its
// verdicts. It lives as long as the leadership; all in it but the machine is
// volatile.
type Host struct {
	c       *Cluster
	node    *Node
	shard   txnproto.ShardID
	term    uint64
	ctl     txnproto.Controller
	exposer txnproto.Exposer // ctl, where writes can be seen before they are committed; else nil
	machine *machine
	stopped bool
	met     txnproto.Timestamp // the newest one of all that had an operation here

	branches  []*branch
	newestOf  []int32 // by client: the slot + 1 of its newest live branch, 0: none; see branch.before
	freeSlots []int32
	live      int

	coords     []*coord
	freeCoords []int32
	scouts     []scout          // by client: reconnaissance not yet charged to a branch
	forget     []txnproto.TxnID // decisions carried out everywhere; told to the log with the next entry

	// What the controller asked for in its current call, in order.
	inCall  bool
	effects []effect
	next    int

	rand   *rng.Stream
	hTimer event.HandlerID
}

// effect is something a controller asked of its host.
type effect struct {
	b       *branch
	txn     txnproto.TxnID // guards against a reused slot
	verdict txnproto.Verdict
	kill    bool
}

var _ txnproto.Host = (*Host)(nil)

// Shard implements txnproto.Host.
func (h *Host) Shard() txnproto.ShardID { return h.shard }

// Shards implements txnproto.Host.
func (h *Host) Shards() int { return h.c.cfg.Shards }

// Now implements txnproto.Host.
func (h *Host) Now() event.Time { return h.c.loop.Now() }

// Store implements txnproto.Host.
func (h *Host) Store() txnproto.Store { return h.machine.store }

// NewVersion implements txnproto.Host.
func (h *Host) NewVersion() txnproto.Version {
	h.c.exposed[h.shard]++
	return h.c.exposed[h.shard]
}

// OldestTS implements txnproto.Host.
func (h *Host) OldestTS() txnproto.Timestamp { return h.c.oldestTS() }

// NewestTS implements txnproto.Host.
func (h *Host) NewestTS() txnproto.Timestamp { return h.c.cfg.NewestTS() }

// PrepareTS implements txnproto.Host. From a clock it is newer than any snapshot that
// was read at here, under an earlier leader too.
func (h *Host) PrepareTS(tx *txnproto.Txn) txnproto.Timestamp {
	if !h.c.cfg.ClockCommit {
		return h.c.cfg.NewestTS()
	}
	h.met = h.c.clients.NodeStamp(h.node.id, h.met)
	h.branches[tx.Slot].prepareTS = h.met
	return h.met
}

// early reports whether operation m of b has to wait until the node's clock shows its
// attempt's timestamp: what would be prepared here before might otherwise belong into
// its snapshot (Du, Elnikety, Zwaenepoel 2013, the first of the two delays of reads).
func (h *Host) early(b *branch, m *txnproto.Msg) bool {
	if !h.c.cfg.ClockCommit {
		return false
	}
	d := h.c.clients.Behind(h.node.id, m.Tx.TS)
	if d == 0 {
		return false
	}
	m.Parts[txnproto.PartTimestamp] += d
	b.clockAt = h.Now().Add(d)
	h.c.loop.After(d, h.c.hServed, m.Index())
	return true
}

// Rand implements txnproto.Host.
func (h *Host) Rand() *rng.Stream { return h.rand }

// Stats implements txnproto.Host.
func (h *Host) Stats() *txnproto.ControlStats { return &h.c.control[h.shard] }

// Resolve implements txnproto.Host.
func (h *Host) Resolve(tx *txnproto.Txn, v txnproto.Verdict) {
	if v.IsWaiting() {
		panic("nodes: " + tx.ID.String() + ": a wait cannot be resolved by waiting")
	}
	h.effects = append(h.effects, effect{b: h.branches[tx.Slot], txn: tx.ID, verdict: v})
}

// Kill implements txnproto.Host.
func (h *Host) Kill(tx *txnproto.Txn, r txnproto.AbortReason) bool {
	b := h.branches[tx.Slot]
	if b.tx.ID != tx.ID || !b.killable() {
		return false
	}
	h.effects = append(h.effects, effect{b: b, txn: tx.ID, verdict: txnproto.Abort(r), kill: true})
	return true
}

// Blocked implements txnproto.Host.
func (h *Host) Blocked(tx *txnproto.Txn, key txnproto.Key, on []txnproto.TxnID) {
	h.branches[tx.Slot].waitKey = key
}

// After implements txnproto.Host.
func (h *Host) After(d time.Duration, arg uint64) event.Timer {
	return h.c.loop.Schedule(h.Now().Add(d), h.hTimer, arg)
}

// Cancel implements txnproto.Host.
func (h *Host) Cancel(t event.Timer) bool { return h.c.loop.Cancel(t) }

// Send implements txnproto.Host.
func (h *Host) Send(to txnproto.ShardID, msg *txnproto.Message) {
	m := h.c.pool.New(txnproto.MsgControl)
	m.Shard, m.From = to, h.shard
	txns := append(m.Control.Txns[:0], msg.Txns...)
	m.Control = *msg
	m.Control.Txns = txns
	if msg.Batch != nil {
		m.Control.Batch = m.OwnBatch()
		m.Control.Batch.Set(msg.Batch)
	}
	h.c.controlSeq++
	m.Key = rng.Hash(h.c.controlKey, h.c.controlSeq)
	h.c.toShard(h.node.id, to, m)
}

// timer hands a controller's timer to it.
func (h *Host) timer(arg uint64) {
	if h.stopped {
		return
	}
	h.ctl.(txnproto.Timed).Timer(arg)
	h.settle()
}

// settle carries out what the controller asked for, until it asks for nothing more.
func (h *Host) settle() {
	if len(h.effects) > 0 && !h.inCall { // in a call, the outermost goes on
		h.perform()
	}
}

// perform is settle where there is something to do.
func (h *Host) perform() {
	h.inCall = true
	for h.next < len(h.effects) {
		e := h.effects[h.next]
		h.next++
		if e.b.tx.ID != e.txn {
			continue // ended meanwhile
		}
		switch {
		case e.kill:
			reason, _ := e.verdict.Aborted()
			h.kill(e.b, reason)
		case e.b.state == branchWaitingOp:
			h.endWait(e.b, e.verdict)
		case e.b.state == branchWaitingPrepare:
			h.endWait(e.b, e.verdict)
		case e.b.state == branchDead:
		default:
			panic(fmt.Sprintf("nodes: at %v: shard %v: %v resolved while it does not wait", h.Now(), h.shard, e.txn))
		}
	}
	h.effects, h.next, h.inCall = h.effects[:0], 0, false
}

// endWait answers an operation or a prepare that waited.
func (h *Host) endWait(b *branch, v txnproto.Verdict) {
	d := h.bookWait(b)
	if b.state == branchWaitingPrepare {
		b.state = branchIdle
		h.prepared(b, v, d)
		return
	}
	m := b.msg
	b.msg = nil
	b.state = branchIdle
	m.Parts[txnproto.PartLockWait] += d
	h.answer(b, m, v)
}

// bookWait reports the wait of b, which ends now, and returns how long it was. Of a wait
// for a place, what went to the log is left out.
func (h *Host) bookWait(b *branch) time.Duration {
	h.c.decided++
	d := h.Now().Sub(b.waitSince)
	sequencing := b.msg != nil && b.msg.Op.Kind == txnproto.Sequence
	if sequencing {
		d = b.splitSequencing(b.msg, d, h.Now())
	}
	switch waits := h.c.cfg.Waits; {
	case waits == nil:
	case sequencing:
		waits.WaitedForPlace(h.shard, d)
	default:
		waits.Waited(h.shard, b.waitKey, d)
	}
	return d
}

// kill aborts a branch that the controller wants gone, and tells its client.
func (h *Host) kill(b *branch, reason txnproto.AbortReason) {
	switch b.state {
	case branchWaitingOp, branchWaitingPrepare:
		h.endWait(b, txnproto.Abort(reason))
	case branchIdle:
		h.die(b, reason)
		m := h.c.pool.New(txnproto.MsgKilled)
		m.Tx, m.Reason = b.info, reason
		m.Key = rng.Hash(b.key, uint64(txnproto.MsgKilled)<<32|uint64(h.shard))
		h.c.toClient(h.node.id, m)
	case branchServing: // the operation's answer will tell
		h.die(b, reason)
	case branchPrepared, branchDead, branchFree: // too late
	default:
		panic("nodes: unknown branch state")
	}
}

// die ends the branch at the controller; the record stays until its client has heard.
func (h *Host) die(b *branch, reason txnproto.AbortReason) {
	h.finish(b, txnproto.Aborted)
	h.letGo(b)
	b.state, b.reason = branchDead, reason
}

// arriveOp is called when an operation reaches the node, before its service:
// the branch must be known from then on, so that an abort finds it.
func (h *Host) arriveOp(m *txnproto.Msg) {
	if m.Op.Kind == txnproto.Reconnoitre {
		return // no part of the attempt
	}
	if m.Slot < 0 {
		b := h.newBranch(&m.Tx)
		b.state, b.key = branchServing, m.Key
		m.Slot = int32(b.tx.Slot)
		return
	}
	if b := h.find(m.Tx.ID, m.Slot); b != nil && b.state == branchIdle {
		b.state, b.key = branchServing, m.Key
	}
}

// op runs a served operation.
func (h *Host) op(m *txnproto.Msg) {
	if m.Op.Kind == txnproto.Reconnoitre {
		if !h.hold(m) {
			h.reconnoitre(m)
		}
		return
	}
	b := h.find(m.Tx.ID, m.Slot)
	if b == nil || b.state == branchDead {
		reason := txnproto.LeaderChange
		if b != nil {
			reason = b.reason
			b.cpu += m.Service
			h.freeBranch(b, txnproto.Aborted)
		}
		h.refuse(m, reason)
		return
	}
	if b.state != branchServing {
		panic(fmt.Sprintf("nodes: at %v: %v: operation of %v out of turn", h.Now(), h.shard, m.Tx.ID))
	}
	if m.Op.Kind == txnproto.Sequence {
		b.tx.Claims = m.Batch.Claims
	} else if h.early(b, m) || h.hold(m) {
		return
	}
	b.state = branchIdle
	b.cpu += m.Service
	b.waitKey = m.Op.Key
	b.tx.Save = int(m.Save)
	h.met = max(h.met, m.Tx.TS)
	if m.Op.Kind == txnproto.RollbackTo {
		h.rollbackTo(b, int(m.Op.Value))
		h.answer(b, m, txnproto.Granted)
		h.settle()
		return
	}
	v := h.ctl.Access(&b.tx, &m.Op)
	if v.IsWaiting() {
		b.state, b.msg, b.waitSince = branchWaitingOp, m, h.Now()
	} else {
		h.c.decided++
		h.answer(b, m, v)
	}
	h.settle()
}

// answer carries out a granted operation or ends an aborted one, and replies.
func (h *Host) answer(b *branch, m *txnproto.Msg, v txnproto.Verdict) {
	reason, bad := v.Aborted()
	if !bad && !h.execute(b, m) {
		reason, bad = txnproto.Constraint, true
	}
	if bad {
		h.endBranch(b, txnproto.Aborted)
		h.refuse(m, reason)
		return
	}
	if m.Op.Kind == txnproto.Sequence {
		b.tx.Claims, b.tx.Place = nil, txnproto.Place(m.Op.Value)
		b.info.Place = b.tx.Place
	} else {
		b.tx.Ops++
		b.note(&m.Op)
	}
	if m.LockPoint {
		h.exposer.Shrink(&b.tx, m.Ahead)
	}
	m.Kind = txnproto.MsgReply
	m.Slot = int32(b.tx.Slot)
	h.c.toClient(h.node.id, m)
}

// refuse replies to an operation that its attempt is aborted here.
func (h *Host) refuse(m *txnproto.Msg, reason txnproto.AbortReason) {
	m.Kind, m.Reason, m.Met = txnproto.MsgReply, reason, h.met
	h.c.toClient(h.node.id, m)
}

// execute reads and writes for a granted operation. It reports false when a
// constraint forbids it.
func (h *Host) execute(b *branch, m *txnproto.Msg) bool {
	op := &m.Op
	if op.Kind == txnproto.Scan {
		h.scan(b, m)
		return true
	}
	row := txnproto.Row{Key: op.Key}
	if op.Skip {
		row.Skipped = true
		m.Result.Row = row
		return true
	}
	if op.Kind.Reads() {
		own := b.tx.Put(op.Key)
		switch {
		case own != nil:
			row.Value, row.Exists, row.Own = own.Value, !own.Deleted, true
		case h.exposer != nil:
			row = h.exposer.See(&b.tx, op.Key)
		default:
			row = h.machine.store.At(op.Key, op.Snapshot)
		}
	}
	m.Result.Row = row
	switch op.Kind {
	case txnproto.Read, txnproto.ReadForUpdate, txnproto.Scan, txnproto.LockShared, txnproto.LockExclusive,
		txnproto.RollbackTo, txnproto.Sequence:
	case txnproto.Write:
		b.put(txnproto.Put{Key: op.Key, Value: op.Value})
	case txnproto.Modify:
		b.put(txnproto.Put{Key: op.Key, Value: row.Value + op.Value})
	case txnproto.Insert:
		if row.Exists {
			return false
		}
		b.put(txnproto.Put{Key: op.Key, Value: op.Value})
	case txnproto.Delete:
		b.put(txnproto.Put{Key: op.Key, Deleted: true})
	default:
		panic("nodes: unknown operation")
	}
	return true
}

// scan reads the committed rows of the range and lays the branch's own writes over them.
func (h *Host) scan(b *branch, m *txnproto.Msg) {
	rows := h.machine.store.Scan(m.Op.Key, m.Op.End, m.Op.Snapshot, m.Result.Rows[:0])
	if h.exposer != nil {
		rows = h.exposer.SeeRange(&b.tx, m.Op.Key, m.Op.End, rows)
	}
	for i := range b.tx.Puts {
		p := &b.tx.Puts[i]
		if p.Key < m.Op.Key || p.Key >= m.Op.End {
			continue
		}
		own := txnproto.Row{Key: p.Key, Value: p.Value, Exists: !p.Deleted, Own: true}
		at := len(rows)
		for j := range rows {
			if rows[j].Key >= p.Key {
				at = j
				break
			}
		}
		if at < len(rows) && rows[at].Key == p.Key {
			rows[at] = own
			continue
		}
		rows = append(rows, txnproto.Row{})
		copy(rows[at+1:], rows[at:])
		rows[at] = own
	}
	m.Result.Rows = rows
}

// rollbackTo undoes what the branch did since a savepoint.
func (h *Host) rollbackTo(b *branch, save int) {
	for n := len(b.undo); n > 0 && b.undo[n-1].save >= save; n-- {
		u := &b.undo[n-1]
		if u.had {
			b.tx.SetPut(u.old)
		} else {
			b.tx.DropLastPut()
		}
		b.undo = b.undo[:n-1]
	}
	if s, ok := h.ctl.(txnproto.Savepointer); ok {
		s.RollbackTo(&b.tx, save)
	}
}

// abort ends a branch because its client says so.
func (h *Host) abort(m *txnproto.Msg) {
	b := h.seek(m)
	if b == nil {
		h.unvisited(m)
		return // or it ended by itself, and its client's word crossed ours
	}
	b.cpu += m.Service
	b.rolledBack = m.Reason == txnproto.NoReason
	switch b.state {
	case branchServing:
		h.die(b, txnproto.LeaderChange)
	case branchWaitingOp:
		h.bookWait(b)
		h.c.pool.Free(b.msg)
		b.msg = nil
		h.endBranch(b, txnproto.Aborted)
	case branchIdle:
		h.endBranch(b, txnproto.Aborted)
	case branchDead:
		h.freeBranch(b, txnproto.Aborted)
	case branchWaitingPrepare, branchPrepared, branchFree:
		panic(fmt.Sprintf("nodes: at %v: %v: client aborts %v in commit", h.Now(), h.shard, m.Tx.ID))
	default:
		panic("nodes: unknown branch state")
	}
	h.settle()
}

// endBranch ends a branch at the controller and here.
func (h *Host) endBranch(b *branch, o txnproto.Outcome) {
	h.finish(b, o)
	h.freeBranch(b, o)
}

// finish ends a branch at the controller.
func (h *Host) finish(b *branch, o txnproto.Outcome) {
	if h.exposer != nil && o == txnproto.Aborted {
		h.takeBack(b)
	}
	h.ctl.Finish(&b.tx, o)
}

// control hands a message of another controller to this one.
func (h *Host) control(m *txnproto.Msg) {
	h.ctl.(txnproto.Messenger).Receive(m.From, &m.Control)
	h.settle()
}
