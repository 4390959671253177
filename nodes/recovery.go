package nodes

import (
	"interleave/sim/rng"
	"interleave/txnproto"
)

// What survives a leader is in the log: prepared branches, decisions not yet
// carried out everywhere, and each client's newest commit. A new leader's host
// starts from these. A participant in doubt asks its coordinator; the
// coordinator answers from its log, and what its log does not know was aborted.
// That is safe because a host leads only after every entry of its predecessors
// that can ever be committed has been applied.

// takeOver prepares a new host from its machine.
func (h *Host) takeOver(rec *recovery) {
	for _, p := range h.machine.inDoubt() {
		b := h.newBranch(&p.info)
		b.state = branchPrepared
		b.ranges = true // what it read is not known: it may meet anything
		b.coordinator, b.coord, b.key = p.coordinator, -1, rng.Hash(uint64(p.info.ID), h.term)
		b.tx.Puts = append(b.tx.Puts, p.puts...)
		if r, ok := h.ctl.(txnproto.Recoverer); ok {
			r.Recover(&b.tx)
		}
	}
	if rec != nil {
		h.recoverPending(rec)
	}
	for _, d := range h.machine.decisions() {
		co := h.newCoord()
		co.state, co.info, co.key = coordDecided, d.info, rng.Hash(uint64(d.info.ID), h.term)
		co.branches = append(co.branches, txnproto.Branch{Shard: h.shard, Slot: -1})
		co.voted = append(co.voted, voteDropped)
		at := int32(0)
		for i, s := range d.participants {
			if len(d.remotes) > 0 {
				co.setPuts(i+1, d.remote[at:at+d.remotes[i]])
				at += d.remotes[i]
			}
			co.branches = append(co.branches, txnproto.Branch{Shard: s, Slot: -1})
			co.voted = append(co.voted, voteYes)
			co.unacked++
		}
	}
	h.settle()
}

// chase asks about every branch in doubt and repeats every decision that is
// not carried out, as far as the other side is shard peer (all when peer is -1).
func (h *Host) chase(peer txnproto.ShardID) {
	for _, b := range h.branches {
		if b.state == branchPrepared && !b.own && !b.finishing && (peer < 0 || b.coordinator == peer) {
			h.inquire(b)
		}
	}
	for _, co := range h.coords {
		if co.state != coordDecided {
			continue
		}
		for i := 1; i < len(co.branches); i++ {
			if co.voted[i] == voteYes && (peer < 0 || co.branches[i].Shard == peer) {
				co.branches[i].Slot = -1
				h.sendDecide(co, i, txnproto.Committed)
			}
		}
	}
}

// inquire asks the coordinator how a prepared branch shall end.
func (h *Host) inquire(b *branch) {
	m := h.c.pool.New(txnproto.MsgInquire)
	m.Tx, m.Coord, m.Slot = b.info, -1, int32(b.tx.Slot)
	m.Shard, m.From = b.coordinator, h.shard
	m.Key = rng.Hash(b.key, uint64(txnproto.MsgInquire)<<32|uint64(h.shard))
	h.c.toShard(h.node.id, m.Shard, m)
}

// answerInquiry tells a participant in doubt the outcome, if there is one.
func (h *Host) answerInquiry(m *txnproto.Msg) {
	co := h.coordOf(m.Tx.ID, -1)
	outcome := txnproto.Aborted
	switch {
	case co != nil && co.state != coordDecided:
		h.c.pool.Free(m) // it will hear
		return
	case co != nil:
		outcome, m.Tx = txnproto.Committed, co.info
	case h.machine.committed(m.Tx.Client, m.Tx.Request, m.Tx.ID):
		outcome = txnproto.Committed
	}
	m.Kind, m.Outcome = txnproto.MsgDecide, outcome
	m.Coord = -1
	m.Shard, m.From = m.From, h.shard
	m.Key = rng.Hash(m.Key, uint64(txnproto.MsgDecide))
	h.c.toShard(h.node.id, m.Shard, m)
}

// status answers a client that has not heard how its commit ended.
func (h *Host) status(m *txnproto.Msg) {
	co := h.coordOf(m.Tx.ID, -1)
	switch {
	case h.machine.committed(m.Tx.Client, m.Tx.Request, m.Tx.ID) || co != nil && co.state == coordDecided:
		m.Outcome, m.Wrote = txnproto.Committed, -1 // how much is no longer known
	case co != nil:
		m.Outcome = txnproto.Undecided
	default:
		m.Outcome, m.Reason = txnproto.Aborted, txnproto.LeaderChange
		h.dropBranches(m)
	}
	m.Kind = txnproto.MsgOutcome
	m.Key = rng.Hash(m.Key, uint64(txnproto.MsgOutcome))
	h.c.toClient(h.node.id, m)
}

// dropBranches aborts what an attempt, whose coordinator was lost before it
// decided, still holds at the other shards.
func (h *Host) dropBranches(m *txnproto.Msg) {
	for i := range m.Branches {
		br := &m.Branches[i]
		if br.Shard == h.shard {
			continue
		}
		d := h.c.pool.New(txnproto.MsgDecide)
		d.Tx, d.Coord, d.Shard, d.From, d.Slot, d.Outcome = m.Tx, -1, br.Shard, h.shard, br.Slot, txnproto.Aborted
		d.Key = rng.Hash(m.Key, uint64(txnproto.MsgDecide)<<32|uint64(br.Shard))
		h.c.toShard(h.node.id, br.Shard, d)
	}
}

// peerLost is called a while after shard lost its leader: commits that still
// wait for its vote are given up.
func (h *Host) peerLost(shard txnproto.ShardID) {
	for _, co := range h.coords {
		if co.state != coordVoting {
			continue
		}
		for i := 1; i < len(co.branches); i++ {
			if co.branches[i].Shard == shard && co.voted[i] == voteNone {
				// Its new leader may have recovered the branch: it must be told too.
				h.decideAbort(co, txnproto.LeaderChange)
				break
			}
		}
	}
	h.settle()
}

// drop gives up an operation that waits while the leadership ends.
func (h *Host) drop(m *txnproto.Msg) {
	if h.node.down {
		h.c.pool.Free(m)
		return
	}
	h.refuse(m, txnproto.LeaderChange)
}

// stop ends the leadership: nothing more is done here. When the node lives on,
// clients that wait for it are told; those of a node that is down find out by
// their timeout.
func (h *Host) stop() {
	h.stopped = true
	for i := range h.scouts {
		h.node.work.WastedCPU += h.scouts[i].cpu
	}
	for _, b := range h.branches {
		if b.state != branchFree && b.state != branchDead && h.exposer != nil {
			h.lose(b)
		}
		if b.state != branchFree {
			h.node.work.WastedCPU += b.cpu
			h.node.work.WastedDisk += b.disk
		}
		if b.msg != nil {
			h.drop(b.msg)
			b.msg = nil
		}
		for _, o := range b.held {
			h.drop(o.m)
		}
		b.held = b.held[:0]
	}
	if h.node.down {
		return
	}
	for _, co := range h.coords {
		if co.state == coordVoting || co.state == coordStamping || co.state == coordLogging {
			h.tellClient(co, txnproto.Undecided, txnproto.NoReason)
		}
	}
}
