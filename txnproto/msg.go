package txnproto

import (
	"time"

	"interleave/sim/event"
)

// MsgKind is what a message is for; reports count messages and bytes by it.
type MsgKind uint8

// The messages. Those of replication are sent by the replication, not as Msg.
const (
	MsgOp             MsgKind = iota // client → leader: run an operation
	MsgReply                         // leader → client: what it found, or that the attempt is aborted
	MsgCommit                        // client → coordinator: commit
	MsgOutcome                       // coordinator → client: how it ended
	MsgAbort                         // client → leader: the attempt is over
	MsgStatus                        // client → coordinator: how did it end?
	MsgKilled                        // leader → client: a controller aborted the attempt
	MsgPrepare                       // coordinator → participant
	MsgVote                          // participant → coordinator
	MsgDecide                        // coordinator → participant: the outcome
	MsgAck                           // participant → coordinator: carried out
	MsgInquire                       // participant in doubt → coordinator
	MsgControl                       // controller → controller
	MsgAppend                        // replication: leader → follower
	MsgAppendReply                   // replication: follower → leader
	MsgElection                      // replication: votes
	MsgSnapshot                      // replication: state transfer
	MsgRelease                       // client → leader: the attempt is past its lock point
	MsgRecover                       // new leader → other shards: which commits am I in?
	MsgPending                       // other shard → new leader: one of them
	MsgRecovered                     // other shard → new leader: how many they are
	MsgTimestamp                     // client or coordinator → oracle: a timestamp
	MsgTimestampReply                // oracle → client or coordinator: Tx.TS is it
	NumMsgKinds
)

// MsgKindNames are the kinds' names in reports, indexed by MsgKind.
var MsgKindNames = [NumMsgKinds]string{
	"op", "reply", "commit", "outcome", "abort", "status", "killed", "prepare", "vote",
	"decide", "ack", "inquire", "control", "append", "append-reply", "election", "snapshot",
	"release", "recover", "pending", "recovered", "timestamp", "timestamp-reply",
}

// String returns the kind's name in reports.
func (k MsgKind) String() string { return MsgKindNames[k] }

// Info is what every node is told about an attempt that reaches it.
type Info struct {
	ID      TxnID
	Request RequestID
	Client  ClientID
	Class   ClassID
	// ReadOnly: see Txn.ReadOnly.
	ReadOnly bool
	Attempt  int
	Hits     int
	TS       Timestamp
	FirstTS  Timestamp
	// CommitTS is drawn when the commit is decided; see Txn.CommitTS.
	CommitTS Timestamp
	// Place: see Txn.Place.
	Place Place
}

// Branch is one shard's share in an attempt, as its client knows it.
type Branch struct {
	Shard ShardID
	Slot  int32 // at the shard's host; -1: not known yet
	Wrote bool
}

// Msg is a message between a client and a node, or between two nodes. Messages
// come from a Pool and go back to it; whoever has handled one frees it or sends
// it on.
type Msg struct {
	Kind      MsgKind
	Outcome   Outcome // of a vote or a decision, as is ReadOnly
	ReadOnly  bool
	LockPoint bool // the attempt needs no lock beyond those that it holds once the operation is done; see Extra.Ahead
	index     uint32
	Epoch     uint32 // of the receiving node, when it began to serve the message
	Node      NodeID // the node it goes to or comes from
	Peer      NodeID // node to node: the sender
	Shard     ShardID
	From      ShardID // node to node: the sender's shard
	Slot      int32   // of the branch at the receiving host, or of the sender's in a reply
	Coord     int32   // of the commit at its coordinator: prepare, vote, decide, ack, timestamp (-1: a client asks)
	OpSeq     int32
	Save      int32 // savepoints set so far
	Wrote     int32 // rows written: at the sender's shard in a vote, in all in an outcome; -1: not known
	Reason    AbortReason
	Tx        Info
	Key       uint64 // what the message is: its latency and service time are drawn from it
	Op        Op
	Result    Result
	Met       Timestamp // of a refusal: the newest timestamp that the shard has met
	Parts     Parts     // latency spent at the node
	Arrived   event.Time
	Service   time.Duration
	*Extra    // never nil
}

// Extra is what few messages carry. It is kept apart so that the many, operations
// and their replies, are small.
type Extra struct {
	Vote     Vote // of a vote: the branch's; of a decision: what all came to
	Ahead    []Op // at the lock point: the operations ahead whose locks are kept; see Growth
	Branches []Branch
	Puts     []Put  // of a vote or a pending commit, where the coordinator's log has all writes
	Term     uint64 // of the leader that recovers: recover, pending, recovered
	Control  Message
	Batch    *Batch // of a control message that has one; of Sequence: the attempt and its claims; kept for reuse
}

// reset empties x, whose slices and batch keep their memory.
func (x *Extra) reset() {
	x.Vote, x.Term = Vote{}, 0
	x.Ahead, x.Branches, x.Puts = x.Ahead[:0], x.Branches[:0], x.Puts[:0]
	txns := x.Control.Txns[:0]
	x.Control = Message{}
	x.Control.Txns = txns
	if x.Batch != nil {
		x.Batch.Reset()
	}
}

// Index names the message in its pool, for the argument of an event.
func (m *Msg) Index() uint64 { return uint64(m.index) }

// Pool keeps messages by index, so that an event can carry one.
type Pool struct {
	all  []*Msg
	free []*Msg
}

// New returns an empty message.
func (p *Pool) New(k MsgKind) *Msg {
	if n := len(p.free); n > 0 {
		m := p.free[n-1]
		p.free = p.free[:n-1]
		m.Kind = k
		return m
	}
	m := &Msg{Kind: k, index: uint32(len(p.all)), Extra: new(Extra)}
	p.all = append(p.all, m)
	return m
}

// At returns the message with the given index.
func (p *Pool) At(index uint64) *Msg { return p.all[index] }

// Free takes m back. Its slices keep their memory.
func (p *Pool) Free(m *Msg) {
	index, rows, extra := m.index, m.Result.Rows[:0], m.Extra
	// An operation, or the reply that it became, has extras at a lock point and when
	// it asks for a place; to look at the extras themselves would cost what it saves.
	plain := (m.Kind == MsgOp || m.Kind == MsgReply) && !m.LockPoint && m.Op.Kind != Sequence
	*m = Msg{} // in place: a literal with these fields would be built elsewhere and copied
	m.index, m.Result.Rows, m.Extra = index, rows, extra
	if !plain {
		extra.reset()
	}
	p.free = append(p.free, m)
}

// OwnBatch returns m's batch, which is made when there is none yet.
func (m *Msg) OwnBatch() *Batch {
	if m.Batch == nil {
		m.Batch = &Batch{}
	}
	return m.Batch
}

// Live is the number of messages in use.
func (p *Pool) Live() int { return len(p.all) - len(p.free) }
