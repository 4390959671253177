package locking

import (
	"slices"

	"interleave/txnproto"
)

// Ordered locking
//
// The session asks for everything that its program has declared, shard after
// shard and key after key, before the program begins; see txnproto.LockSet. All
// waits then go from a place in that order to a later one: who waits at a key holds only
// keys before it, and in a queue those before it wait at the same key. So there is no
// cycle, in a shard or across them.
//
// Next-key locks would break the order: a gap is wider than the range that
// a scan asks for, and two scans of different ranges can each be in the way of
// the other's insert. As ranges are known beforehand they are locked exactly: the holder
// of a span has S on each key in it, present or not. It stands in the lock table
// only where someone else has asked for the key, before (then the span stops
// there and waits like anybody) or after (then the holder's S is entered first).
// A span has no key that its holder locks exclusively: LockSet cuts it there, as
// two spans over one key whose holders both convert would be a deadlock.

// span is a range of keys on which a branch holds S.
type span struct{ lo, hi txnproto.Key }

// advanceOrdered locks what is declared and looks whether all else was.
func (c *twoPhase) advanceOrdered(o owner) bool {
	op := c.branches[o].op
	switch op.Kind {
	case txnproto.LockShared:
		if op.End != 0 {
			return c.lockSpan(o)
		}
		return c.lock(o, op.Key, Lock{Row: S})
	case txnproto.LockExclusive:
		c.enterSpans(op.Key)
		return c.lock(o, op.Key, Lock{Row: X})
	case txnproto.Read:
		return c.mustHave(o, c.reads(o, op.Key, op.Key+1))
	case txnproto.Scan:
		return c.mustHave(o, c.reads(o, op.Key, op.End))
	case txnproto.ReadForUpdate, txnproto.Write, txnproto.Modify, txnproto.Insert, txnproto.Delete:
		return c.mustHave(o, c.rowMode(o, op.Key) == X)
	case txnproto.RollbackTo, txnproto.NumOpKinds:
		panic("locking: not an operation for a controller: " + op.Kind.String())
	default:
		panic("locking: unknown operation")
	}
}

// mustHave aborts o when its operation needs a lock that was not declared: to take it
// now would be out of order.
func (c *twoPhase) mustHave(o owner, declared bool) bool {
	if declared {
		return true
	}
	count(c.host.Stats(), "undeclared")
	c.branches[o].doomed = txnproto.CannotLock
	return false
}

// count adds one to a counter of the protocol's own.
func count(s *txnproto.ControlStats, name string) { countBy(s, name, 1) }

// countBy adds n to one.
func countBy(s *txnproto.ControlStats, name string, n uint64) {
	if s.Extra == nil {
		s.Extra = map[string]uint64{}
	}
	s.Extra[name] += n
}

// rowMode returns what o holds on row k by itself.
func (c *twoPhase) rowMode(o owner, k txnproto.Key) Mode {
	eid := entryID(c.table.index.Get(k))
	if eid == 0 {
		return None
	}
	if id := c.table.find(o, eid); id != 0 {
		return c.table.requests[id].held.Row
	}
	return None
}

// reads reports whether o may read all of lo to hi-1.
func (c *twoPhase) reads(o owner, lo, hi txnproto.Key) bool {
	ranges := c.branches[o].ranges
	for k := lo; k < hi; {
		next := k
		for _, s := range ranges {
			if s.lo <= k && k < s.hi {
				next = max(next, s.hi)
			}
		}
		if next == k {
			if c.rowMode(o, k) == None {
				return false
			}
			next++
		}
		k = next
	}
	return true
}

// lockSpan locks the rest of a range, waiting at each key that another has or wants.
func (c *twoPhase) lockSpan(o owner) bool {
	b := &c.branches[o]
	end := b.op.End
	for b.cursor < end {
		k, _, contended := c.table.ordered.Ceil(b.cursor)
		if !contended || k >= end {
			c.addSpan(o, span{b.cursor, end})
			b.cursor = end
			return true
		}
		if b.cursor < k {
			c.addSpan(o, span{b.cursor, k})
			b.cursor = k
		}
		if !c.lock(o, k, Lock{Row: S}) {
			return false
		}
		b.cursor = k + 1
	}
	return true
}

// addSpan gives o a span.
func (c *twoPhase) addSpan(o owner, s span) {
	b := &c.branches[o]
	if len(b.ranges) == 0 {
		c.scanners = append(c.scanners, o)
	}
	b.ranges = append(b.ranges, s)
}

// dropSpans forgets o's spans. Their locks in the table are released like all others.
func (c *twoPhase) dropSpans(o owner) {
	i := slices.Index(c.scanners, o)
	c.scanners = slices.Delete(c.scanners, i, i+1)
	c.branches[o].ranges = c.branches[o].ranges[:0]
}

// enterSpans enters S at k for everyone who has it by a span.
func (c *twoPhase) enterSpans(k txnproto.Key) {
	for _, o := range c.scanners {
		for _, s := range c.branches[o].ranges {
			if s.lo <= k && k < s.hi {
				c.table.force(o, k, Lock{Row: S})
				break
			}
		}
	}
}
