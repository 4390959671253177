package locking

import (
	"math"

	"interleave/txnproto"
	"interleave/txnproto/keymap"
)

// Range locks
//
// The present keys of a shard cut the key space into gaps; each gap belongs to
// the present key at its upper end, the last one to the end of the key space.
// Present are the keys of the store and those of uncommitted inserts and
// deletes. A scan of [lo, hi) locks, for every present key in it, the row and the
// gap before it (S both), and the gap before the next present key at or after hi.
// Who makes a key present asks for IX on the gap that it goes into, which clashes
// with a scanner's S and not with other inserters' IX. This is next-key locking
// as in Mohan's ARIES/KVL (1990) with Lomet's (1993) separation of a key from
// the range before it: an insert does not disturb readers of the next row.
//
// The right to enter a gap is needed only for the instant of entering: from then
// on the new key's own X lock stops scanners, and it stands in the set of
// uncommitted keys where they find it. The invariant is:
//
//	A transaction that has scanned an absent key holds S on the gap of the next
//	present key.
//
// It could break where keys come and go:
//   - An insert splits a gap. Nobody but the inserter can hold S on it then; if
//     it does, its S is extended to the new key's gap.
//   - An aborted insert or a committed delete merges the key's gap with the next.
//     Others may hold S on the vanishing gap; theirs moves to the next one.
//   - While a scan waits, keys before the one it waits for may come, and that
//     one may go. So after each wait it looks for the next key again from where it
//     had got to. An insert does likewise with the gap that it waits to enter.

// keySet is an ordered set of keys.
type keySet struct{ keymap.Ordered[struct{}] }

func (s *keySet) add(k txnproto.Key) { s.Set(k, struct{}{}) }

// endOfKeys owns the gap above the last present key. A row of that key would
// share its entry, which is harmless: no scan can reach it.
const endOfKeys txnproto.Key = math.MaxUint64

// nextPresent returns the smallest present key >= k, endOfKeys when there is none.
func (c *twoPhase) nextPresent(k txnproto.Key) txnproto.Key {
	next := endOfKeys
	if s, ok := c.storedNext(k); ok {
		next = s
	}
	if c.uncommitted.Len() > 0 {
		if u, _, ok := c.uncommitted.Ceil(k); ok {
			next = min(next, u)
		}
	}
	return next
}

// present reports whether k is a key between gaps.
func (c *twoPhase) present(k txnproto.Key) bool {
	if c.uncommitted.Len() > 0 {
		if _, ok := c.uncommitted.Get(k); ok {
			return true
		}
	}
	if c.basic != nil {
		return c.basic.present(c.host.Store(), k)
	}
	return c.host.Store().Present(k)
}

// storedNext is the store's NextKey, exposed writes included.
func (c *twoPhase) storedNext(k txnproto.Key) (txnproto.Key, bool) {
	if c.basic != nil {
		return c.basic.nextKey(c.host.Store(), k)
	}
	return c.host.Store().NextKey(k)
}

// lockRange locks the rest of a scan's range.
func (c *twoPhase) lockRange(o owner) bool {
	b := &c.branches[o]
	end := b.op.End
	if b.op.Key >= end {
		return true
	}
	for {
		if c.covered(o, S) {
			return true
		}
		k := c.nextPresent(b.cursor)
		if k >= end {
			return c.lock(o, k, Lock{Gap: S})
		}
		if !c.lock(o, k, Lock{Row: S, Gap: S}) {
			return false
		}
		b.cursor = k + 1
		c.escalateIfDue(o)
	}
}

// makePresent brings the key of o's write, whose X lock it holds, among the
// present keys, waiting for the gap if it must.
func (c *twoPhase) makePresent(o owner) bool {
	t := c.table
	b := &c.branches[o]
	k := b.op.Key
	if b.entering != 0 {
		return c.enterGap(o)
	}
	if c.present(k) {
		if b.op.Kind == txnproto.Delete || c.basic != nil && c.basic.newest.Get(k) != 0 {
			// The store may show the delete before Finish does, and what is exposed may be taken back.
			c.place(t.find(o, entryID(t.index.Get(k))))
		}
		return true
	}
	next := c.gapAfter(k)
	if t.free(o, next, Lock{Gap: IX}) {
		c.splitGap(o, k, next)
		return true
	}
	return c.waitForGap(o, next)
}

// gapAfter returns the key whose gap an absent k lies in.
func (c *twoPhase) gapAfter(k txnproto.Key) txnproto.Key {
	if k == endOfKeys {
		return endOfKeys
	}
	return c.nextPresent(k + 1)
}

func (c *twoPhase) waitForGap(o owner, next txnproto.Key) bool {
	t := c.table
	b := &c.branches[o]
	id, ok := t.acquire(o, next, Lock{Gap: IX})
	if ok {
		panic("locking: a gap that is not free was granted to " + b.id.String())
	}
	if c.mustWait(o, id) {
		return true
	}
	if b.request == id {
		b.entering = id
	}
	return false
}

// enterGap uses the right to enter a gap that o was granted after a wait, or
// waits again when the gap is another by now or someone came to hold S on it.
func (c *twoPhase) enterGap(o owner) bool {
	t := c.table
	b := &c.branches[o]
	k := b.op.Key
	id := b.entering
	r := &t.requests[id]
	e := &t.entries[r.entry]
	next := c.gapAfter(k)
	entered := e.key == next && e.held.allowsBeside(r.held, Lock{Gap: IX})
	if entered {
		c.splitGap(o, k, next)
	}
	b.entering = 0
	eid := t.leaveGap(id)
	if entered {
		t.walk(eid)
		t.dropIfIdle(eid)
		return true
	}
	done := c.makePresent(o)
	t.walk(eid)
	t.dropIfIdle(eid)
	return done
}

// splitGap makes k present in the gap before next.
func (c *twoPhase) splitGap(o owner, k, next txnproto.Key) {
	t := c.table
	id := t.find(o, entryID(t.index.Get(k)))
	c.place(id)
	nid := entryID(t.index.Get(next))
	if nid == 0 {
		return
	}
	if own := t.find(o, nid); own != 0 && clash[t.requests[own].held.Gap].has(IX) {
		c.moveGap(o, k)
	}
}

// place adds a write's key to the uncommitted ones until its release.
func (c *twoPhase) place(id requestID) {
	r := &c.table.requests[id]
	if !r.indexed {
		r.indexed = true
		c.uncommitted.add(c.table.entries[r.entry].key)
	}
}

// mergeGap gives those who hold S on the gap of a key that is gone the next gap.
func (c *twoPhase) mergeGap(eid entryID) {
	t := c.table
	k := t.entries[eid].key
	if c.present(k) {
		return
	}
	next := c.gapAfter(k)
	for g := t.entries[eid].granted.head; g != 0; g = t.requests[g].next {
		r := &t.requests[g]
		if clash[r.held.Gap].has(IX) {
			c.moveGap(r.owner, next)
		}
	}
	// One who waited there as a newcomer may be a holder now, and pass.
	if eid := entryID(t.index.Get(next)); eid != 0 {
		t.walk(eid)
	}
}
