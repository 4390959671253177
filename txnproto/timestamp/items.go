package timestamp

import (
	"fmt"
	"strings"

	"interleave/txnproto"
	"interleave/txnproto/keymap"
)

// items holds the timestamps of every key touched and the writes pending on
// them. Items are never dropped, as a late transaction may come at any time;
// they cost some forty bytes a key.
type items struct {
	index   keymap.Map // key -> itemID
	all     []item
	pending []pending
	free    []pendingID

	// irregular holds the keys with a write timestamp or a pending write that the
	// store does not list, or may stop listing before Finish: rows being inserted,
	// being deleted, deleted. A scan goes through them beside the store's.
	irregular keySet
}

type (
	itemID    int32
	pendingID int32
)

// item is one key's state.
type item struct {
	read    txnproto.Timestamp // R: of the youngest reader
	written txnproto.Timestamp // W: of the newest version, from its prepare on
	newest  pendingID          // pending writes, youngest first
}

// pending is a granted write whose transaction has not ended.
type pending struct {
	key     txnproto.Key
	ts      txnproto.Timestamp
	owner   int32 // slot
	item    itemID
	next    pendingID // the item's next older one
	nextOwn pendingID // the transaction's previous one
}

func newItems() items { return items{all: make([]item, 1), pending: make([]pending, 1)} }

// find returns k's item, 0 when it has none.
func (s *items) find(k txnproto.Key) itemID { return itemID(s.index.Get(k)) }

func (s *items) ensure(k txnproto.Key) itemID {
	ref := s.index.Ref(k)
	if *ref == 0 {
		*ref = int32(len(s.all))
		s.all = append(s.all, item{})
	}
	return itemID(*ref)
}

// olderPending returns the youngest pending write that is older than ts.
func (s *items) olderPending(id itemID, ts txnproto.Timestamp) pendingID {
	p := s.all[id].newest
	for p != 0 && s.pending[p].ts >= ts {
		p = s.pending[p].next
	}
	return p
}

// pendingOf returns the pending write of the transaction with timestamp ts.
func (s *items) pendingOf(id itemID, ts txnproto.Timestamp) pendingID {
	for p := s.all[id].newest; p != 0; p = s.pending[p].next {
		if s.pending[p].ts == ts {
			return p
		}
	}
	return 0
}

// place is where the link to the first pending write older than ts stands.
func (s *items) place(id itemID, ts txnproto.Timestamp) *pendingID {
	link := &s.all[id].newest
	for *link != 0 && s.pending[*link].ts > ts {
		link = &s.pending[*link].next
	}
	return link
}

func (s *items) addPending(id itemID, w pending) pendingID {
	var p pendingID
	if n := len(s.free); n > 0 {
		p = s.free[n-1]
		s.free = s.free[:n-1]
	} else {
		p = pendingID(len(s.pending))
		s.pending = append(s.pending, pending{})
	}
	link := s.place(id, w.ts)
	w.next = *link
	*link = p
	s.pending[p] = w
	return p
}

func (s *items) dropPending(p pendingID) {
	w := &s.pending[p]
	link := s.place(w.item, w.ts)
	if *link != p {
		panic(fmt.Sprintf("timestamp: the write of key %d at %d is not pending", w.key, w.ts))
	}
	*link = w.next
	s.free = append(s.free, p)
}

// settle takes a key that no write is pending on from the irregular ones when
// the store lists it or nothing was ever written to it.
func (s *items) settle(id itemID, k txnproto.Key, store txnproto.Store) {
	it := &s.all[id]
	if s.irregular.Len() == 0 || it.newest != 0 {
		return
	}
	if it.written == 0 || store.Get(k).Exists {
		s.irregular.Delete(k)
	}
}

func (s *items) describe(c *basic) string { return s.describeNamed(c, nil) }

// describeNamed writes a line per key: its read and write timestamps, and who has
// writes pending on it, the youngest first.
func (s *items) describeNamed(c *basic, n *txnproto.Names) string {
	var keys keymap.Ordered[itemID]
	s.index.Each(func(k txnproto.Key, v int32) { keys.Set(k, itemID(v)) })
	var b strings.Builder
	for k, id, ok := keys.Ceil(0); ok; k, id, ok = keys.Ceil(k + 1) {
		it := &s.all[id]
		fmt.Fprintf(&b, "%s: R=%d W=%d", n.Key(k), it.read, it.written)
		sep := " pending "
		for p := it.newest; p != 0; p = s.pending[p].next {
			b.WriteString(sep + n.Txn(c.branches[s.pending[p].owner].id))
			sep = ", "
		}
		b.WriteByte('\n')
	}
	return b.String()
}
