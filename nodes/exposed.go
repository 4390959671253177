package nodes

import (
	"slices"

	"interleave/txnproto"
)

// Writes that others see before they are committed. The controller keeps them (see
// txnproto.Exposer); the host reads through it, logs the versions it has given them, and
// tells the history of those that are taken back after others have seen them.

// release takes a client's word that its attempt is past its lock point.
func (h *Host) release(m *txnproto.Msg) {
	b := h.find(m.Tx.ID, m.Slot)
	if b == nil {
		return
	}
	switch b.state {
	case branchIdle, branchServing: // the operation that is served is among those ahead
		h.exposer.Shrink(&b.tx, m.Ahead)
		h.settle()
	case branchWaitingOp, branchWaitingPrepare, branchPrepared, branchDead:
	case branchFree:
		panic("nodes: a free branch was found")
	default:
		panic("nodes: unknown branch state")
	}
}

// lostWrites are writes of an attempt that were seen by others when their leader was lost.
type lostWrites struct {
	shard txnproto.ShardID
	txn   txnproto.TxnID
	puts  []txnproto.Put
}

// takeBack tells of the writes of b, which aborts, if others have seen any.
func (h *Host) takeBack(b *branch) {
	seen := h.exposer.Seen(&b.tx)
	if len(h.c.lost) > 0 && h.c.found(h.shard, b.tx.ID) {
		seen = true // under an earlier leader
	}
	if seen && h.c.cfg.Installs != nil {
		h.c.cfg.Installs.TakenBack(h.shard, b.tx.ID, b.tx.Puts)
	}
}

// lose remembers the writes of b, whose leader is lost, if others have seen any. The
// log may hold them all the same.
func (h *Host) lose(b *branch) {
	if h.exposer.Seen(&b.tx) {
		h.c.lost = append(h.c.lost, lostWrites{h.shard, b.tx.ID, slices.Clone(b.tx.Puts)})
	}
}

// found takes what is remembered of txn off the list of what was lost, and reports whether
// it was there: its end is known.
func (c *Cluster) found(s txnproto.ShardID, txn txnproto.TxnID) bool {
	n := len(c.lost)
	c.lost = slices.DeleteFunc(c.lost, func(l lostWrites) bool { return l.shard == s && l.txn == txn })
	return len(c.lost) < n
}

// TakeBackLost tells the history of the writes that others had seen and that were lost
// with leaders. REQUIRES: the cluster is quiet and the replication has settled.
func (c *Cluster) TakeBackLost() {
	for _, l := range c.lost {
		if c.cfg.Installs != nil {
			c.cfg.Installs.TakenBack(l.shard, l.txn, l.puts)
		}
	}
	c.lost = nil
}
