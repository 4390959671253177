package nodes

import (
	"fmt"
	"time"

	"interleave/sim/event"
	"interleave/sim/rng"
	"interleave/txnproto"
)

// coordState is how far a commit has come at its coordinator.
type coordState uint8

const (
	coordFree     coordState = iota
	coordVoting              // asks the participants, itself included
	coordStamping            // all have voted yes; its timestamp is on the way from the oracle
	coordLogging             // the decision to commit is on the way to the log
	coordDecided             // committed; participants have yet to say that they carried it out
)

// coord is one commit at its coordinator. With a single participant, itself,
// it is one log entry; with several, two-phase commit with presumed abort
// (Mohan, Lindsay, Obermarck 1986): only the decision to commit is logged, and
// what no log knows was aborted. A participant that only read says so in its
// vote and is left out of the second phase.
type coord struct {
	state    coordState
	index    int32
	info     txnproto.Info
	opSeq    int32
	key      uint64
	own      *branch
	branches []txnproto.Branch
	voted    []vote           // by index in branches
	puts     [][]txnproto.Put // likewise: the participants' writes, where the coordinator logs them
	waiting  int              // votes outstanding
	unacked  int
	readOnly bool  // the transaction wrote nowhere
	wrote    int32 // rows written, over all participants
	agreed   txnproto.Vote
	parts    txnproto.Parts
	ownDone  event.Time         // when the own branch was prepared
	decided  event.Time         // when the last vote was in
	stamp    txnproto.Timestamp // the greatest of the branches' prepareTS
}

// vote is a participant's answer.
type vote uint8

const (
	voteNone     vote = iota // outstanding
	voteYes                  // prepared; it wrote
	voteReadOnly             // prepared; it only read and keeps what protects its reads
	voteDropped              // it only read and has let go
	voteNo                   // aborted there
	voteAcked                // it wrote and has carried out the decision
)

func (h *Host) newCoord() *coord {
	if n := len(h.freeCoords); n > 0 {
		co := h.coords[h.freeCoords[n-1]]
		h.freeCoords = h.freeCoords[:n-1]
		index, branches, voted, puts := co.index, co.branches[:0], co.voted[:0], co.puts[:0]
		*co = coord{} // in place: a literal with these fields would be built elsewhere and copied
		co.index, co.branches, co.voted, co.puts = index, branches, voted, puts
		return co
	}
	co := &coord{index: int32(len(h.coords))}
	h.coords = append(h.coords, co)
	return co
}

func (h *Host) freeCoord(co *coord) {
	co.state = coordFree
	co.info.ID = 0
	h.freeCoords = append(h.freeCoords, co.index)
}

// coordOf returns the commit of txn, or nil; index is where it was.
func (h *Host) coordOf(txn txnproto.TxnID, index int32) *coord {
	if index >= 0 {
		if int(index) < len(h.coords) && h.coords[index].info.ID == txn {
			return h.coords[index]
		}
		return nil
	}
	for _, co := range h.coords {
		if co.info.ID == txn {
			return co
		}
	}
	return nil
}

// commit starts a commit that the client asks this shard to coordinate.
func (h *Host) commit(m *txnproto.Msg) {
	b := h.find(m.Tx.ID, m.Slot)
	co := h.newCoord()
	co.info, co.opSeq, co.key, co.parts = m.Tx, m.OpSeq, m.Key, m.Parts
	co.branches = append(co.branches, m.Branches...)
	co.readOnly = true
	for i := range co.branches {
		co.readOnly = co.readOnly && !co.branches[i].Wrote
	}
	for range co.branches {
		co.voted = append(co.voted, voteNone)
	}
	co.state = coordVoting
	co.waiting = len(co.branches)
	if b != nil {
		b.cpu += m.Service
	}
	h.c.pool.Free(m)
	if b == nil || b.state == branchDead {
		reason := txnproto.LeaderChange
		if b != nil {
			reason = b.reason
			h.freeBranch(b, txnproto.Aborted)
		}
		co.voted[0] = voteNo
		co.waiting--
		h.decideAbort(co, reason)
		h.settle()
		return
	}
	co.own = b
	b.own, b.coordinator, b.coord = true, h.shard, co.index
	b.tx.Alone = len(co.branches) == 1 && !h.asksOracle()
	txn := co.info.ID
	h.askPrepare(b)
	h.settle()
	// The own vote may have ended it already: asking the others would be in vain.
	if co.info.ID == txn && co.state == coordVoting {
		h.sendPrepares(co)
		h.settle()
	}
}

// sendPrepares asks the other participants. One without a leader has lost its
// branch with it, and would never answer.
func (h *Host) sendPrepares(co *coord) {
	for i := 1; i < len(co.branches); i++ {
		if _, ok := h.c.Leader(co.branches[i].Shard); !ok {
			h.takeVote(co, i, voteNo, txnproto.LeaderChange)
			return
		}
	}
	for i := 1; i < len(co.branches); i++ {
		m := h.about(txnproto.MsgPrepare, co, co.branches[i].Shard)
		m.ReadOnly = co.readOnly
		m.Slot = co.branches[i].Slot
		h.c.toShard(h.node.id, m.Shard, m)
	}
}

// about returns a message about a commit, to the host of another shard.
func (h *Host) about(k txnproto.MsgKind, co *coord, to txnproto.ShardID) *txnproto.Msg {
	m := h.c.pool.New(k)
	m.Tx, m.Coord, m.Shard, m.From, m.Slot = co.info, co.index, to, h.shard, -1
	m.Key = rng.Hash(co.key, uint64(k)<<32|uint64(to))
	return m
}

// askPrepare asks the controller whether the branch may commit.
func (h *Host) askPrepare(b *branch) {
	v := h.ctl.Prepare(&b.tx)
	if v.IsWaiting() {
		b.state, b.waitSince = branchWaitingPrepare, h.Now()
		return
	}
	h.prepared(b, v, 0)
}

// prepared takes the controller's verdict on a branch's prepare, for which it
// waited d: the vote.
func (h *Host) prepared(b *branch, v txnproto.Verdict, d time.Duration) {
	reason, bad := v.Aborted()
	if b.own {
		co := h.coords[b.coord]
		co.parts[txnproto.PartLockWait] += d
		co.ownDone = h.Now()
		if bad {
			co.own = nil
			h.endBranch(b, txnproto.Aborted)
			h.takeVote(co, 0, voteNo, reason)
			return
		}
		b.state = branchPrepared
		co.stamp = max(co.stamp, b.prepareTS)
		if reason := h.agree(co, b.tx.Vote); reason != txnproto.NoReason {
			h.takeVote(co, 0, voteNo, reason)
			return
		}
		h.takeVote(co, 0, voteYes, txnproto.NoReason)
		return
	}
	if bad {
		h.vote(b, txnproto.Aborted, false, reason)
		h.endBranch(b, txnproto.Aborted)
		return
	}
	b.state = branchPrepared
	if h.c.coordinatorLog && !h.needsNoLog(b) {
		h.vote(b, txnproto.Committed, false, txnproto.NoReason)
		return
	}
	if h.needsNoLog(b) {
		h.vote(b, txnproto.Committed, true, txnproto.NoReason)
		if h.c.cfg.Protocol.DropReadOnly {
			h.endBranch(b, txnproto.Committed)
		}
		return
	}
	e := h.entry(EntryPrepare, &b.info)
	e.Coordinator = b.coordinator
	e.Puts = append(e.Puts, b.tx.Puts...)
	e.Tag = uint64(b.tx.Slot)
	h.propose(e)
}

// needsNoLog reports whether a prepared branch may be forgotten with its leader.
// One that wrote may not. One that only read may, when its protocol needs no
// protection of reads after prepare (none that releases early does), or when the
// transaction wrote nowhere: then it takes effect at its first validation, when all
// it had read was current. A reader whose transaction writes elsewhere must stay
// protected until the end:
//
//	T1 reads x, writes y; prepares at x's shard, whose leader dies and forgets it
//	T2 writes x and commits; T3 reads the new x and the old y and commits
//	T1 commits: T1 before T2 before T3 before T1
func (h *Host) needsNoLog(b *branch) bool {
	return len(b.tx.Puts) == 0 && (h.c.cfg.Protocol.DropReadOnly || b.readOnly || h.exposer != nil)
}

// vote tells the coordinator.
func (h *Host) vote(b *branch, o txnproto.Outcome, readOnly bool, reason txnproto.AbortReason) {
	m := h.c.pool.New(txnproto.MsgVote)
	m.Tx, m.Coord, m.Slot = b.info, b.coord, int32(b.tx.Slot)
	m.Shard, m.From = b.coordinator, h.shard
	m.Outcome, m.ReadOnly, m.Reason = o, readOnly, reason
	m.Wrote, m.Vote = int32(len(b.tx.Puts)), b.tx.Vote
	if h.c.coordinatorLog && o == txnproto.Committed {
		m.Puts = append(m.Puts[:0], b.tx.Puts...)
	}
	m.Tx.CommitTS = b.prepareTS
	m.Key = rng.Hash(b.key, uint64(txnproto.MsgVote)<<32|uint64(h.shard))
	h.c.toShard(h.node.id, m.Shard, m)
}

// prepare takes a coordinator's question.
func (h *Host) prepare(m *txnproto.Msg) {
	b := h.find(m.Tx.ID, m.Slot)
	if b == nil || b.state == branchDead {
		reason := txnproto.LeaderChange
		if b != nil {
			reason = b.reason
			h.freeBranch(b, txnproto.Aborted)
		}
		m.Kind, m.Outcome, m.Reason = txnproto.MsgVote, txnproto.Aborted, reason
		m.Shard, m.From, m.Slot = m.From, m.Shard, -1
		m.Key = rng.Hash(m.Key, 1)
		h.c.toShard(h.node.id, m.Shard, m)
		return
	}
	b.cpu += m.Service
	b.coordinator, b.coord, b.key = m.From, m.Coord, m.Key
	b.readOnly = m.ReadOnly
	h.c.pool.Free(m)
	h.askPrepare(b)
	h.settle()
}

// voteMsg takes a participant's vote.
func (h *Host) voteMsg(m *txnproto.Msg) {
	co := h.coordOf(m.Tx.ID, m.Coord)
	if co == nil || co.state != coordVoting {
		// A commit that is over, or one that a former leader began.
		if m.Outcome == txnproto.Committed && !(m.ReadOnly && h.c.cfg.Protocol.DropReadOnly) {
			h.answerInquiry(m)
			return
		}
		h.c.pool.Free(m)
		return
	}
	i := co.participant(m.From)
	if i < 0 {
		panic(fmt.Sprintf("nodes: at %v: %v votes on %v without a part in it", h.Now(), m.From, co.info.ID))
	}
	co.branches[i].Slot = m.Slot
	v := voteYes
	switch {
	case m.Outcome == txnproto.Aborted:
		v = voteNo
	case m.ReadOnly && h.c.cfg.Protocol.DropReadOnly:
		v = voteDropped
	case m.ReadOnly:
		v = voteReadOnly
	}
	reason := m.Reason
	co.wrote += m.Wrote
	if h.c.coordinatorLog {
		co.setPuts(i, m.Puts)
	}
	co.stamp = max(co.stamp, m.Tx.CommitTS)
	merge := v != voteNo && co.voted[i] == voteNone
	vote := m.Vote
	h.c.pool.Free(m)
	if merge {
		if r := h.agree(co, vote); r != txnproto.NoReason {
			h.decideAbort(co, r) // it has voted yes, and is told
			h.settle()
			return
		}
	}
	h.takeVote(co, i, v, reason)
	h.settle()
}

// agree merges what a vote carries and returns why the commit must end, if it must.
func (h *Host) agree(co *coord, vote txnproto.Vote) txnproto.AbortReason {
	if h.c.cfg.Protocol.Agree == nil {
		return txnproto.NoReason
	}
	var reason txnproto.AbortReason
	co.agreed, reason = h.c.cfg.Protocol.Agree(co.agreed, vote)
	return reason
}

// participant returns the place of s among the branches, or -1.
func (co *coord) participant(s txnproto.ShardID) int {
	for i := range co.branches {
		if co.branches[i].Shard == s {
			return i
		}
	}
	return -1
}

// takeVote counts one vote and decides when it can.
func (h *Host) takeVote(co *coord, i int, v vote, reason txnproto.AbortReason) {
	if co.voted[i] != voteNone {
		return
	}
	co.voted[i] = v
	co.waiting--
	if v == voteNo {
		h.decideAbort(co, reason)
		return
	}
	if co.waiting == 0 {
		h.decideCommit(co)
	}
}

// decideCommit logs the decision, once it has its timestamp, or, when nobody wrote,
// carries it out at once.
func (h *Host) decideCommit(co *coord) {
	co.decided = h.Now()
	co.parts[txnproto.PartCommit] = co.decided.Sub(co.ownDone)
	co.wrote += int32(len(co.own.tx.Puts))
	if co.wrote == 0 {
		h.carryOut(co)
		return
	}
	switch {
	case h.asksOracle():
		h.askOracle(co)
		return
	case h.c.cfg.ClockCommit:
		h.setCommitTS(co, co.stamp)
	case h.c.cfg.Protocol.Versioning == txnproto.VersionByCommit:
		h.setCommitTS(co, h.c.cfg.NewTS())
	}
	h.logDecision(co)
}

func (h *Host) setCommitTS(co *coord, ts txnproto.Timestamp) {
	co.info.CommitTS, co.own.tx.CommitTS = ts, ts
}

// logDecision logs the decision to commit.
func (h *Host) logDecision(co *coord) {
	co.state = coordLogging
	e := h.entry(EntryCommit, &co.info)
	e.Puts = append(e.Puts, co.own.tx.Puts...)
	for i := 1; i < len(co.branches); i++ {
		if co.voted[i] == voteYes {
			e.Participants = append(e.Participants, co.branches[i].Shard)
			if h.c.coordinatorLog {
				e.Kind = EntryCommitAll
				e.Remote, e.Remotes = append(e.Remote, co.puts[i]...), append(e.Remotes, int32(len(co.puts[i])))
			}
		}
	}
	e.Tag = uint64(co.index)
	h.propose(e)
}

// logged is called when the decision is in the log and this shard's writes are installed.
func (h *Host) logged(co *coord, a *Applied) {
	disk := min(a.SyncedAt, h.Now()).Sub(co.decided)
	co.parts[txnproto.PartDisk] = disk
	co.parts[txnproto.PartReplication] = h.Now().Sub(co.decided) - disk
	co.own.disk += a.DiskShare
	h.carryOut(co)
}

// carryOut ends the own branch, tells the client and the participants.
func (h *Host) carryOut(co *coord) {
	co.own.tx.Agreed = co.agreed
	h.endBranch(co.own, txnproto.Committed)
	co.own = nil
	h.tellClient(co, txnproto.Committed, txnproto.NoReason)
	co.state = coordDecided
	co.unacked = 0
	for i := 1; i < len(co.branches); i++ {
		switch co.voted[i] {
		case voteYes:
			co.unacked++
			h.sendDecide(co, i, txnproto.Committed)
		case voteReadOnly:
			h.sendDecide(co, i, txnproto.Committed)
		case voteDropped:
		case voteNone, voteNo, voteAcked:
			panic("nodes: committed against a vote")
		default:
			panic("nodes: unknown vote")
		}
	}
	if co.unacked == 0 {
		h.freeCoord(co)
	}
}

// decideAbort ends the commit: whoever has not voted no is told.
func (h *Host) decideAbort(co *coord, reason txnproto.AbortReason) {
	h.tellClient(co, txnproto.Aborted, reason)
	if co.own != nil {
		if co.own.state == branchWaitingPrepare {
			h.bookWait(co.own)
		}
		h.endBranch(co.own, txnproto.Aborted)
		co.own = nil
	}
	for i := 1; i < len(co.branches); i++ {
		if co.voted[i] != voteNo && co.voted[i] != voteDropped {
			h.sendDecide(co, i, txnproto.Aborted)
		}
	}
	h.freeCoord(co)
}

func (h *Host) tellClient(co *coord, o txnproto.Outcome, reason txnproto.AbortReason) {
	m := h.c.pool.New(txnproto.MsgOutcome)
	m.Tx, m.OpSeq, m.Parts, m.Outcome, m.Reason = co.info, co.opSeq, co.parts, o, reason
	m.Wrote = co.wrote
	m.Key = rng.Hash(co.key, uint64(txnproto.MsgOutcome))
	h.c.toClient(h.node.id, m)
}

func (h *Host) sendDecide(co *coord, i int, o txnproto.Outcome) {
	m := h.about(txnproto.MsgDecide, co, co.branches[i].Shard)
	m.Slot, m.Outcome, m.Vote = co.branches[i].Slot, o, co.agreed
	h.c.toShard(h.node.id, m.Shard, m)
}

// decide takes the coordinator's decision.
func (h *Host) decide(m *txnproto.Msg) {
	b := h.find(m.Tx.ID, m.Slot)
	if b == nil && m.Slot >= 0 && (h.machine.prepared.get(m.Tx.ID) != nil || h.c.coordinatorLog) {
		b = h.find(m.Tx.ID, -1) // recovered: it has another slot since
	}
	if b == nil {
		h.ackUnknown(m)
		return
	}
	outcome := m.Outcome
	b.tx.CommitTS, b.info.CommitTS = m.Tx.CommitTS, m.Tx.CommitTS
	b.tx.Agreed = m.Vote
	b.coord, b.key = m.Coord, m.Key // of the coordinator's leader of now: it waits for the answer
	b.cpu += m.Service
	h.c.pool.Free(m)
	switch b.state {
	case branchPrepared:
		h.finishPrepared(b, outcome)
	case branchWaitingPrepare:
		h.bookWait(b)
		h.mustAbort(b, outcome)
		h.endBranch(b, txnproto.Aborted)
	case branchIdle: // the abort has overtaken the question
		h.mustAbort(b, outcome)
		h.endBranch(b, txnproto.Aborted)
	case branchDead:
		h.freeBranch(b, txnproto.Aborted)
	case branchServing, branchWaitingOp, branchFree:
		panic(fmt.Sprintf("nodes: at %v: %v: decision on %v during an operation", h.Now(), h.shard, b.tx.ID))
	default:
		panic("nodes: unknown branch state")
	}
	h.settle()
}

func (h *Host) mustAbort(b *branch, o txnproto.Outcome) {
	if o != txnproto.Aborted {
		panic(fmt.Sprintf("nodes: at %v: %v: %v committed without this shard's vote", h.Now(), h.shard, b.tx.ID))
	}
}

// finishPrepared ends a prepared branch: through the log when it wrote.
func (h *Host) finishPrepared(b *branch, o txnproto.Outcome) {
	if h.needsNoLog(b) {
		h.endBranch(b, o)
		return
	}
	if b.finishing {
		return // told twice
	}
	if h.c.coordinatorLog && o == txnproto.Aborted {
		h.endBranch(b, o) // the log has nothing of it
		return
	}
	b.finishing = true
	e := h.entry(EntryFinish, &b.info)
	if h.c.coordinatorLog {
		e.Kind, e.Puts = EntryInstall, append(e.Puts, b.tx.Puts...)
	}
	e.Outcome = o
	e.Tag = uint64(b.tx.Slot)
	h.propose(e)
}

// ackUnknown answers a decision about a branch that has ended here.
func (h *Host) ackUnknown(m *txnproto.Msg) {
	if m.Outcome != txnproto.Committed {
		h.c.pool.Free(m)
		return
	}
	h.ack(m)
}

// ack turns m around into the word that its decision is carried out.
func (h *Host) ack(m *txnproto.Msg) {
	m.Kind = txnproto.MsgAck
	m.Shard, m.From = m.From, h.shard
	m.Key = rng.Hash(m.Key, uint64(txnproto.MsgAck)<<32|uint64(h.shard))
	h.c.toShard(h.node.id, m.Shard, m)
}

// acked takes a participant's word that the commit is carried out there.
func (h *Host) acked(m *txnproto.Msg) {
	if co := h.coordOf(m.Tx.ID, m.Coord); co != nil && co.state == coordDecided {
		// A participant that only read has nothing to carry out; a commit recovered
		// from the log does not even know of it.
		if i := co.participant(m.From); i >= 0 && co.voted[i] == voteYes {
			co.voted[i] = voteAcked
			co.unacked--
			if co.unacked == 0 {
				h.forget = append(h.forget, co.info.ID)
				h.freeCoord(co)
			}
		}
	}
	h.c.pool.Free(m)
}

// entry returns an entry about an attempt.
func (h *Host) entry(k EntryKind, i *txnproto.Info) *Entry {
	e := h.c.newEntry(k)
	e.setInfo(i)
	e.Versioned = h.exposer != nil
	return e
}

// propose hands e to the log, with the decisions that may be forgotten.
func (h *Host) propose(e *Entry) {
	if h.c.cfg.Protocol.Versioning.KeepsOld() {
		e.Watermark = h.c.oldestTS()
	}
	e.Forget = append(e.Forget, h.forget...)
	h.forget = h.forget[:0]
	h.c.repl.Propose(h.shard, h.node.id, e)
}

// applied takes the word that an entry which this host proposed is in the log
// and applied.
func (h *Host) applied(a *Applied) {
	e := a.Entry
	switch e.Kind {
	case EntryNoop:
		return
	case EntryCommit, EntryCommitAll:
		if co := h.coordOf(e.Txn, int32(e.Tag)); co != nil && co.state == coordLogging {
			h.logged(co, a)
		}
	case EntryPrepare:
		if b := h.find(e.Txn, int32(e.Tag)); b != nil && b.state == branchPrepared {
			b.disk += a.DiskShare
			if !b.finishing {
				h.vote(b, txnproto.Committed, false, txnproto.NoReason)
			}
		}
	case EntryFinish, EntryInstall:
		h.finished(a)
	case EntryBatch:
		h.batchLogged(a)
	default:
		panic("nodes: unknown entry kind")
	}
	h.settle()
}

// finished ends a participant's branch whose decision is in the log.
func (h *Host) finished(a *Applied) {
	e := a.Entry
	b := h.find(e.Txn, int32(e.Tag))
	if b == nil {
		return
	}
	b.disk += a.DiskShare
	info, coordinator, coord, key := b.info, b.coordinator, b.coord, b.key
	h.endBranch(b, e.Outcome)
	if e.Outcome == txnproto.Committed {
		m := h.c.pool.New(txnproto.MsgAck)
		m.Tx, m.Coord, m.From, m.Slot, m.Key = info, coord, coordinator, -1, key
		h.ack(m)
	}
}
