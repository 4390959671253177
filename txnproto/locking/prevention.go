package locking

import "interleave/txnproto"

// Waits that are decided rather than searched
//
// Under wait-die and wound-wait every edge of the waits-for graph goes one way in
// age, over all shards, so the graph has no cycle. Age is the timestamp of the
// request's first attempt: a restart keeps it, grows older than everyone
// in time, and is then not aborted any more.
//
// The rule must hold against all that a waiter waits for, which are not only the
// holders that it clashes with, but the waiters before it as well. With
//
//	T1 reads x, T3 asks to write x, T2 asks to write x
//
// T2 waits for T1 and for T3. Under wait-die T2 may wait for neither or only for
// the younger T3, and dies because of T1. A converting holder and a lock
// that moves come before waiters who have been let wait; table.changed names
// these, and they are decided again.
//
// Two attempts of one request have the same age while the news of the first
// one's end is on its way. The second may wait for the first, which asks for
// nothing more; the rules below let it.

// older reports whether a's request began before b's.
func (c *twoPhase) older(a, b owner) bool {
	return c.branches[a].tx.FirstTS < c.branches[b].tx.FirstTS
}

// mayNotWait returns why the waiting request id of o must not go on waiting, or NoReason.
func (c *twoPhase) mayNotWait(o owner, id requestID) txnproto.AbortReason {
	switch c.config.strategy {
	case noWait:
		return txnproto.NoWait
	case waitDie:
		c.blockers = c.table.appendBlockers(c.blockers[:0], id)
		for _, u := range c.blockers {
			if c.older(u, o) {
				return txnproto.WaitDie
			}
		}
		return txnproto.NoReason
	case detection, timeoutOnly, woundWait, ordered:
		return txnproto.NoReason
	default:
		panic("locking: unknown strategy")
	}
}

// wound kills the younger ones that o waits for. Those that are prepared cannot
// be killed: they ask for no more locks and will end without o.
func (c *twoPhase) wound(o owner) {
	c.blockers = c.table.appendBlockers(c.blockers[:0], c.branches[o].request)
	for _, u := range c.blockers {
		if b := &c.branches[u]; !b.wounded && c.older(o, u) {
			b.wounded = c.host.Kill(b.tx, txnproto.Wounded)
		}
	}
}

// decide looks at o's wait under a strategy that knows by itself what is to be done.
func (c *twoPhase) decide(o owner) {
	if r := c.mayNotWait(o, c.branches[o].request); r != txnproto.NoReason {
		c.doom(o, r)
		return
	}
	if c.config.strategy == woundWait {
		c.wound(o)
	}
}

// mustWait is called when request id of o, for its operation, was not granted. It
// reports true when the operation goes on without it (WaitSkip); otherwise a wait has
// begun or o is aborted. A scan cannot leave rows out: with WaitSkip it waits.
func (c *twoPhase) mustWait(o owner, id requestID) bool {
	op := c.branches[o].op
	switch op.Wait {
	case txnproto.WaitBlock:
	case txnproto.WaitNot:
		c.refuse(o, id, txnproto.CannotLock)
		return false
	case txnproto.WaitSkip:
		if op.Kind != txnproto.Scan {
			op.Skip = true
			c.table.abandon(id)
			return true
		}
	default:
		panic("locking: unknown way to wait")
	}
	if r := c.mayNotWait(o, id); r != txnproto.NoReason {
		c.refuse(o, id, r)
		return false
	}
	c.beginWait(o, id)
	return false
}

// refuse aborts o instead of letting it wait for request id.
func (c *twoPhase) refuse(o owner, id requestID, r txnproto.AbortReason) {
	b := &c.branches[o]
	b.doomed = r
	c.table.abandon(id)
	if o != c.current {
		c.host.Resolve(b.tx, txnproto.Abort(r))
	}
}
