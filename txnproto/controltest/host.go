package controltest

import (
	"fmt"
	"slices"
	"time"

	"interleave/sim/event"
	"interleave/sim/rng"
	"interleave/txnproto"
)

// A Shard is the Host of its controller.
var _ txnproto.Host = (*Shard)(nil)

// Shard returns the shard's id.
func (s *Shard) Shard() txnproto.ShardID { return s.id }

// Shards returns the number of shards.
func (s *Shard) Shards() int { return len(s.d.Shards) }

// Now returns the virtual time.
func (s *Shard) Now() event.Time { return s.d.Loop.Now() }

// Store returns the committed state.
func (s *Shard) Store() txnproto.Store { return s.store }

// NewestTS returns the newest timestamp drawn.
func (s *Shard) NewestTS() txnproto.Timestamp { return s.d.newest }

// NewVersion returns a version above all before.
func (s *Shard) NewVersion() txnproto.Version {
	s.exposed++
	return s.exposed
}

// PrepareTS returns the newest timestamp drawn.
func (s *Shard) PrepareTS(*txnproto.Txn) txnproto.Timestamp { return s.d.newest }

// OldestTS returns the timestamp of the oldest undecided attempt, or the newest
// drawn when there is none; with skew, none that is not the oldest to come.
func (s *Shard) OldestTS() txnproto.Timestamp {
	d := s.d
	d.begun = slices.DeleteFunc(d.begun, func(a *Attempt) bool { return a.Outcome != txnproto.Undecided })
	if d.Skew != 0 {
		oldest := d.clockTS(0)
		for _, a := range d.begun {
			oldest = min(oldest, a.TS)
		}
		return oldest
	}
	if len(d.begun) > 0 {
		return d.begun[0].TS
	}
	return d.newest
}

// Rand returns the controller's stream.
func (s *Shard) Rand() *rng.Stream { return s.random }

// Stats returns the controller's counters.
func (s *Shard) Stats() *txnproto.ControlStats { return &s.stats }

func (s *Shard) mustBeInCall(what string) {
	if !s.inCall {
		panic("controltest: " + what + " outside a controller call")
	}
}

// Resolve answers tx after the current call.
func (s *Shard) Resolve(tx *txnproto.Txn, v txnproto.Verdict) {
	s.mustBeInCall("Resolve")
	b := s.slots[tx.Slot]
	if b == nil || &b.tx != tx || b.stage == ended {
		panic(fmt.Sprintf("controltest: %v, which has ended, is resolved", tx.ID))
	}
	if v.IsWaiting() {
		panic("controltest: resolved with waiting")
	}
	s.todo = append(s.todo, func() { s.answer(b, v) })
}

// Kill aborts a branch after the current call.
func (s *Shard) Kill(tx *txnproto.Txn, r txnproto.AbortReason) bool {
	s.mustBeInCall("Kill")
	b := s.slots[tx.Slot]
	if b == nil || &b.tx != tx || b.stage == prepared || b.stage == ended {
		return false
	}
	s.todo = append(s.todo, func() {
		switch {
		case b.stage == ended:
		case b.wait:
			s.answer(b, txnproto.Abort(r))
		default:
			s.note(b.attempt, r)
			s.end(b, txnproto.Aborted)
			b.told(r)
		}
	})
	return true
}

// Blocked hears whom tx waits for.
func (s *Shard) Blocked(tx *txnproto.Txn, k txnproto.Key, on []txnproto.TxnID) {
	s.mustBeInCall("Blocked")
	if len(on) == 0 || slices.Contains(on, tx.ID) {
		panic(fmt.Sprintf("controltest: %v waits for %v", tx.ID, on))
	}
	if s.blocked != nil {
		s.blocked(tx, k, on)
	}
}

// After sets a timer.
func (s *Shard) After(d time.Duration, arg uint64) event.Timer {
	s.timers = append(s.timers, timerArg{s.term, arg})
	return s.d.Loop.Schedule(s.Now().Add(d), s.timer, uint64(len(s.timers)-1))
}

// Cancel takes a timer back.
func (s *Shard) Cancel(t event.Timer) bool { return s.d.Loop.Cancel(t) }

func (s *Shard) fire(i uint64) {
	if t := s.timers[i]; t.term == s.term {
		s.enter(func() { s.control.(txnproto.Timed).Timer(t.arg) })
	}
}

// Send sends a message between controllers, in order.
func (s *Shard) Send(to txnproto.ShardID, m *txnproto.Message) {
	if to == s.id {
		panic("controltest: a controller sends to itself")
	}
	c := *m
	c.Txns = slices.Clone(m.Txns)
	if m.Batch != nil {
		c.Batch = &txnproto.Batch{}
		c.Batch.Set(m.Batch)
	}
	at := s.Now()
	if s.d.Latency != nil {
		at = at.Add(s.d.Latency())
	}
	way := [2]txnproto.ShardID{s.id, to}
	at = max(at, s.d.arrived[way])
	s.d.arrived[way] = at
	peer := s.d.Shards[to]
	term, peerTerm := s.term, peer.term
	s.d.call(at.Sub(s.Now()), func() {
		if s.term == term && peer.term == peerTerm {
			peer.enter(func() { peer.control.(txnproto.Messenger).Receive(s.id, &c) })
		}
	})
}
