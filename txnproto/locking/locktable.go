package locking

import (
	"fmt"

	"interleave/txnproto"
	"interleave/txnproto/keymap"
)

// table is the lock table of one shard: for each locked key its holders and a
// queue of those that wait.
//
// Who is granted what:
//   - A newcomer is granted at once when what it wants goes with all that is
//     granted and with all that is waited for: nobody overtakes a waiter that it
//     would delay. With S and X only, that is "when nobody waits before it".
//   - A holder that asks for more converts. It must go with the other holders
//     only: those in the queue wait for it anyway. Waiting conversions stand in
//     front of waiting newcomers.
//   - On a release the queue is walked from its head under the same two rules
//     and everyone who now can is granted.
//
// So the blockers of a waiting conversion are the holders that it clashes with;
// those of a waiting newcomer, these and the waiters before it that it clashes with.
//
// Entries and requests live in pools and are named by index; 0 is none.
type table struct {
	index    keymap.Map // key -> entry
	entries  []entry
	requests []request
	freeEnt  []entryID
	freeReq  []requestID
	owned    [][]requestID // by owner: its requests, in order of first asking

	seq uint64

	ordered *keySet // the locked keys in order, for who looks for them in ranges; nil: not kept

	// woken are owners whose waiting request was granted, in order; changed are
	// waiting requests that may have got further blockers. The controller empties both.
	woken   []owner
	changed []requestID
}

type (
	entryID   int32
	requestID int32
	owner     int32 // a branch, by Txn.Slot
)

// entry is a key with at least one request.
type entry struct {
	key     txnproto.Key
	held    tally // what is granted
	waited  tally // what is waited for
	granted list
	queue   list // conversions, then newcomers, each in order of arrival

	// During one search for cycles: the newcomer asking for a row's X whose
	// blockers here were looked at; see table.blockersSeen.
	mark    uint64
	markSeq uint64
}

// idle reports whether nobody has a request here.
func (e *entry) idle() bool { return e.granted.n|e.queue.n == 0 }

type list struct {
	head, tail requestID
	n          int32
}

// request is one owner's business at one key. It can hold something and wait for more.
type request struct {
	held       Lock
	want       Lock // all zero: does not wait
	converts   bool // waits as a holder
	indexed    bool // its key is in the controller's set of uncommitted keys
	owner      owner
	entry      entryID
	seq        uint64 // order of joining the queue
	next, prev requestID
	qnext      requestID
	qprev      requestID
}

func (r *request) waits() bool { return r.want != Lock{} }

// tally counts locks by mode.
type tally struct {
	rows, gaps       [NumModes]int32
	rowModes, gapped modeSet // the modes counted, None left out
}

func (t *tally) add(l Lock) {
	if l.Row != None {
		t.rows[l.Row]++
		t.rowModes |= 1 << l.Row
	}
	if l.Gap != None {
		t.gaps[l.Gap]++
		t.gapped |= 1 << l.Gap
	}
}

func (t *tally) remove(l Lock) {
	if l.Row != None {
		if t.rows[l.Row]--; t.rows[l.Row] == 0 {
			t.rowModes &^= 1 << l.Row
		}
	}
	if l.Gap != None {
		if t.gaps[l.Gap]--; t.gaps[l.Gap] == 0 {
			t.gapped &^= 1 << l.Gap
		}
	}
}

func (t *tally) allows(l Lock) bool {
	return clash[l.Row]&t.rowModes == 0 && clash[l.Gap]&t.gapped == 0
}

// allowsBeside is allows, not counting own.
func (t *tally) allowsBeside(own, l Lock) bool {
	rows, gaps := t.rowModes, t.gapped
	if own.Row != None && t.rows[own.Row] == 1 {
		rows &^= 1 << own.Row
	}
	if own.Gap != None && t.gaps[own.Gap] == 1 {
		gaps &^= 1 << own.Gap
	}
	return clash[l.Row]&rows == 0 && clash[l.Gap]&gaps == 0
}

func newTable() *table {
	return &table{entries: make([]entry, 1), requests: make([]request, 1)}
}

// grow makes room for owners up to o.
func (t *table) grow(o owner) {
	for int(o) >= len(t.owned) {
		t.owned = append(t.owned, nil)
	}
}

// acquire asks for l at k on behalf of o. It returns o's request and whether it
// is granted; otherwise the request has joined the queue. REQUIRES: o does not wait.
func (t *table) acquire(o owner, k txnproto.Key, l Lock) (requestID, bool) {
	eid := t.ensure(k)
	e := &t.entries[eid]
	if e.idle() { // the usual case
		id := t.newRequest(o, eid)
		t.grant(e, id, l)
		return id, true
	}
	id := t.find(o, eid)
	if id == 0 {
		id = t.newRequest(o, eid)
		if e.held.allows(l) && (e.queue.n == 0 || e.waited.allows(l)) {
			t.grant(e, id, l)
			return id, true
		}
		t.enqueue(e, id, l)
		return id, false
	}
	r := &t.requests[id]
	if r.held.covers(l) {
		return id, true
	}
	old := r.held
	l = old.join(l)
	ok := e.held.allowsBeside(old, l)
	if ok {
		t.setHeld(e, r, l)
	} else {
		r.converts = true
		t.enqueue(e, id, l)
	}
	t.noteChanged(e, id, old, l)
	return id, ok
}

// free reports whether o would be granted l at k at once, and asks for nothing.
func (t *table) free(o owner, k txnproto.Key, l Lock) bool {
	eid := entryID(t.index.Get(k))
	if eid == 0 {
		return true
	}
	e := &t.entries[eid]
	id := t.find(o, eid)
	if id == 0 {
		return e.held.allows(l) && (e.queue.n == 0 || e.waited.allows(l))
	}
	r := &t.requests[id]
	return r.held.covers(l) || e.held.allowsBeside(r.held, r.held.join(l))
}

// force grants l at k to o whatever others hold: for a lock that o has already
// and that moves to another key.
func (t *table) force(o owner, k txnproto.Key, l Lock) {
	eid := t.ensure(k)
	e := &t.entries[eid]
	id := t.find(o, eid)
	var old Lock
	if id != 0 {
		old = t.requests[id].held
	}
	switch {
	case id == 0:
		id = t.newRequest(o, eid)
		t.grant(e, id, l)
	case t.requests[id].held == Lock{}:
		// It waits here as a newcomer and becomes a holder that waits.
		r := &t.requests[id]
		want := r.want
		t.dequeue(e, id)
		t.grant(e, id, l)
		r.converts = true
		t.enqueue(e, id, l.join(want))
	default:
		r := &t.requests[id]
		t.setHeld(e, r, r.held.join(l))
		if r.waits() {
			want := r.want.join(l)
			e.waited.remove(r.want)
			e.waited.add(want)
			r.want = want
		}
	}
	t.noteChanged(e, id, old, t.requests[id].held.join(t.requests[id].want))
}

// abandon ends the waiting of a request.
func (t *table) abandon(id requestID) {
	r := &t.requests[id]
	eid := r.entry
	e := &t.entries[eid]
	t.dequeue(e, id)
	if r.held == (Lock{}) {
		t.disown(r.owner, id)
		t.freeRequest(id)
	}
	t.walk(eid)
	t.dropIfIdle(eid)
}

// leaveGap takes back the right to enter a gap, leaving the request what it
// held besides. The caller walks the entry.
func (t *table) leaveGap(id requestID) entryID {
	r := &t.requests[id]
	eid := r.entry
	e := &t.entries[eid]
	rest := r.held
	switch rest.Gap {
	case IX:
		rest.Gap = None
	case SIX: // its own S and the IX
		rest.Gap = S
	case None, IS, S, U, X:
		panic(fmt.Sprintf("locking: owner %d leaves the gap of key %d holding %v", r.owner, e.key, r.held))
	default:
		panic("locking: unknown mode")
	}
	if rest != (Lock{}) {
		t.setHeld(e, r, rest)
		return eid
	}
	t.ungrant(e, id)
	t.disown(r.owner, id)
	t.freeRequest(id)
	return eid
}

// take removes a granted request from its entry; the caller walks the entry.
// Its owner must forget it.
func (t *table) take(id requestID) entryID {
	r := &t.requests[id]
	eid := r.entry
	if r.waits() {
		panic(fmt.Sprintf("locking: a waiting request of owner %d at key %d is released", r.owner, t.entries[eid].key))
	}
	t.ungrant(&t.entries[eid], id)
	t.freeRequest(id)
	return eid
}

// walk grants what can be granted at an entry.
func (t *table) walk(eid entryID) {
	e := &t.entries[eid]
	if e.queue.n == 0 {
		return
	}
	var ahead tally // waiters passed over
	left := e.waited
	for id := e.queue.head; id != 0; {
		r := &t.requests[id]
		next := r.qnext
		want := r.want
		left.remove(want)
		var ok bool
		if r.converts {
			ok = e.held.allowsBeside(r.held, want)
		} else {
			ok = e.held.allows(want) && ahead.allows(want)
		}
		if ok {
			t.dequeue(e, id)
			if r.held == (Lock{}) {
				t.grant(e, id, want)
			} else {
				old := r.held
				t.setHeld(e, r, want)
				t.noteChanged(e, id, old, want) // conversions did not wait for this one
			}
			t.woken = append(t.woken, r.owner)
		} else {
			ahead.add(want)
			last := next == 0 || !t.requests[next].converts
			if last && ahead.rowModes.has(X) && left.gapped == 0 {
				return // no newcomer for the row passes a waiting X
			}
		}
		id = next
	}
}

// dropIfIdle forgets an entry without requests.
func (t *table) dropIfIdle(eid entryID) {
	e := &t.entries[eid]
	if e.idle() {
		t.index.Delete(e.key)
		if t.ordered != nil {
			t.ordered.Delete(e.key)
		}
		t.freeEnt = append(t.freeEnt, eid)
	}
}

// appendBlockers appends the owners that a waiting request waits for: holders in
// order of grant, then waiters in queue order.
func (t *table) appendBlockers(dst []owner, id requestID) []owner {
	r := &t.requests[id]
	e := &t.entries[r.entry]
	for g := e.granted.head; g != 0; g = t.requests[g].next {
		if h := &t.requests[g]; g != id && !h.held.compatible(r.want) {
			dst = append(dst, h.owner)
		}
	}
	if r.converts {
		return dst
	}
	for q := e.queue.head; q != id; q = t.requests[q].qnext {
		if h := &t.requests[q]; !h.want.compatible(r.want) {
			dst = append(dst, h.owner)
		}
	}
	return dst
}

// blockersSeen reports whether this search has already seen all blockers of
// request id, and notes that it sees them now. A newcomer that waits for X on a row
// is blocked by every row request before it, so whoever stands before it with
// a row request alone adds nothing: a long queue is looked at once, not once
// for each of its members.
func (t *table) blockersSeen(id requestID, search uint64) bool {
	r := &t.requests[id]
	e := &t.entries[r.entry]
	if e.mark == search && r.want.Gap == None && (r.converts || r.seq <= e.markSeq) {
		return true
	}
	if !r.converts && r.want.Row == X && (e.mark != search || e.markSeq < r.seq) {
		e.mark, e.markSeq = search, r.seq
	}
	return false
}

// noteChanged records that the other waiters at e may have got id's owner as a
// blocker: it has converted, asks to convert, or was given a lock from elsewhere.
// A newcomer never becomes a blocker of those who wait: they were compatible
// with what it was granted, or waited for it as one before them.
//
// The blocker went from old to l, held or asked for.
func (t *table) noteChanged(e *entry, id requestID, old, l Lock) {
	for q := e.queue.head; q != 0; q = t.requests[q].qnext {
		if w := t.requests[q].want; q != id && w.compatible(old) && !w.compatible(l) {
			t.changed = append(t.changed, q)
		}
	}
}

func (t *table) ensure(k txnproto.Key) entryID {
	ref := t.index.Ref(k)
	if *ref != 0 {
		return entryID(*ref)
	}
	var eid entryID
	if n := len(t.freeEnt); n > 0 {
		eid = t.freeEnt[n-1]
		t.freeEnt = t.freeEnt[:n-1]
		e := &t.entries[eid]
		// Idle entries have empty lists and tallies; only the key differs.
		e.key, e.mark = k, 0
	} else {
		eid = entryID(len(t.entries))
		t.entries = append(t.entries, entry{key: k})
	}
	*ref = int32(eid)
	if t.ordered != nil {
		t.ordered.add(k)
	}
	return eid
}

// find returns o's request at an entry. It goes through the shorter of the two
// lists that would have it: the key's holders and waiters, or o's own.
func (t *table) find(o owner, eid entryID) requestID {
	e := &t.entries[eid]
	if int(e.granted.n) <= len(t.owned[o]) {
		// o does not wait when it asks, but force may meet it waiting.
		for g := e.granted.head; g != 0; g = t.requests[g].next {
			if t.requests[g].owner == o {
				return g
			}
		}
		if e.queue.n == 0 {
			return 0
		}
	}
	for _, id := range t.owned[o] {
		if t.requests[id].entry == eid {
			return id
		}
	}
	return 0
}

func (t *table) newRequest(o owner, eid entryID) requestID {
	var id requestID
	if n := len(t.freeReq); n > 0 {
		id = t.freeReq[n-1]
		t.freeReq = t.freeReq[:n-1]
	} else {
		id = requestID(len(t.requests))
		t.requests = append(t.requests, request{})
	}
	t.requests[id] = request{owner: o, entry: eid}
	t.owned[o] = append(t.owned[o], id)
	return id
}

func (t *table) freeRequest(id requestID) { t.freeReq = append(t.freeReq, id) }

// disown takes a request off its owner's list, usually the list's last.
func (t *table) disown(o owner, id requestID) {
	ids := t.owned[o]
	for i := len(ids) - 1; i >= 0; i-- {
		if ids[i] == id {
			t.owned[o] = append(ids[:i], ids[i+1:]...)
			return
		}
	}
	panic(fmt.Sprintf("locking: request %d is not on the list of owner %d", id, o))
}

func (t *table) grant(e *entry, id requestID, l Lock) {
	r := &t.requests[id]
	r.held = l
	e.held.add(l)
	r.prev, r.next = e.granted.tail, 0
	if r.prev != 0 {
		t.requests[r.prev].next = id
	} else {
		e.granted.head = id
	}
	e.granted.tail = id
	e.granted.n++
}

func (t *table) ungrant(e *entry, id requestID) {
	r := &t.requests[id]
	e.held.remove(r.held)
	r.held = Lock{}
	if r.prev != 0 {
		t.requests[r.prev].next = r.next
	} else {
		e.granted.head = r.next
	}
	if r.next != 0 {
		t.requests[r.next].prev = r.prev
	} else {
		e.granted.tail = r.prev
	}
	e.granted.n--
}

func (t *table) setHeld(e *entry, r *request, l Lock) {
	e.held.remove(r.held)
	e.held.add(l)
	r.held = l
}

// enqueue puts a request into the queue: a newcomer at the end, a conversion
// behind the last conversion.
func (t *table) enqueue(e *entry, id requestID, want Lock) {
	r := &t.requests[id]
	t.seq++
	r.want, r.seq = want, t.seq
	e.waited.add(want)
	e.queue.n++
	after := e.queue.tail
	if r.converts {
		after = 0
		for q := e.queue.head; q != 0 && t.requests[q].converts; q = t.requests[q].qnext {
			after = q
		}
	}
	r.qprev = after
	if after != 0 {
		r.qnext = t.requests[after].qnext
		t.requests[after].qnext = id
	} else {
		r.qnext = e.queue.head
		e.queue.head = id
	}
	if r.qnext != 0 {
		t.requests[r.qnext].qprev = id
	} else {
		e.queue.tail = id
	}
}

func (t *table) dequeue(e *entry, id requestID) {
	r := &t.requests[id]
	e.waited.remove(r.want)
	r.want, r.converts = Lock{}, false
	if r.qprev != 0 {
		t.requests[r.qprev].qnext = r.qnext
	} else {
		e.queue.head = r.qnext
	}
	if r.qnext != 0 {
		t.requests[r.qnext].qprev = r.qprev
	} else {
		e.queue.tail = r.qprev
	}
	r.qnext, r.qprev = 0, 0
	e.queue.n--
}
