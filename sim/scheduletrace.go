package sim

import (
	"time"

	"interleave/txnproto"
	"interleave/txnproto/schedule"
)

// tracedController stands between the host and a schedule's controller and notes what
// is asked and answered. It hands everything on unchanged, and takes part in nothing.
type tracedController struct {
	inner txnproto.Controller
	r     *scheduleRun
}

// tracedHost is the host as the controller sees it.
type tracedHost struct {
	txnproto.Host
	r *scheduleRun
}

var (
	_ txnproto.Recoverer   = (*tracedController)(nil)
	_ txnproto.Savepointer = (*tracedController)(nil)
	_ txnproto.Timed       = (*tracedController)(nil)
	_ txnproto.Messenger   = (*tracedController)(nil)
	_ txnproto.Exposer     = (*tracedController)(nil)
	_ txnproto.Logger      = (*tracedController)(nil)
)

// Access implements txnproto.Controller.
func (c *tracedController) Access(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	if op.Kind == txnproto.Sequence {
		c.r.owner[tx.ID].sequencing = true
		return c.inner.Access(tx, op)
	}
	return c.r.ask(tx, op, func() txnproto.Verdict { return c.inner.Access(tx, op) })
}

// Prepare implements txnproto.Controller.
func (c *tracedController) Prepare(tx *txnproto.Txn) txnproto.Verdict {
	p := c.r.owner[tx.ID]
	p.puts = p.puts[:0]
	for i := range tx.Puts {
		p.puts = append(p.puts, tx.Puts[i].Key)
	}
	return c.r.ask(tx, nil, func() txnproto.Verdict {
		v := c.inner.Prepare(tx)
		c.r.exposed(tx)
		return v
	})
}

// Shrink implements txnproto.Exposer.
func (c *tracedController) Shrink(tx *txnproto.Txn, ahead []txnproto.Op) {
	c.inner.(txnproto.Exposer).Shrink(tx, ahead)
	c.r.exposed(tx)
}

// exposed notes who has written the versions of tx that others can see.
func (r *scheduleRun) exposed(tx *txnproto.Txn) {
	for i := range tx.Puts {
		if p := &tx.Puts[i]; p.Version != 0 {
			r.writers[txnproto.ReadVersion{Key: p.Key, Version: p.Version}] = tx.ID
		}
	}
}

// See implements txnproto.Exposer.
func (c *tracedController) See(tx *txnproto.Txn, k txnproto.Key) txnproto.Row {
	return c.inner.(txnproto.Exposer).See(tx, k)
}

// SeeRange implements txnproto.Exposer.
func (c *tracedController) SeeRange(tx *txnproto.Txn, lo, hi txnproto.Key, rows []txnproto.Row) []txnproto.Row {
	return c.inner.(txnproto.Exposer).SeeRange(tx, lo, hi, rows)
}

// Seen implements txnproto.Exposer.
func (c *tracedController) Seen(tx *txnproto.Txn) bool { return c.inner.(txnproto.Exposer).Seen(tx) }

// Finish implements txnproto.Controller.
func (c *tracedController) Finish(tx *txnproto.Txn, o txnproto.Outcome) {
	p := c.r.owner[tx.ID]
	switch {
	case o == txnproto.Committed:
		s := RunStep{Event: StepCommitted}
		for _, k := range p.puts {
			if tx.Put(k) == nil { // dropped since the prepare
				s.Skipped = append(s.Skipped, c.r.workload.items[k])
			}
		}
		c.r.end(p, tx.ID, s)
	case p.operation() == nil || p.operation().Kind != schedule.Abort:
		c.r.end(p, tx.ID, RunStep{Event: StepAborted})
	}
	c.inner.Finish(tx, o)
}

// Recover implements txnproto.Recoverer.
func (c *tracedController) Recover(tx *txnproto.Txn) {
	if i, ok := c.inner.(txnproto.Recoverer); ok {
		i.Recover(tx)
	}
}

// RollbackTo implements txnproto.Savepointer.
func (c *tracedController) RollbackTo(tx *txnproto.Txn, save int) {
	if i, ok := c.inner.(txnproto.Savepointer); ok {
		i.RollbackTo(tx, save)
	}
}

// Timer implements txnproto.Timed.
func (c *tracedController) Timer(arg uint64) { c.inner.(txnproto.Timed).Timer(arg) }

// Logged implements txnproto.Logger.
func (c *tracedController) Logged() { c.inner.(txnproto.Logger).Logged() }

// Receive implements txnproto.Messenger.
func (c *tracedController) Receive(from txnproto.ShardID, m *txnproto.Message) {
	c.inner.(txnproto.Messenger).Receive(from, m)
}

// PeerReset implements txnproto.Messenger.
func (c *tracedController) PeerReset(s txnproto.ShardID) {
	if i, ok := c.inner.(txnproto.Messenger); ok {
		i.PeerReset(s)
	}
}

// Resolve implements txnproto.Host.
func (h *tracedHost) Resolve(tx *txnproto.Txn, v txnproto.Verdict) {
	h.Host.Resolve(tx, v)
	p := h.r.owner[tx.ID]
	if reason, bad := v.Aborted(); bad {
		h.r.end(p, tx.ID, RunStep{
			Event: StepAborted, Reason: reason.String(),
			answer: h.r.inCall != nil && h.r.inCall.ID == tx.ID,
		})
		return
	}
	if p.sequencing {
		p.sequencing = false
		h.r.sequenced++
		h.r.note(p, RunStep{Event: StepPlaced, Op: "place", Place: h.r.sequenced})
		return
	}
	h.r.goesOn(p.txn, false)
	p.waits = false
	if p.operation() != nil && p.operation().Kind == schedule.Commit {
		return // the commit itself is yet to come
	}
	h.r.note(p, RunStep{Event: StepGranted, Late: true})
}

// Kill implements txnproto.Host.
func (h *tracedHost) Kill(tx *txnproto.Txn, reason txnproto.AbortReason) bool {
	if !h.Host.Kill(tx, reason) {
		return false
	}
	s := RunStep{Event: StepAborted, Reason: reason.String()}
	if c := h.r.inCall; c != nil && c.ID == tx.ID {
		s.answer = true
	} else if c != nil {
		s.By = h.r.owner[c.ID].txn.String()
	}
	h.r.end(h.r.owner[tx.ID], tx.ID, s)
	return true
}

// Blocked implements txnproto.Host.
func (h *tracedHost) Blocked(tx *txnproto.Txn, key txnproto.Key, on []txnproto.TxnID) {
	h.Host.Blocked(tx, key, on)
	b := block{key, append([]txnproto.TxnID(nil), on...)}
	p := h.r.owner[tx.ID]
	h.r.goesOn(p.txn, false)
	h.r.waitsFor(p, b)
	if c := h.r.inCall; c != nil && c.ID == tx.ID {
		h.r.blocked[tx.ID] = b // told when it is clear that it waits
		return
	}
	h.r.note(p, RunStep{Event: StepWaits, Late: true, For: h.r.txnsOf(b.on), Over: h.r.workload.name(key)})
}

// ask calls the controller for tx's operation, or its commit when op is nil, and notes
// the answer; then what the call has done to others.
func (r *scheduleRun) ask(tx *txnproto.Txn, op *txnproto.Op, call func() txnproto.Verdict) txnproto.Verdict {
	p := r.owner[tx.ID]
	r.inCall = tx
	v := call()
	r.inCall = nil
	b, isBlocked := r.blocked[tx.ID]
	delete(r.blocked, tx.ID)
	step := RunStep{For: r.txnsOf(b.on)}
	if isBlocked {
		step.Over = r.workload.name(b.key)
	}
	if op != nil {
		p.lock = lockText(r, op)
		step.Op = p.lock
	}
	reason, bad := v.Aborted()
	switch {
	case bad:
		step.Event, step.Reason, step.answer = StepAborted, reason.String(), true
		r.end(p, tx.ID, step)
	case v.IsWaiting():
		step.Event = StepWaits
		p.waits = true
		r.note(p, step)
	case op != nil:
		r.goesOn(p.txn, false)
		step.Event, step.For, step.Over = StepGranted, nil, ""
		r.note(p, step)
	}
	later := r.after
	r.after = nil
	r.out.Steps = append(r.out.Steps, later...)
	return v
}

// lockText names a lock taken beforehand, "" for an operation of the program.
func lockText(r *scheduleRun, op *txnproto.Op) string {
	if op.Kind != txnproto.LockShared && op.Kind != txnproto.LockExclusive {
		return ""
	}
	what := "share "
	if op.Kind == txnproto.LockExclusive {
		what = "lock "
	}
	if op.End > op.Key+1 {
		return what + r.workload.name(op.Key) + ".." + r.workload.name(op.End-1)
	}
	return what + r.workload.name(op.Key)
}

// operation is the operation of the schedule under way, or nil.
func (p *scheduleProgram) operation() *schedule.Op {
	if p.at < 0 {
		return nil
	}
	return &p.r.s.Ops[p.at]
}

// begun notes that an attempt begins.
func (r *scheduleRun) begun(p *scheduleProgram) {
	id := txnproto.TxnID(r.clients.Txns())
	r.owner[id] = p
	p.id = id
	p.numbered, p.waitFrom = -1, -1
	r.out.Transactions[p.client].Timestamp = uint64(id)
	if p.attempt == 1 {
		p.first = id
	}
	step := RunStep{Event: StepBegun, Op: "b" + p.txn.String()[1:], first: p.first}
	if first := p.ops[0]; r.s.Ops[first].Kind == schedule.Begin {
		step.Number = first + 1
	}
	r.note(p, step)
}

// mark notes a savepoint's operation.
func (r *scheduleRun) mark(p *scheduleProgram) { r.note(p, RunStep{Event: StepMarked}) }

// granted notes an operation that asks nothing of the controller.
func (r *scheduleRun) granted(p *scheduleProgram) { r.note(p, RunStep{Event: StepGranted}) }

// note appends a step of p's attempt. Several grants of one operation make one step. What
// a program does before it has heard that it was aborted is none.
func (r *scheduleRun) note(p *scheduleProgram, s RunStep) {
	if r.ends[p.id] && (s.Event == StepMarked || s.Event == StepGranted) {
		return
	}
	s.At = r.loop.Now() - r.base
	s.Txn, s.Attempt, s.attempt, s.op = p.txn, p.attempt, p.id, p.at
	switch {
	case s.Op != "":
		s.op = -1
	case p.at >= 0:
		s.Op = r.s.Ops[p.at].String()
		if p.numbered != p.at {
			s.Number, p.numbered = p.at+1, p.at
		}
	default:
		s.Op = p.lock
	}
	if s.Event == StepWaits && !s.Late {
		p.waitFrom = s.At
	} else if s.Late && p.waitFrom >= 0 {
		s.Waited = time.Duration(s.At - p.waitFrom)
		if s.Event != StepWaits {
			p.waitFrom = -1
		}
	}
	steps := &r.out.Steps
	if r.inCall != nil && r.owner[r.inCall.ID] != p {
		steps = &r.after
	}
	if n := len(*steps); n > 0 && s.Event == StepGranted && s.op >= 0 {
		if last := &(*steps)[n-1]; last.Event == StepGranted && last.attempt == s.attempt && last.op == s.op {
			return
		}
	}
	if s.Event == StepGranted && s.op >= 0 && r.s.Ops[s.op].Kind.Writes() {
		if v := p.seen[r.s.Ops[s.op].Item]; v.own && v.value != unknownValue {
			n := int64(v.value)
			s.Wrote = &n
		}
	}
	*steps = append(*steps, s)
}

// read adds what the attempt's last granted operation has found.
func (r *scheduleRun) read(p *scheduleProgram, it schedule.Item, row txnproto.Row) {
	if r.ends[p.id] {
		return // the answer has crossed the news of its abort
	}
	rd := ItemRead{Item: it, State: valueState(row), From: "initial", writer: fromInitial}
	if rd.State == "known" {
		rd.Value = int64(row.Value)
	}
	switch {
	case row.Own:
		rd.From, rd.writer, rd.attempt = "own", int(p.client), p.id
	case row.Version != 0:
		rd.attempt = r.writers[txnproto.ReadVersion{Key: row.Key, Version: row.Version}]
		w := r.owner[rd.attempt]
		rd.From, rd.writer = w.txn.String(), int(w.client)
	}
	for i := len(r.out.Steps) - 1; i >= 0; i-- {
		if s := &r.out.Steps[i]; s.attempt == p.id && s.op == p.at && s.Event == StepGranted {
			s.Reads = append(s.Reads, rd)
			return
		}
	}
	panic("sim: a read without a grant: " + r.s.Ops[p.at].String())
}

// fromInitial is the writer of initial values.
const fromInitial = -1

// end notes that an attempt has ended, once; a reason that comes later is filled in.
func (r *scheduleRun) end(p *scheduleProgram, id txnproto.TxnID, s RunStep) {
	if r.ends[id] {
		for i := range r.out.Steps {
			if t := &r.out.Steps[i]; t.attempt == id && t.Event == StepAborted && t.Reason == "" {
				t.Reason = s.Reason
			}
		}
		return
	}
	r.ends[id] = true
	r.goesOn(p.txn, true)
	switch {
	case s.Event != StepAborted:
		s.Late = p.numbered == p.at
	case s.answer:
	case p.waits:
		s.Late = true
	default:
		if g := r.lastGrant(p, id); s.Reason == "" && g != nil && g.op == p.at {
			// A constraint forbids what the controller has granted.
			g.Event, g.Wrote = StepAborted, nil
			return
		}
		s.Op = "abort" // it was asking for nothing
	}
	p.waits = false
	r.note(p, s)
}

// lastGrant is the attempt's newest step, when that is a grant.
func (r *scheduleRun) lastGrant(p *scheduleProgram, id txnproto.TxnID) *RunStep {
	for i := len(r.out.Steps) - 1; i >= 0; i-- {
		if s := &r.out.Steps[i]; s.attempt == id {
			if s.Event == StepGranted {
				return s
			}
			return nil
		}
	}
	return nil
}
