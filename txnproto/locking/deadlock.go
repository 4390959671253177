package locking

import (
	"time"

	"interleave/sim/event"
	"interleave/txnproto"
)

// Deadlocks
//
// A wait is looked at once it is due: as it begins (detect=immediate), at the
// next tick (interval), or when it has lasted (wait). To look at a wait is to
// search the shard's waits-for graph, which is the lock table itself, for cycles
// through the waiter, and, in a system of several shards, to tell the detector
// (detector.go) whom the waiter waits for.
//
// Every cycle is found because each of its edges was new once and was looked at
// from its tail afterwards. Edges come up where a wait begins, where a holder
// converts or waits to and so gets to block others in the queue, and where a lock moves
// to another key; table.changed names the waiters of the latter two. Edges that end need no
// look.
//
// Cycles are searched breadth first, so the one found is a shortest through the
// waiter: every member is needed for it and no bystander in a queue is made its
// victim. After a victim has been taken the search is repeated, as a waiter can
// close several cycles at once.

// deadlocks is the part of the controller that deals with waits.
type deadlocks struct {
	epoch    uint64
	looks    []owner // waits to be looked at now
	due      []owner // waits to be looked at with the next tick
	ticking  bool
	search   uint64
	frontier []owner
	blockers []owner
	cycle    []owner
	waitsFor []txnproto.TxnID
	detector *detector // in shard 0 of several
	message  txnproto.Message
}

func (c *twoPhase) startDeadlocks() {
	// Epochs start at the time of birth, so a new leader's waits are told from
	// those of its predecessor: there is less than one wait in a nanosecond.
	c.epoch = uint64(c.host.Now())
	if c.host.Shards() > 1 && c.host.Shard() == 0 && c.central() {
		c.detector = newDetector(c.host, c.config.victim)
	}
}

// central reports whether waits are told to the detector of shard 0.
func (c *twoPhase) central() bool {
	return c.config.strategy == detection && c.config.detect != detectProbe
}

// Timer arguments: what the timer is for, the wait's epoch above.
const (
	timerTick = iota
	timerLook
	timerTimeout
	timerKinds
)

func (c *twoPhase) beginWait(o owner, id requestID) {
	b := &c.branches[o]
	c.epoch++
	b.request, b.epoch, b.looked = id, c.epoch, false
	if c.config.detect == detectProbe {
		*c.index.Ref(txnproto.Key(b.id)) = int32(o) + 1
	}
	r := &c.table.requests[id]
	e := &c.table.entries[r.entry]
	s := c.host.Stats()
	s.QueueCount++ // the queue's length counts the newcomer
	s.QueueSum += uint64(e.queue.n)
	s.QueueMax = max(s.QueueMax, int(e.queue.n))
	key := e.key
	if key == tableKey {
		key = b.op.Key // what it is about
	}
	c.host.Blocked(b.tx, key, c.blockersOf(id))
	if d, ok := c.waitLimit(b.op); ok {
		b.timeoutAt = c.host.After(d, c.timerArg(o, timerTimeout))
	}
	c.schedule(o)
}

// waitLimit returns how long an operation may wait for a lock, and false when there is no limit.
func (c *twoPhase) waitLimit(op *txnproto.Op) (time.Duration, bool) {
	d, limited := c.config.lockTimeout, c.config.lockTimeout > 0 || c.config.strategy == timeoutOnly
	if op.Timeout > 0 && (!limited || op.Timeout < d) {
		return op.Timeout, true
	}
	return d, limited
}

// schedule arranges that o's wait is looked at when it is due.
func (c *twoPhase) schedule(o owner) {
	b := &c.branches[o]
	if s := c.config.strategy; s == waitDie || s == woundWait {
		c.looks = append(c.looks, o)
		return
	}
	switch c.config.detect {
	case detectImmediate, detectProbe:
		c.looks = append(c.looks, o)
	case detectInterval:
		c.due = append(c.due, o)
		if !c.ticking {
			c.ticking = true
			c.host.After(c.untilTick(), timerTick)
		}
	case detectWait:
		c.host.Cancel(b.detectAt)
		b.detectAt = c.host.After(c.config.after, c.timerArg(o, timerLook))
	case detectOff:
	default:
		panic("locking: unknown detection mode")
	}
}

// untilTick is the time to the next multiple of the interval: ticks that nobody
// waits for are left out and the others are where they would be.
func (c *twoPhase) untilTick() time.Duration {
	return c.config.interval - time.Duration(c.host.Now())%c.config.interval
}

// lookAgain is called when o, which waits, may have got further blockers.
func (c *twoPhase) lookAgain(o owner) {
	if c.config.detect == detectWait && !c.branches[o].looked {
		return // its first look is still to come and will see them
	}
	c.schedule(o)
}

// timerArg names o's present wait: slots in the middle, the epoch's low bits on top.
func (c *twoPhase) timerArg(o owner, kind uint64) uint64 {
	return c.branches[o].epoch<<32 | uint64(o)*timerKinds + kind
}

// Timer looks at waits that are due and ends those that lasted too long.
func (c *twoPhase) Timer(arg uint64) {
	if arg == timerTick {
		c.ticking = false
		c.looks = append(c.looks, c.due...)
		c.due = c.due[:0]
		c.settle()
		return
	}
	low := arg & (1<<32 - 1)
	o := owner(low / timerKinds)
	b := &c.branches[o]
	if !c.waits(o) || uint32(b.epoch) != uint32(arg>>32) {
		return
	}
	switch low % timerKinds {
	case timerLook:
		b.detectAt = event.Timer{}
		c.looks = append(c.looks, o)
	case timerTimeout:
		b.timeoutAt = event.Timer{}
		c.doom(o, txnproto.LockTimeout)
	default:
		panic("locking: unknown timer")
	}
	c.settle()
}

// waits reports whether o waits. Its lock may have been granted although settle has
// not come to it yet.
func (c *twoPhase) waits(o owner) bool {
	id := c.branches[o].request
	return id != 0 && c.table.requests[id].waits()
}

// endWait forgets that o waits; its request has been granted or is about to be abandoned.
func (c *twoPhase) endWait(o owner) {
	b := &c.branches[o]
	b.request = 0
	c.host.Cancel(b.detectAt)
	c.host.Cancel(b.timeoutAt)
	b.detectAt, b.timeoutAt = event.Timer{}, event.Timer{}
	if c.config.detect == detectProbe {
		c.index.Delete(txnproto.Key(b.id))
	}
	if b.published {
		b.published = false
		c.sendWaitEnd(b)
	}
}

// doom aborts o, which waits.
func (c *twoPhase) doom(o owner, reason txnproto.AbortReason) {
	b := &c.branches[o]
	id := b.request
	b.doomed = reason
	c.endWait(o)
	c.table.abandon(id)
	if o != c.current {
		c.host.Resolve(b.tx, txnproto.Abort(reason))
	}
}

// look searches for the cycles that o's wait closes and breaks them; then it
// tells the detector of the wait.
func (c *twoPhase) look(o owner) {
	c.branches[o].looked = true
	if c.config.strategy != detection {
		c.decide(o)
		return
	}
	for c.waits(o) && c.findCycle(o) {
		victim := c.cycle[0]
		for _, m := range c.cycle[1:] {
			if c.config.victim.before(c.candidate(m), c.candidate(victim)) {
				victim = m
			}
		}
		countCycle(c.host.Stats(), len(c.cycle))
		c.doom(victim, txnproto.Deadlock)
		if victim == o {
			return
		}
	}
	if c.host.Shards() == 1 || !c.waits(o) {
		return
	}
	if c.config.detect == detectProbe {
		c.startProbe(o)
	} else {
		c.branches[o].published = true
		c.sendWait(o)
	}
}

func countCycle(s *txnproto.ControlStats, n int) {
	s.Deadlocks++
	s.CycleLength[min(n, len(s.CycleLength)-1)]++
}

func (c *twoPhase) candidate(o owner) candidate {
	b := &c.branches[o]
	return candidate{b.id, b.tx.FirstTS, len(c.table.owned[o]), b.tx.Ops, b.tx.Hits}
}

// findCycle searches for a shortest cycle of waits through start and leaves its
// members in c.cycle. Cost: each waiter reached once, and its blockers.
func (c *twoPhase) findCycle(start owner) bool {
	c.search++
	c.frontier = append(c.frontier[:0], start)
	c.branches[start].mark = c.search
	for i := 0; i < len(c.frontier); i++ {
		v := c.frontier[i]
		id := c.branches[v].request
		if !c.waits(v) || c.table.blockersSeen(id, c.search) {
			continue
		}
		c.blockers = c.table.appendBlockers(c.blockers[:0], id)
		for _, u := range c.blockers {
			if u == start {
				c.cycle = c.cycle[:0]
				for ; v != start; v = c.branches[v].from {
					c.cycle = append(c.cycle, v)
				}
				c.cycle = append(c.cycle, start)
				return true
			}
			if b := &c.branches[u]; b.mark != c.search {
				b.mark, b.from = c.search, v
				c.frontier = append(c.frontier, u)
			}
		}
	}
	return false
}

// blockersOf lists whom a waiting request waits for, each once. Valid until the next call.
func (c *twoPhase) blockersOf(id requestID) []txnproto.TxnID {
	c.search++
	c.blockers = c.table.appendBlockers(c.blockers[:0], id)
	c.waitsFor = c.waitsFor[:0]
	for _, u := range c.blockers {
		if b := &c.branches[u]; b.mark != c.search {
			b.mark = c.search
			c.waitsFor = append(c.waitsFor, b.id)
		}
	}
	return c.waitsFor
}
