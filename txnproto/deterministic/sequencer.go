package deterministic

import (
	"interleave/sim/event"
	"interleave/txnproto"
)

// sequencer is one shard's part in making the order. Its epochs go
//
//	collecting → closed → in the log → sent
//
// in turn; one without transactions skips the log. Several may be on their way to the
// log at a time.
type sequencer struct {
	birth uint64 // greater than that of any earlier leader's

	open      txnproto.Batch // of openEpoch, being collected; empty: none is
	openEpoch uint64
	used      uint64 // the latest epoch that somebody has a transaction in
	closed    uint64 // no epoch up to this one takes any more
	sent      uint64 // every scheduler has been told of those up to this one
	timing    bool   // a timer is set for the end of an epoch

	sealed     []sealed // closed and not sent, oldest first
	freeSealed []*txnproto.Batch
	callers    []caller         // by Txn.Slot
	part       txnproto.Batch   // scratch
	message    txnproto.Message // scratch
}

// sealed is a closed epoch.
type sealed struct {
	epoch uint64
	batch *txnproto.Batch // nil: nothing in it, nor in those since the last
	safe  bool            // in the log
}

// caller is a branch whose client waits for its place.
type caller struct {
	id txnproto.TxnID // 0: none
	tx *txnproto.Txn
	op *txnproto.Op
}

// startSequencer begins a leadership, in the epoch under way.
func (c *controller) startSequencer() {
	c.birth = uint64(c.host.Now()) + 1
	first := c.now()
	c.closed, c.sent = first-1, first-1
	own := &c.peers[c.shard]
	own.birth, own.heard = c.birth, first-1
	for s := range c.peers {
		if txnproto.ShardID(s) != c.shard {
			c.hello(txnproto.ShardID(s), first)
		}
	}
}

func (c *controller) hello(to txnproto.ShardID, from uint64) {
	c.tell(to, msgHello, from, nil)
}

// tell sends a message to another shard's controller.
func (c *controller) tell(to txnproto.ShardID, kind uint8, epoch uint64, b *txnproto.Batch) {
	c.message = txnproto.Message{Kind: kind, Args: [6]uint64{c.birth, epoch, c.used}, Batch: b}
	c.host.Send(to, &c.message)
}

// collect takes tx into the batch of the epoch under way.
func (c *controller) collect(tx *txnproto.Txn, op *txnproto.Op) {
	if len(c.open.Txns) == 0 {
		c.openEpoch = c.now()
		if c.openEpoch > c.used {
			c.tellUse()
		}
	}
	c.open.Add(txnproto.BatchTxn{
		ID: tx.ID, Place: txnproto.NewPlace(c.openEpoch, c.shard, len(c.open.Txns)), Slot: int32(tx.Slot),
	}, tx.Claims)
	for tx.Slot >= len(c.callers) {
		c.callers = append(c.callers, caller{})
	}
	c.callers[tx.Slot] = caller{tx.ID, tx, op}
}

// tellUse lets the other sequencers close the epoch under way when it is over.
func (c *controller) tellUse() {
	c.use(c.openEpoch)
	for s := range c.peers {
		if txnproto.ShardID(s) != c.shard {
			c.tell(txnproto.ShardID(s), msgUse, 0, nil)
		}
	}
}

// use sees to it that epoch is closed when it is over, because somebody is in it.
func (c *controller) use(epoch uint64) {
	c.used = max(c.used, epoch)
	if c.used <= c.closed || c.timing {
		return
	}
	end := event.Time(c.used * uint64(c.epoch))
	if end <= c.host.Now() {
		c.closeTo(c.now() - 1)
		return
	}
	c.timing = true
	c.host.After(end.Sub(c.host.Now()), 0)
}

// epochOver closes the epochs that are over.
func (c *controller) epochOver() {
	c.timing = false
	c.closeTo(c.now() - 1)
	c.use(c.used)
}

// closeTo closes the epochs up to the given one.
func (c *controller) closeTo(epoch uint64) {
	if len(c.open.Txns) > 0 && c.openEpoch <= epoch {
		if b := c.seal(); len(b.Txns) > 0 {
			c.sealed = append(c.sealed, sealed{epoch: c.openEpoch, batch: b})
			c.closed = c.openEpoch
			c.host.Stats().Extra["sequenced-batches"]++
			c.host.Stats().Extra["sequenced"] += uint64(len(b.Txns))
			c.host.Log(b)
		} else {
			c.freeSealed = append(c.freeSealed, b)
		}
	}
	if epoch > c.closed {
		c.closed = epoch
		c.sealed = append(c.sealed, sealed{epoch: epoch, safe: true})
	}
	c.sendSafe()
}

// seal takes the open batch without those who have withdrawn.
func (c *controller) seal() *txnproto.Batch {
	b := &txnproto.Batch{}
	if n := len(c.freeSealed); n > 0 {
		b = c.freeSealed[n-1]
		c.freeSealed = c.freeSealed[:n-1]
	}
	b.Reset()
	at := int32(0)
	for _, t := range c.open.Txns {
		if t.ID != 0 {
			claims := c.open.Claims[at : at+t.Claims]
			t.Place = txnproto.NewPlace(c.openEpoch, c.shard, len(b.Txns))
			b.Add(t, claims)
		}
		at += t.Claims
	}
	c.open.Reset()
	return b
}

// logged notes that the oldest batch that was not in the log is there.
func (c *controller) logged() {
	for i := range c.sealed {
		if !c.sealed[i].safe {
			c.sealed[i].safe = true
			break
		}
	}
	c.sendSafe()
}

// sendSafe sends what is due, epoch after epoch.
func (c *controller) sendSafe() {
	n := 0
	for n < len(c.sealed) && c.sealed[n].safe {
		c.send(&c.sealed[n])
		n++
	}
	if n > 0 {
		c.sealed = append(c.sealed[:0], c.sealed[n:]...)
		c.advance()
	}
}

// send tells every scheduler its part of an epoch, and the clients their places.
func (c *controller) send(s *sealed) {
	c.sent = s.epoch
	for to := range c.peers {
		var part *txnproto.Batch
		if s.batch != nil {
			c.partOf(s.batch, txnproto.ShardID(to))
			part = &c.part
		}
		if txnproto.ShardID(to) != c.shard {
			c.tell(txnproto.ShardID(to), msgBatch, s.epoch, part)
			continue
		}
		c.peers[to].heard = s.epoch
		if s.batch != nil {
			c.take(c.shard, &c.part)
		}
	}
	if s.batch == nil {
		return
	}
	for i := range s.batch.Txns {
		t := &s.batch.Txns[i]
		if who := &c.callers[t.Slot]; t.ID != 0 && who.id == t.ID {
			who.op.Value = txnproto.Value(t.Place)
			c.host.Resolve(who.tx, txnproto.Granted)
			*who = caller{}
		}
	}
	c.freeSealed = append(c.freeSealed, s.batch)
}

// partOf makes part what of b is for one shard.
func (c *controller) partOf(b *txnproto.Batch, shard txnproto.ShardID) {
	c.part.Reset()
	at := 0
	for i := range b.Txns {
		t := b.Txns[i]
		claims := b.Claims[at : at+int(t.Claims)]
		at += int(t.Claims)
		if t.ID == 0 {
			continue
		}
		from := 0
		for from < len(claims) && claims[from].Shard < shard {
			from++
		}
		to := from
		for to < len(claims) && claims[to].Shard == shard {
			to++
		}
		if from < to {
			c.part.Add(t, claims[from:to])
		}
	}
}

// withdraw takes a transaction that ends before it has its place out of the order.
func (c *controller) withdraw(tx *txnproto.Txn) {
	if tx.Slot >= len(c.callers) || c.callers[tx.Slot].id != tx.ID {
		return
	}
	c.callers[tx.Slot] = caller{}
	drop := func(b *txnproto.Batch) {
		for i := range b.Txns {
			if b.Txns[i].ID == tx.ID {
				b.Txns[i].ID = 0
			}
		}
	}
	drop(&c.open)
	for i := range c.sealed {
		if b := c.sealed[i].batch; b != nil {
			drop(b)
		}
	}
}
