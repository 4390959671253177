package nodes

import (
	"fmt"
	"time"

	"interleave/sim/station"
	"interleave/txnproto"
)

// Node is a machine: processors, a log disk, and the replicas placed on it.
type Node struct {
	c     *Cluster
	id    txnproto.NodeID
	cpu   *station.CPU
	disk  *station.Disk
	down  bool
	epoch uint32 // counts crashes: what was being served before one is void
	work  Work
}

// receive takes a message off the network: it waits for a processor and is
// served. Messages that cost no processor time are handled at once.
func (n *Node) receive(m *txnproto.Msg) {
	if n.down {
		n.c.undelivered(m)
		return
	}
	if m.Kind == txnproto.MsgOp {
		if h := n.leads(m.Shard); h != nil {
			h.arriveOp(m)
			h.machine.store.prefetch(m.Op.Key)
		}
	}
	d := n.c.service(m)
	m.Epoch = n.epoch
	m.Service = d
	if d == 0 {
		n.served(m)
		return
	}
	now := n.c.loop.Now()
	start, done := n.cpu.Submit(d)
	m.Parts[txnproto.PartCPUQueue] += start.Sub(now)
	m.Parts[txnproto.PartCPUService] += d
	n.c.loop.At(done, n.c.hServed, m.Index())
}

// leads returns this node's host of shard, or nil.
func (n *Node) leads(s txnproto.ShardID) *Host {
	if h := n.c.hosts[s]; h != nil && h.node == n {
		return h
	}
	return nil
}

// served handles a message that the processor is done with.
func (n *Node) served(m *txnproto.Msg) {
	if m.Epoch != n.epoch || n.down {
		n.c.pool.Free(m) // the node crashed meanwhile; its clients have been told
		return
	}
	h := n.leads(m.Shard)
	if h == nil {
		if r := n.c.recovering[m.Shard]; r != nil && r.node == n && r.takes(m) {
			return
		}
		n.notLeader(m)
		return
	}
	switch m.Kind {
	case txnproto.MsgOp:
		h.op(m)
	case txnproto.MsgCommit:
		h.commit(m)
	case txnproto.MsgAbort:
		h.abort(m)
		n.c.pool.Free(m)
	case txnproto.MsgRelease:
		h.release(m)
		n.c.pool.Free(m)
	case txnproto.MsgStatus:
		h.status(m)
	case txnproto.MsgPrepare:
		h.prepare(m)
	case txnproto.MsgVote:
		h.voteMsg(m)
	case txnproto.MsgDecide:
		h.decide(m)
	case txnproto.MsgAck:
		h.acked(m)
	case txnproto.MsgInquire:
		h.answerInquiry(m)
	case txnproto.MsgRecover:
		h.tellPending(m)
	case txnproto.MsgPending, txnproto.MsgRecovered:
		n.c.pool.Free(m) // for an earlier leader
	case txnproto.MsgTimestampReply:
		h.stamped(m)
	case txnproto.MsgControl:
		h.control(m)
		n.c.pool.Free(m)
	default:
		panic(fmt.Sprintf("nodes: at %v: %v: message of kind %v", n.c.loop.Now(), n.id, m.Kind))
	}
}

// notLeader answers what reaches a node that does not lead the shard (any more).
func (n *Node) notLeader(m *txnproto.Msg) {
	switch m.Kind {
	case txnproto.MsgOp:
		m.Kind, m.Reason = txnproto.MsgReply, txnproto.LeaderChange
		n.c.toClient(n.id, m)
	case txnproto.MsgCommit, txnproto.MsgStatus:
		// Whether an earlier leader has committed it is not known here: ask on.
		m.Kind, m.Outcome = txnproto.MsgOutcome, txnproto.Undecided
		n.c.toClient(n.id, m)
	default:
		n.c.pool.Free(m) // recovery asks again
	}
}

// Work is processor and disk time by what became of the attempt it was spent on:
// it committed, it was aborted, or its program rolled it back.
type Work struct {
	UsefulCPU, WastedCPU, UsefulDisk, WastedDisk time.Duration
	RolledBackCPU, RolledBackDisk                time.Duration
}
