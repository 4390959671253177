package deterministic

import (
	"time"

	"interleave/txnproto"
)

// controller is one shard's sequencer and scheduler.
type controller struct {
	host  txnproto.Host
	shard txnproto.ShardID
	epoch time.Duration
	sequencer
	scheduler

	// impatient is a fault for tests: the scheduler takes each batch as it comes and
	// does not wait for the other sequencers.
	impatient bool
}

var (
	_ txnproto.Timed     = (*controller)(nil)
	_ txnproto.Messenger = (*controller)(nil)
	_ txnproto.Logger    = (*controller)(nil)
	_ txnproto.Recoverer = (*controller)(nil)
)

func newController(h txnproto.Host, epoch time.Duration) *controller {
	c := &controller{host: h, shard: h.Shard(), epoch: epoch}
	c.scheduler = newScheduler(h.Shards())
	c.startSequencer()
	return c
}

// What controllers tell each other, by Message.Kind. All carry in Args[0] the birth of
// the sender's sequencer, in Args[1] an epoch, and in Args[2] the latest epoch that it knows to be in use.
const (
	// msgHello goes to a new leader, or from one: what the receiver has not heard of
	// epochs before Args[1] it will not hear.
	msgHello uint8 = iota
	// msgUse says no more: the sender has a transaction in the epoch of Args[2].
	msgUse
	// msgBatch is the sender's batch of epoch Args[1] as far as the receiver has a part in
	// it; there is nothing in the epochs since the last.
	msgBatch
)

// now is the epoch under way.
func (c *controller) now() uint64 { return uint64(c.host.Now())/uint64(c.epoch) + 1 }

// Access gives tx a place, or runs an operation when tx's turn has come.
func (c *controller) Access(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	if op.Kind == txnproto.Sequence {
		c.collect(tx, op)
		return txnproto.Waiting
	}
	return c.run(tx, op)
}

// Prepare has nothing to find out: whoever has run holds all its locks.
func (c *controller) Prepare(*txnproto.Txn) txnproto.Verdict { return txnproto.Granted }

// Finish gives up tx's place and releases its locks.
func (c *controller) Finish(tx *txnproto.Txn, _ txnproto.Outcome) {
	c.withdraw(tx)
	c.end(tx)
}

// Recover locks again what a transaction that an earlier leader prepared will write.
// Its read locks are not needed any more: it is past its lock point.
func (c *controller) Recover(tx *txnproto.Txn) {
	id := c.newEntry(tx.ID)
	e := &c.entries[id]
	e.tx, e.stage = tx, admitted
	for i := range tx.Puts {
		e.claims = append(e.claims, txnproto.Claim{Key: tx.Puts[i].Key, Shard: c.shard, Exclusive: true})
	}
	e.claims = txnproto.SortClaims(e.claims)
	c.table.claim(id, e.claims)
	if c.table.owner(id).missing != 0 {
		panic("deterministic: two prepared transactions wrote one key: " + tx.ID.String())
	}
}

// Timer ends an epoch.
func (c *controller) Timer(uint64) { c.epochOver() }

// Logged sends the oldest batch on its way.
func (c *controller) Logged() { c.logged() }

// Receive takes what another sequencer says.
func (c *controller) Receive(from txnproto.ShardID, m *txnproto.Message) {
	peer := &c.peers[from]
	birth := m.Args[0]
	if birth < peer.birth {
		return // of a leader that is no more
	}
	switch m.Kind {
	case msgHello:
		peer.birth = birth
		peer.heard = max(peer.heard, m.Args[1]-1)
	case msgUse:
	case msgBatch:
		if birth != peer.birth || m.Args[1] <= peer.heard {
			return // meant for an earlier leader here
		}
		if m.Batch != nil {
			c.take(from, m.Batch)
		}
		peer.heard = m.Args[1]
	default:
		panic("deterministic: unknown message")
	}
	c.use(m.Args[2])
	c.advance()
}

// PeerReset tells a new leader from when on it will hear.
func (c *controller) PeerReset(shard txnproto.ShardID) { c.hello(shard, c.sent+1) }
