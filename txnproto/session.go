package txnproto

import (
	"time"

	"interleave/sim/event"
	"interleave/sim/rng"
)

// sessionState is what a session is doing.
type sessionState uint8

const (
	stateIdle      sessionState = iota // no request open
	stateAdmission                     // a request is open and waits for the multiprogramming limit
	stateTimestamp                     // a timestamp is on its way
	stateOp                            // an operation is under way
	stateThink                         // pausing inside the transaction
	stateCommit                        // commit sent, outcome unknown
	stateBackoff                       // an attempt aborted, the next waits for its time
)

// branchRef is a shard that the attempt has touched.
type branchRef struct {
	Branch
	node NodeID // where it was led at the last operation there
}

// session runs one client's requests, one at a time, each as one or more attempts.
//
//	idle → admission → (timestamp →) op ⇄ think → commit → idle
//	          ↑                       └─ aborted ─┴→ backoff ─┘ (next attempt)
type session struct {
	c     *Clients
	id    ClientID
	gen   Generator
	prog  Program
	state sessionState

	// The request.
	reqSeq  uint64 // the client's own count of requests: with it, messages are the same under every protocol
	tx      Info
	arrival event.Time
	first   event.Time // begin of the first attempt
	parts   Parts      // of the request so far, the current attempt left out
	reason  AbortReason

	// The attempt.
	reading  event.Time // of the client's clock, when it drew its newest timestamp
	begun    bool       // it has its timestamp
	begin    event.Time
	cur      Parts
	branches []branchRef
	reads    []ReadVersion
	scans    []ScanRecord
	opSeq    int32
	opsDone  int
	wrote    int32 // rows, known at commit
	act      Action
	op       Op // under way: the program's, or what the session does on its own
	phase    opPhase
	declared []ShardLock
	stepAt   int // next of declared or claims, or of branches when rolling back
	claims   []Claim
	// declaredClaims of them come from the program, the rest from the reconnaissance.
	declaredClaims int
	home           ShardID // whose sequencer gives the place
	saves          []savepoint
	saveSeq        int32
	growth         Growth  // under protocols that release early, and the next three
	ahead          []Op    // what may follow the operation under way
	past           bool    // the lock point is passed, or will be with it
	untold         bool    // and the other branches do not know
	opShard        ShardID // shard of the operation under way
	sentAt         event.Time
	arriveAt       event.Time // when the message under way reaches its node
	waitNode       NodeID     // the node an answer is due from, -1 when none
	scanRows       []Row      // rows of a scan's shards so far
	timer          event.Timer
}

func (s *session) now() event.Time { return s.c.loop.Now() }

// startRequest opens the next request, which was meant to begin at arrival.
func (s *session) startRequest(arrival event.Time) {
	s.c.requests++
	s.c.open++
	s.reqSeq++
	s.prog = s.gen.Next(s.prog)
	s.tx = Info{Request: RequestID(s.c.requests), Client: s.id, Class: s.prog.Class()}
	s.arrival = arrival
	s.parts = Parts{}
	s.reason = NoReason
	s.state = stateAdmission
	s.c.admit(s)
}

// startAttempt begins the next attempt of the open request. REQUIRES: admitted.
func (s *session) startAttempt() {
	now := s.now()
	s.tx.Attempt++
	s.c.txns++
	s.tx.ID = TxnID(s.c.txns)
	if s.tx.Attempt == 1 {
		s.first = now
		s.parts[PartAdmission] = now.Sub(s.arrival)
	}
	s.begin = now
	s.cur = Parts{}
	s.branches = s.branches[:0]
	s.reads = s.reads[:0]
	s.scans = s.scans[:0]
	s.opSeq = 0
	s.opsDone = 0
	s.wrote = 0
	s.phase = phaseProgram
	s.saves, s.saveSeq = s.saves[:0], 0
	s.growth.Reset()
	s.past, s.untold = false, false
	s.prog.Start(s.tx.Attempt, s.c.cfg.Retry.FreshKeys && s.tx.Attempt > 1)
	s.tx.ReadOnly = s.c.cfg.ReadOnly && s.onlyReads()
	s.tx.Place = 0
	s.begun = false
	if s.stampAttempt() {
		s.goOn()
	}
}

// goOn begins the attempt's operations. REQUIRES: it has its timestamp.
func (s *session) goOn() {
	s.begun = true
	switch {
	case s.c.cfg.Declares:
		s.lockDeclared()
		return
	case s.c.cfg.Sequenced:
		s.sequence()
		return
	}
	s.advance(nil)
}

// advance asks the program what comes next and does it.
func (s *session) advance(last *Result) {
	switch step := s.prog.Next(last, &s.act); step {
	case StepOp:
		s.op = s.act.Op
		if s.c.cfg.Foretell {
			s.foretell()
		}
		if s.stampStatement() {
			s.runOp()
		}
	case StepThink:
		s.state = stateThink
		s.cur[PartThink] += s.act.Think
		s.timer = s.c.loop.Schedule(s.now().Add(s.act.Think), s.c.hThought, uint64(s.id))
	case StepCommit:
		s.commit()
	case StepRollback:
		s.rollback()
	case StepSavepoint:
		s.setSavepoint(s.act.Savepoint)
		s.advance(nil)
	case StepRollbackTo:
		s.rollbackTo(s.act.Savepoint)
	default:
		panic("txnproto: unknown step")
	}
}

// runOp runs the program's operation.
func (s *session) runOp() {
	if s.op.Kind == Scan {
		s.phase = phaseScan
		s.scanRows = s.scanRows[:0]
		s.opShard = -1
		s.nextScanShard()
		return
	}
	s.sendTo(s.c.cluster.ShardOf(s.op.Key))
}

// sendTo runs the operation under way on shard.
func (s *session) sendTo(shard ShardID) {
	s.opShard = shard
	s.opSeq++
	s.sendOp()
}

// nextScanShard runs the scan on the next shard that holds keys of its range,
// or hands the program the merged rows. Shards are visited one after another.
func (s *session) nextScanShard() {
	if sh := s.nextCovered(); sh >= 0 {
		s.sendTo(sh)
		return
	}
	s.phase = phaseProgram
	sortRows(s.scanRows)
	s.opsDone++
	if s.c.cfg.Foretell {
		s.grown(&Row{})
	}
	s.c.scratch = Result{Rows: s.scanRows}
	s.advance(&s.c.scratch)
}

// nextCovered is the next shard that may hold keys of the scan's range, or -1.
func (s *session) nextCovered() ShardID {
	for sh := s.opShard + 1; int(sh) < s.c.cluster.Shards(); sh++ {
		if s.c.cluster.Covers(sh, s.op.Key, s.op.End) {
			return sh
		}
	}
	return -1
}

// ref returns the attempt's branch on shard, or nil.
func (s *session) ref(shard ShardID) *branchRef {
	for i := range s.branches {
		if s.branches[i].Shard == shard {
			return &s.branches[i]
		}
	}
	return nil
}

// msg returns a message about the attempt whose content key says what it is.
func (s *session) msg(k MsgKind, shard ShardID, node NodeID) *Msg {
	m := s.c.pool.New(k)
	m.Tx = s.tx
	m.Shard = shard
	m.Node = node
	m.OpSeq = s.opSeq
	m.Save = s.saveSeq
	m.Slot = -1
	m.Key = rng.Hash(uint64(s.id)<<40|s.reqSeq, uint64(s.tx.Attempt)<<32|uint64(s.opSeq)<<8|uint64(shard)&0xff)
	return m
}

// sendOp sends the operation to its shard's leader, or waits for there to be one.
func (s *session) sendOp() {
	s.state = stateOp
	node, ok := s.c.cluster.Leader(s.opShard)
	if !ok {
		s.waitForLeader()
		return
	}
	if s.op.Kind == Reconnoitre { // leaves nothing behind
		m := s.msg(MsgOp, s.opShard, node)
		m.Op = s.op
		s.send(m)
		return
	}
	r := s.ref(s.opShard)
	if r == nil {
		s.branches = append(s.branches, branchRef{Branch: Branch{Shard: s.opShard, Slot: -1}, node: node})
		r = &s.branches[len(s.branches)-1]
	}
	r.node = node
	m := s.msg(MsgOp, s.opShard, node)
	m.Slot = r.Slot
	m.Op = s.op
	if s.op.Kind == Sequence {
		m.OwnBatch().Add(BatchTxn{ID: s.tx.ID}, s.claims)
	}
	if s.past {
		s.tellLockPoint(m)
	}
	s.send(m)
}

func (s *session) send(m *Msg) {
	s.waitNode = m.Node
	s.sentAt = s.now()
	s.arriveAt = s.c.cluster.FromClient(s.id, m)
}

// waitForLeader tries again in a while. The time counts as replication: it is
// what a client pays for an election.
func (s *session) waitForLeader() {
	s.waitNode = -1
	s.cur[PartReplication] += leaderPoll
	s.timer = s.c.loop.Schedule(s.now().Add(leaderPoll), s.c.hNoLeader, uint64(s.id))
}

// leaderPoll is how often a client that knows no leader looks again.
const leaderPoll = 5 * time.Millisecond

// noLeader continues what waitForLeader put off.
func (s *session) noLeader() {
	switch s.state {
	case stateOp:
		if s.now().Sub(s.begin) > s.c.cfg.RPCTimeout {
			s.aborted(RPCTimeout)
			return
		}
		s.sendOp()
	case stateCommit:
		s.askStatus()
	case stateIdle, stateAdmission, stateTimestamp, stateThink, stateBackoff:
	default:
		panic("txnproto: unknown session state")
	}
}

// account adds what a message's way to a node and back took to the attempt's parts.
func (s *session) account(m *Msg) {
	var atNode time.Duration
	for p := range m.Parts {
		d := m.Parts[p]
		s.cur[p] += d
		atNode += d
	}
	s.cur[PartNetwork] += s.now().Sub(s.sentAt) - atNode
}

// reply takes the answer to an operation.
func (s *session) reply(m *Msg) {
	if s.state != stateOp || m.Tx.ID != s.tx.ID || m.OpSeq != s.opSeq || m.Shard != s.opShard {
		return // of an attempt or an operation that is over
	}
	s.waitNode = -1
	s.account(m)
	if m.Reason != NoReason {
		s.dropBranch(m.Shard)
		if s.c.cfg.Stamping.CatchUp && (m.Reason == TSOrder || m.Reason == WriteConflict || m.Reason == LeaderChange) {
			s.c.moveOn(s, m.Met)
		}
		s.aborted(m.Reason)
		return
	}
	if s.phase == phaseReconnaissance {
		s.reconnoitred(m)
		return
	}
	r := s.ref(m.Shard)
	r.Slot = m.Slot
	if s.op.Kind.Writes() {
		r.Wrote = true
	}
	switch s.phase {
	case phaseProgram:
	case phaseScan:
		s.op.Snapshot = m.Op.Snapshot // one for all shards
		s.noteScan(m)
		s.scanRows = append(s.scanRows, m.Result.Rows...)
		s.nextScanShard()
		return
	case phaseLocking:
		s.nextDeclared()
		return
	case phaseRollingBack:
		s.nextRollback()
		return
	case phaseSequencing:
		s.sequenced(m)
		return
	default:
		panic("txnproto: unknown phase of a session")
	}
	if s.op.Kind.Reads() && !m.Result.Row.Own && !m.Result.Row.Skipped {
		s.reads = append(s.reads, ReadVersion{m.Result.Row.Key, m.Result.Row.Version})
	}
	s.opsDone++
	if s.c.cfg.Foretell {
		s.grown(&m.Result.Row)
	}
	s.c.scratch = m.Result
	s.advance(&s.c.scratch)
}

// noteScan keeps what one shard's part of a scan saw. Rows that the attempt has
// written itself are no reads: the record has a gap there.
func (s *session) noteScan(m *Msg) {
	sc := s.newScan(s.op.Key, m.Shard)
	for i := range m.Result.Rows {
		switch r := &m.Result.Rows[i]; {
		case r.Own:
			sc.Hi = r.Key
			sc = s.newScan(r.Key+1, m.Shard)
		case r.Version != 0:
			sc.Seen = append(sc.Seen, ReadVersion{r.Key, r.Version})
		}
	}
	sc.Hi = s.op.End
}

// newScan begins a record of a scan from lo on.
func (s *session) newScan(lo Key, shard ShardID) *ScanRecord {
	n := len(s.scans)
	if n < cap(s.scans) {
		s.scans = s.scans[:n+1]
	} else {
		s.scans = append(s.scans, ScanRecord{})
	}
	sc := &s.scans[n]
	*sc = ScanRecord{Lo: lo, Shard: shard, Seen: sc.Seen[:0]}
	return sc
}

// dropBranch forgets a branch that has ended at its shard.
func (s *session) dropBranch(shard ShardID) {
	for i := range s.branches {
		if s.branches[i].Shard == shard {
			s.branches = append(s.branches[:i], s.branches[i+1:]...)
			return
		}
	}
}

// coordinatorFirst moves the deciding branch to the front: the first shard
// written, or the first touched when nothing was written.
func (s *session) coordinatorFirst() {
	for i := range s.branches {
		if s.branches[i].Wrote {
			b := s.branches[i]
			copy(s.branches[1:i+1], s.branches[:i])
			s.branches[0] = b
			return
		}
	}
}

// commit asks the coordinator to commit.
func (s *session) commit() {
	s.state = stateCommit
	if s.c.cfg.Sequenced {
		s.forgo()
	}
	if len(s.branches) == 0 {
		s.committed()
		return
	}
	s.coordinatorFirst()
	s.opSeq++
	co := &s.branches[0]
	m := s.msg(MsgCommit, co.Shard, co.node)
	m.Slot = co.Slot
	for i := range s.branches {
		m.Branches = append(m.Branches, s.branches[i].Branch)
	}
	s.send(m)
}

// outcome takes the coordinator's answer to commit or status.
func (s *session) outcome(m *Msg) {
	if s.state != stateCommit || m.Tx.ID != s.tx.ID {
		return
	}
	s.waitNode = -1
	s.c.loop.Cancel(s.timer) // of a question that this has answered
	if m.OpSeq == s.opSeq {
		s.account(m)
	}
	switch m.Outcome {
	case Committed:
		s.wrote = m.Wrote
		s.seen(m.Tx.CommitTS)
		s.committed()
	case Aborted:
		s.branches = s.branches[:0] // the coordinator has told them
		s.aborted(m.Reason)
	case Undecided: // still being decided: ask again later
		s.waitForLeader()
	default:
		panic("txnproto: unknown outcome")
	}
}

// askStatus asks how the attempt ended, under the same request id.
func (s *session) askStatus() {
	shard := s.branches[0].Shard
	node, ok := s.c.cluster.Leader(shard)
	if !ok {
		s.waitForLeader()
		return
	}
	s.opSeq++
	m := s.msg(MsgStatus, shard, node)
	for i := range s.branches {
		m.Branches = append(m.Branches, s.branches[i].Branch)
	}
	s.send(m)
}

// unanswered is called when the node that an answer is due from cannot give
// it and the timeout has passed.
func (s *session) unanswered() {
	waited := s.now().Sub(s.sentAt)
	s.waitNode = -1
	switch s.state {
	case stateOp:
		s.cur[PartReplication] += waited
		s.aborted(RPCTimeout)
	case stateCommit:
		s.cur[PartReplication] += waited
		s.askStatus()
	case stateIdle, stateAdmission, stateTimestamp, stateThink, stateBackoff:
	default:
		panic("txnproto: unknown session state")
	}
}

// killed takes the word that a controller aborted the attempt at a shard.
func (s *session) killed(m *Msg) {
	if m.Tx.ID != s.tx.ID || s.state != stateOp && s.state != stateThink && s.state != stateTimestamp {
		return // over, or the commit will hear of it
	}
	s.c.loop.Cancel(s.timer)
	s.aborted(m.Reason)
}

// abortBranches tells every shard the attempt touched that it is over, for reason,
// or by the program's own logic when that is NoReason.
func (s *session) abortBranches(reason AbortReason) {
	for i := range s.branches {
		b := &s.branches[i]
		if b.node == nowhere {
			s.tellUnvisited(b.Shard, reason)
			continue
		}
		m := s.msg(MsgAbort, b.Shard, b.node)
		m.Slot, m.Reason = b.Slot, reason
		if s.state == stateOp && b.Shard == s.opShard && s.now() < s.arriveAt && s.arriveAt != event.Never {
			// The operation is still on its way there. The abort must not overtake it.
			s.c.loop.At(s.arriveAt, s.c.hSendLate, m.Index())
			continue
		}
		s.c.cluster.FromClient(s.id, m)
	}
	s.branches = s.branches[:0]
}

// rollback ends the request by the program's own logic.
func (s *session) rollback() {
	s.abortBranches(NoReason)
	s.endAttempt(Aborted, NoReason)
	s.endRequest(EndRolledBack)
}

// committed ends the request.
func (s *session) committed() {
	// Without a fault the parts already sum to the attempt. What a client lost
	// by asking a node that had died belongs to replication.
	s.cur[PartReplication] += s.now().Sub(s.begin) - s.cur.Sum()
	s.endAttempt(Committed, NoReason)
	if rec := s.c.cfg.Recorder; rec != nil {
		s.c.commit = CommitRecord{
			Txn: s.tx.ID, Request: s.tx.Request, Client: s.id, Class: s.tx.Class,
			Begin: s.begin, End: s.now(), Wrote: int(s.wrote), Reads: s.reads, Scans: s.scans,
		}
		rec.Committed(&s.c.commit)
	}
	s.endRequest(EndCommitted)
}

// aborted ends the attempt and sees to the next.
func (s *session) aborted(reason AbortReason) {
	s.abortBranches(reason)
	s.reason = reason
	if reason == Deadlock {
		s.tx.Hits++
	}
	s.endAttempt(Aborted, reason)
	s.parts[PartLostAttempts] += s.now().Sub(s.begin)
	r := &s.c.cfg.Retry
	// A constraint forbids the same again: trying once more would fail for ever.
	final := reason == Constraint && !r.FreshKeys || r.MaxAttempts > 0 && s.tx.Attempt >= r.MaxAttempts
	if s.c.closing || final {
		s.endRequest(EndGivenUp)
		return
	}
	u := rng.Hash(s.c.backoffKey, rng.Hash(uint64(s.id)<<40|s.reqSeq, uint64(s.tx.Attempt)))
	d := r.Delay(s.tx.Attempt+1, s.c.meanLatency(), u)
	s.parts[PartBackoff] += d
	s.state = stateBackoff
	s.timer = s.c.loop.Schedule(s.now().Add(d), s.c.hRetry, uint64(s.id))
}

// endAttempt reports the attempt.
func (s *session) endAttempt(o Outcome, reason AbortReason) {
	if s.c.closing && o != Committed {
		return // cut off by the end of the run, not aborted
	}
	a := &s.c.attempt
	*a = AttemptRecord{
		Txn: s.tx.ID, Request: s.tx.Request, Client: s.id, Class: s.tx.Class, Attempt: s.tx.Attempt,
		Begin: s.begin, End: s.now(), Outcome: o, Reason: reason, Ops: s.opsDone,
	}
	onRow := s.phase == phaseProgram || s.phase == phaseLocking
	if o == Aborted && reason != NoReason && s.state == stateOp && onRow {
		a.Key, a.KeyKnown = s.op.Key, true
	}
	s.c.cfg.Observer.AttemptEnded(a)
}

// endRequest reports the request and lets the client go on.
func (s *session) endRequest(e Ending) {
	now := s.now()
	s.state = stateIdle
	s.waitNode = -1
	if e == EndCommitted || e == EndRolledBack {
		for p, d := range s.cur {
			s.parts[p] += d
		}
	}
	s.c.open--
	if !s.c.closing || e == EndCommitted {
		r := &s.c.request
		*r = RequestRecord{
			Request: s.tx.Request, Txn: s.tx.ID, Client: s.id, Class: s.tx.Class, Ending: e,
			Attempts: s.tx.Attempt, Ops: s.opsDone, Arrival: s.arrival, Begin: s.first,
			LastTry: s.begin, End: now, Parts: s.parts, Reason: s.reason,
		}
		s.c.requestEnded(r)
	}
	s.c.leave(s)
}
