package optimistic

import (
	"fmt"
	"strings"

	"interleave/txnproto"
	"interleave/txnproto/keymap"
)

// row is one row's newest version under tictoc.
type row struct {
	written txnproto.Timestamp // wts: it is valid from then
	read    txnproto.Timestamp // rts: at least until then
	base    txnproto.Version   // its number when a pending member locked it
}

// rows are the timestamps of every row touched, some forty bytes each. A row that
// was never touched has been valid from the floor to the floor.
type rows struct {
	index keymap.Map // key -> place in all
	all   []row
	floor txnproto.Timestamp
}

func newRows(floor txnproto.Timestamp) rows { return rows{all: make([]row, 1), floor: floor} }

// at returns k's row, valid until the next call.
func (s *rows) at(k txnproto.Key) *row {
	ref := s.index.Ref(k)
	if *ref == 0 {
		*ref = int32(len(s.all))
		s.all = append(s.all, row{written: s.floor, read: s.floor})
	}
	return &s.all[*ref]
}

// raise makes every version valid until ts at least.
func (s *rows) raise(ts txnproto.Timestamp) {
	s.floor = max(s.floor, ts)
	for i := range s.all {
		s.all[i].read = max(s.all[i].read, ts)
	}
}

func (s *rows) describe(b *strings.Builder, n *txnproto.Names) {
	var keys keymap.Ordered[int32]
	s.index.Each(func(k txnproto.Key, v int32) { keys.Set(k, v) })
	for k, i, ok := keys.Ceil(0); ok; k, i, ok = keys.Ceil(k + 1) {
		fmt.Fprintf(b, "%s valid from %d to %d\n", n.Key(k), s.all[i].written, s.all[i].read)
	}
}

// removals are the rows that are known to be absent because they were deleted.
type removals struct {
	at keymap.Ordered[txnproto.Timestamp]
}

// set notes that k is deleted or is not.
func (r *removals) set(k txnproto.Key, deleted bool, ts txnproto.Timestamp) {
	switch {
	case deleted:
		r.at.Set(k, ts)
	case r.at.Len() > 0:
		r.at.Delete(k)
	}
}

// latest is when the last of those in the range was deleted, 0 for none.
func (r *removals) latest(i interval) txnproto.Timestamp {
	if r.at.Len() == 0 {
		return 0
	}
	var ts txnproto.Timestamp
	for k, t, ok := r.at.Ceil(i.lo); ok && k < i.hi; k, t, ok = r.at.Ceil(k + 1) {
		ts = max(ts, t)
	}
	return ts
}

// intervalMax is a timestamp for each key that only grows, raised over intervals:
// steps, each the value from its key on to the next step.
type intervalMax struct {
	steps keymap.Ordered[txnproto.Timestamp]
}

// at returns k's value.
func (x *intervalMax) at(k txnproto.Key) txnproto.Timestamp {
	if x.steps.Len() == 0 {
		return 0
	}
	_, ts, _ := x.steps.Floor(k)
	return ts
}

// raise makes ts the least value in the interval. REQUIRES: it is not empty.
func (x *intervalMax) raise(i interval, ts txnproto.Timestamp) {
	i.hi = min(i.hi, maxKey)
	after := x.at(i.hi)
	x.steps.Set(i.lo, max(x.at(i.lo), ts))
	if _, ok := x.steps.Get(i.hi); !ok {
		x.steps.Set(i.hi, after)
	}
	before := txnproto.Timestamp(0)
	if i.lo > 0 {
		before = x.at(i.lo - 1)
	}
	for k, old, ok := x.steps.Ceil(i.lo); ok && k <= i.hi; k, old, ok = x.steps.Ceil(k + 1) {
		value := old
		if k < i.hi {
			value = max(old, ts)
		}
		if value == before {
			x.steps.Delete(k)
		} else {
			x.steps.Set(k, value)
		}
		before = value
	}
}

func (x *intervalMax) describe(b *strings.Builder, n *txnproto.Names) {
	for k, ts, ok := x.steps.Ceil(0); ok; k, ts, ok = x.steps.Ceil(k + 1) {
		fmt.Fprintf(b, "from %s on scanned until %d\n", n.Key(k), ts)
	}
}
