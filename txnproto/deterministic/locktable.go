package deterministic

import (
	"interleave/txnproto"
	"interleave/txnproto/keymap"
)

// table is a shard's locks: a queue for each row in which somebody has an interest,
// first come, first served. Requests come in the order of places, whole transactions
// at a time, and are never added to.
//
// A request is granted when it is compatible with all before it: a shared one when
// these are all shared, an exclusive one when there are none.
//
// A range is a shared request for each row in it, there or not. It stands in the queue
// of a row that has one: those that had one when the range came, and those that get one
// later, where it is put before the newcomer. The invariant is:
//
//	The owner of a range has a request in the queue of each row of it that has one.
//
// Entries, rows and requests live in pools and are named by index; 0 is none.
type table struct {
	index    keymap.Map // key → row
	rows     []row
	freeRow  []rowID
	requests []request
	freeReq  []requestID
	owners   []owner // by entryID
	spans    []span  // in the order in which they came

	// ordered are the keys of the rows, in order, kept from the first range on.
	ordered *keymap.Ordered[struct{}]

	woken    []entryID // owners that have got all they miss; the caller empties it
	blockers []entryID // scratch
}

type (
	rowID     int32
	requestID int32
)

// row is a key's queue.
type row struct {
	key        txnproto.Key
	head, tail requestID
	next       requestID // the first that is not granted
	waiting    int32
}

// request is one owner's business at one row.
type request struct {
	owner      entryID
	row        rowID
	next, prev requestID // in the row's queue
	sibling    requestID // the owner's next
	exclusive  bool
	granted    bool
}

// owner is what the table keeps for a transaction.
type owner struct {
	first, last requestID
	missing     int32 // requests that are not granted
	ranged      bool
}

// span is a range that is claimed.
type span struct {
	owner  entryID
	lo, hi txnproto.Key
}

func newTable() table {
	return table{rows: make([]row, 1), requests: make([]request, 1)}
}

func (t *table) owner(o entryID) *owner {
	for int(o) >= len(t.owners) {
		t.owners = append(t.owners, owner{})
	}
	return &t.owners[o]
}

// claim asks for everything that o wants. Claims are sorted.
func (t *table) claim(o entryID, claims []txnproto.Claim) {
	*t.owner(o) = owner{}
	for i := range claims {
		if c := &claims[i]; !c.Ranged() {
			t.ask(o, t.ensure(c.Key, o), c.Exclusive)
		}
	}
	for i := range claims {
		if c := &claims[i]; c.Ranged() {
			t.askRange(o, c.Key, c.End)
		}
	}
}

// ask puts a request at the end of a row's queue.
func (t *table) ask(o entryID, at rowID, exclusive bool) {
	var id requestID
	if n := len(t.freeReq); n > 0 {
		id = t.freeReq[n-1]
		t.freeReq = t.freeReq[:n-1]
	} else {
		id = requestID(len(t.requests))
		t.requests = append(t.requests, request{})
	}
	r := &t.rows[at]
	granted := r.head == 0 || !exclusive && r.next == 0 && !t.requests[r.tail].exclusive
	t.requests[id] = request{owner: o, row: at, prev: r.tail, exclusive: exclusive, granted: granted}
	if r.tail != 0 {
		t.requests[r.tail].next = id
	} else {
		r.head = id
	}
	r.tail = id
	w := &t.owners[o]
	if w.last != 0 {
		t.requests[w.last].sibling = id
	} else {
		w.first = id
	}
	w.last = id
	if granted {
		return
	}
	w.missing++
	r.waiting++
	if r.next == 0 {
		r.next = id
	}
}

// ensure returns the row of k for a request of newcomer. When it is made, those who
// have claimed a range over it come first.
func (t *table) ensure(k txnproto.Key, newcomer entryID) rowID {
	ref := t.index.Ref(k)
	if *ref != 0 {
		return rowID(*ref)
	}
	var id rowID
	if n := len(t.freeRow); n > 0 {
		id = t.freeRow[n-1]
		t.freeRow = t.freeRow[:n-1]
	} else {
		id = rowID(len(t.rows))
		t.rows = append(t.rows, row{})
	}
	t.rows[id] = row{key: k}
	*ref = int32(id)
	if t.ordered != nil {
		t.ordered.Set(k, struct{}{})
	}
	for i := range t.spans {
		if s := &t.spans[i]; s.lo <= k && k < s.hi && s.owner != newcomer {
			t.share(s.owner, id)
		}
	}
	return id
}

// share asks for a row in a range, unless the owner was the last to ask for it: one
// transaction asks for all it wants before the next.
func (t *table) share(o entryID, at rowID) {
	if tail := t.rows[at].tail; tail == 0 || t.requests[tail].owner != o {
		t.ask(o, at, false)
	}
}

// askRange asks for the range [lo, hi).
func (t *table) askRange(o entryID, lo, hi txnproto.Key) {
	if t.ordered == nil {
		t.ordered = &keymap.Ordered[struct{}]{}
		for i := range t.rows {
			if i > 0 && t.index.Get(t.rows[i].key) == int32(i) {
				t.ordered.Set(t.rows[i].key, struct{}{})
			}
		}
	}
	t.owners[o].ranged = true
	t.spans = append(t.spans, span{o, lo, hi})
	for k, _, ok := t.ordered.Ceil(lo); ok && k < hi; k, _, ok = t.ordered.Ceil(k + 1) {
		t.share(o, rowID(t.index.Get(k)))
	}
}

// release takes back all that o has asked for, and grants what is free.
func (t *table) release(o entryID) {
	w := t.owners[o]
	t.owners[o] = owner{}
	if w.ranged {
		n := 0
		for _, s := range t.spans {
			if s.owner != o {
				t.spans[n] = s
				n++
			}
		}
		t.spans = t.spans[:n]
	}
	for id := w.first; id != 0; {
		sibling := t.requests[id].sibling
		t.unlink(id)
		t.freeReq = append(t.freeReq, id)
		id = sibling
	}
}

// unlink takes a request out of its row's queue.
func (t *table) unlink(id requestID) {
	q := t.requests[id]
	r := &t.rows[q.row]
	if q.prev != 0 {
		t.requests[q.prev].next = q.next
	} else {
		r.head = q.next
	}
	if q.next != 0 {
		t.requests[q.next].prev = q.prev
	} else {
		r.tail = q.prev
	}
	if r.next == id {
		r.next = q.next
	}
	if !q.granted {
		r.waiting--
	}
	if r.head == 0 {
		t.index.Delete(r.key)
		if t.ordered != nil {
			t.ordered.Delete(r.key)
		}
		t.freeRow = append(t.freeRow, q.row)
		return
	}
	t.grant(r)
}

// grant lets those have a row who can, in turn.
func (t *table) grant(r *row) {
	for r.next != 0 {
		q := &t.requests[r.next]
		if r.head != r.next && (q.exclusive || t.requests[q.prev].exclusive) {
			return
		}
		q.granted = true
		r.waiting--
		r.next = q.next
		if w := &t.owners[q.owner]; w.missing > 1 {
			w.missing--
		} else {
			w.missing = 0
			t.woken = append(t.woken, q.owner)
		}
	}
}

// firstMissing is the first of o's requests that is not granted. REQUIRES: one is.
func (t *table) firstMissing(o entryID) requestID {
	for id := t.owners[o].first; id != 0; id = t.requests[id].sibling {
		if !t.requests[id].granted {
			return id
		}
	}
	panic("deterministic: everything is granted to who waits")
}

// appendBlockers appends the owners that a request waits for directly: the nearest
// before it that it is not compatible with. These wait for those before them.
func (t *table) appendBlockers(dst []entryID, id requestID) []entryID {
	q := &t.requests[id]
	for p := q.prev; p != 0; p = t.requests[p].prev {
		b := &t.requests[p]
		if b.exclusive {
			if len(dst) == 0 {
				dst = append(dst, b.owner)
			}
			break
		}
		if q.exclusive {
			dst = append(dst, b.owner)
		}
	}
	return dst
}
