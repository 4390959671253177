package nodes

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"interleave/sim/netsim"
	"interleave/sim/rng"
	"interleave/txnproto"
)

// Commit with the coordinator's log alone
//
// This is the coordinator log protocol of Stamos and Cristian (1990, 1993): a
// participant writes nothing to its log when it votes. Its vote carries its writes, the
// coordinator's one entry holds those of all shards, and each participant logs its own
// when it is told of the decision. That saves a write of the log before the decision, and
// an entry.
//
//	coordinator ─ prepare ─► participant    locked; nothing is logged
//	coordinator ◄─ vote, writes ─ participant
//	coordinator ─► its log                  EntryCommitAll: decided, its own are installed
//	coordinator ─ decide ─► participant ─► its log    EntryInstall
//	coordinator ◄─ ack ─ participant        the decision can be forgotten
//
// The price is at a change of leader. A participant's new leader does not know of
// the branches that its predecessor had prepared, and must not let anybody at their
// rows. So before it serves, it asks every other shard for the commits that it is in and
// has not carried out, with its writes in them, and takes these up as prepared branches.
// A shard that is asked answers when it leads, or is about to: what its log holds is
// enough, as what it does not hold was not decided. It aborts those commits of which it
// is still collecting votes: the branch at the shard that asks is lost, a vote of it under
// way or not.
//
// Two leaders can tell a participant of one commit, and a decision can be carried out
// by an entry of an earlier leader here that the new one finds in its log. A machine
// therefore knows each client's newest commit that was carried out; for that to be
// enough, the operations of a client's next attempt wait for the one before it
// (Host.hold), so that a client's commits come to a shard in their order.
//
// With one shard there is nobody to ask, and nothing of this happens.

// recovery is a leader that does not serve yet.
type recovery struct {
	c       *Cluster
	node    *Node
	shard   txnproto.ShardID
	term    uint64
	answers []recoveryAnswer // by shard
	pending []pendingCommit
}

// recoveryAnswer is what one shard has said so far.
type recoveryAnswer struct {
	told     bool // how many commits there are
	commits  int32
	received int32
}

// pendingCommit is a commit that the recovering shard is in.
type pendingCommit struct {
	info        txnproto.Info
	coordinator txnproto.ShardID
	coord       int32
	puts        []txnproto.Put
}

// startRecovery makes n the leader of s that will serve when it has heard from all.
func (c *Cluster) startRecovery(s txnproto.ShardID, n txnproto.NodeID, term uint64) {
	r := &recovery{c: c, node: c.nodes[n], shard: s, term: term, answers: make([]recoveryAnswer, c.cfg.Shards)}
	c.recovering[s] = r
	r.answers[s].told = true
	for o := range c.recovering {
		other := txnproto.ShardID(o)
		if other == s {
			continue
		}
		r.ask(other)
		if p := c.recovering[o]; p != nil && !p.answers[s].told {
			p.ask(s)
		}
	}
}

// ask asks the leader of another shard, if there is one.
func (r *recovery) ask(other txnproto.ShardID) {
	m := r.c.pool.New(txnproto.MsgRecover)
	m.Shard, m.From, m.Term = other, r.shard, r.term
	m.Key = rng.Hash(r.term, uint64(txnproto.MsgRecover)<<32|uint64(r.shard)<<16|uint64(other))
	r.c.toLeading(r.node.id, m)
}

// toLeading sends m to the node that leads m's shard, serving or not. Without one it
// is lost.
func (c *Cluster) toLeading(from txnproto.NodeID, m *txnproto.Msg) {
	node, ok := c.Leader(m.Shard)
	if r := c.recovering[m.Shard]; r != nil {
		node, ok = r.node.id, true
	}
	if !ok {
		c.pool.Free(m)
		return
	}
	m.Node, m.Peer = node, from
	c.send(m, netsim.Site(from), netsim.Site(node), c.hAtNode, false)
}

// takes handles a message to a leader that does not serve yet, and reports whether it
// is one for it.
func (r *recovery) takes(m *txnproto.Msg) bool {
	switch m.Kind {
	case txnproto.MsgRecover:
		r.tellPending(m)
	case txnproto.MsgPending:
		if m.Term == r.term {
			r.pending = append(r.pending, pendingCommit{m.Tx, m.From, m.Coord, slices.Clone(m.Puts)})
			r.answers[m.From].received++
		}
		r.c.pool.Free(m)
		r.serveIfReady()
	case txnproto.MsgRecovered:
		if a := &r.answers[m.From]; m.Term == r.term && !a.told {
			a.told, a.commits = true, m.Wrote
		}
		r.c.pool.Free(m)
		r.serveIfReady()
	default:
		return false
	}
	return true
}

// serveIfReady begins to serve when everything has been heard.
func (r *recovery) serveIfReady() {
	for i := range r.answers {
		if a := &r.answers[i]; !a.told || a.received < a.commits {
			return
		}
	}
	if r.c.recovering[r.shard] != r {
		return
	}
	r.c.recovering[r.shard] = nil
	r.c.lead(r.shard, r.node.id, r.term, r)
}

// recoverPending takes up the commits that other shards have told of.
func (h *Host) recoverPending(rec *recovery) {
	slices.SortFunc(rec.pending, func(a, b pendingCommit) int { return cmp.Compare(a.info.ID, b.info.ID) })
	last := txnproto.TxnID(0)
	for i := range rec.pending {
		p := &rec.pending[i]
		if p.info.ID == last || h.machine.hasCarried(p.info.Client, p.info.ID) {
			continue // told twice; or an earlier leader has carried it out
		}
		last = p.info.ID
		b := h.newBranch(&p.info)
		b.state = branchPrepared
		b.ranges = true
		b.coordinator, b.coord, b.key = p.coordinator, p.coord, rng.Hash(uint64(p.info.ID), h.term)
		b.tx.Puts = append(b.tx.Puts, p.puts...)
		if r, ok := h.ctl.(txnproto.Recoverer); ok {
			r.Recover(&b.tx)
		}
	}
}

// tellPending answers a shard that recovers: which of the commits that this shard
// coordinates it has a part in.
func (h *Host) tellPending(m *txnproto.Msg) {
	var n int32
	for _, co := range h.coords {
		i := -1
		if co.state != coordFree {
			i = co.participant(m.From)
		}
		if i < 1 {
			continue
		}
		switch co.state {
		case coordVoting:
			h.decideAbort(co, txnproto.LeaderChange)
		case coordLogging, coordDecided:
			if co.voted[i] == voteYes {
				n++
				h.c.tellPending(h.node.id, m, &co.info, co.index, co.puts[i])
			}
		case coordFree:
		default:
			panic("nodes: unknown state of a commit")
		}
	}
	h.c.tellRecovered(h.node.id, m, n)
	h.settle()
}

// tellPending is the same for a leader that does not serve yet.
func (r *recovery) tellPending(m *txnproto.Msg) {
	var n int32
	for _, d := range r.c.machines[r.shard][r.node.id].decisions() {
		at := int32(0)
		for i, s := range d.participants {
			puts := d.remote[at : at+d.remotes[i]]
			at += d.remotes[i]
			if s == m.From {
				n++
				r.c.tellPending(r.node.id, m, &d.info, -1, puts)
			}
		}
	}
	r.c.tellRecovered(r.node.id, m, n)
}

func (c *Cluster) tellPending(from txnproto.NodeID, ask *txnproto.Msg, i *txnproto.Info, coord int32, puts []txnproto.Put) {
	m := c.pool.New(txnproto.MsgPending)
	m.Tx, m.Coord, m.Shard, m.From, m.Term = *i, coord, ask.From, ask.Shard, ask.Term
	m.Puts = append(m.Puts[:0], puts...)
	m.Key = rng.Hash(ask.Key, uint64(i.ID))
	c.toLeading(from, m)
}

// tellRecovered turns a question into the last part of its answer.
func (c *Cluster) tellRecovered(from txnproto.NodeID, m *txnproto.Msg, commits int32) {
	m.Kind, m.Wrote = txnproto.MsgRecovered, commits
	m.Shard, m.From = m.From, m.Shard
	m.Key = rng.Hash(m.Key, uint64(txnproto.MsgRecovered))
	c.toLeading(from, m)
}

// setPuts keeps what participant i has written.
func (co *coord) setPuts(i int, puts []txnproto.Put) {
	for i >= len(co.puts) {
		if len(co.puts) < cap(co.puts) {
			co.puts = co.puts[:len(co.puts)+1] // with the memory of an earlier commit's
			co.puts[len(co.puts)-1] = co.puts[len(co.puts)-1][:0]
		} else {
			co.puts = append(co.puts, nil)
		}
	}
	co.puts[i] = append(co.puts[i][:0], puts...)
}

// carry installs a participant's writes of a commit, once.
func (m *machine) carry(e *Entry) {
	if m.hasCarried(e.Client, e.Txn) {
		e.Puts = e.Puts[:0]
		return
	}
	for int(e.Client) >= len(m.carried) {
		m.carried = append(m.carried, 0)
	}
	m.carried[e.Client] = e.Txn
	m.install(e.Puts, e)
}

// hasCarried reports whether the commit's writes here are installed.
func (m *machine) hasCarried(c txnproto.ClientID, t txnproto.TxnID) bool {
	if int(c) >= len(m.carried) || m.carried[c] < t {
		return false
	}
	return true
}

func appendRemote(b []byte, e *Entry) []byte {
	le := binary.LittleEndian
	if len(e.Remotes) != len(e.Participants) {
		panic(fmt.Sprintf("nodes: %v commits at %d shards with the writes of %d", e.Txn, len(e.Participants), len(e.Remotes)))
	}
	for _, n := range e.Remotes {
		b = le.AppendUint32(b, uint32(n))
	}
	for i := range e.Remote {
		b = appendPut(b, &e.Remote[i])
	}
	return b
}

// remote reads the participants' writes, which end the buffer, and reports whether
// they are well formed.
func (r *reader) remote(e *Entry) bool {
	sum := uint64(0)
	for range e.Participants {
		n := r.u32()
		sum += uint64(n)
		e.Remotes = append(e.Remotes, int32(n))
	}
	if r.bad || sum*putBytes != uint64(len(r.b)) {
		return false
	}
	for range sum {
		e.Remote = append(e.Remote, r.put())
	}
	return true
}
