package locking

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"interleave/txnproto"
)

// Describe implements txnproto.Describer: the lock table, a line per locked key, holders
// before waiters, as describe says. Gaps bear the name of the key at their upper end.
func (c *twoPhase) Describe(n *txnproto.Names) string {
	name := func(o owner) string { return n.Txn(c.branches[o].id) }
	text := c.table.describe(name, n.Key) + c.describeSpans(n)
	if c.basic != nil {
		text += c.describeBasic(n)
	}
	return text
}

// describeSpans writes who holds S on which ranges, a line per holder in the order of
// their first, under ordered locking.
func (c *twoPhase) describeSpans(n *txnproto.Names) string {
	var b strings.Builder
	for _, o := range c.scanners {
		b.WriteString("ranges of " + n.Txn(c.branches[o].id) + ":")
		for _, s := range c.branches[o].ranges {
			b.WriteString(" " + n.Range(s.lo, s.hi))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// describe writes the table, a line per key in key order, for people:
//
//	5: T1 X | T2 S, T3 S
//
// says that T1 holds X on row 5 and T2 and T3 wait for S, T2 first.
func (t *table) describe(name func(owner) string, key func(txnproto.Key) string) string {
	var ids []entryID
	for i := range t.entries {
		if i > 0 && t.index.Get(t.entries[i].key) == int32(i) {
			ids = append(ids, entryID(i))
		}
	}
	slices.SortFunc(ids, func(a, b entryID) int { return cmp.Compare(t.entries[a].key, t.entries[b].key) })
	var b strings.Builder
	for _, id := range ids {
		e := &t.entries[id]
		switch e.key {
		case endOfKeys:
			b.WriteString("end:")
		case tableKey:
			b.WriteString("table:")
		default:
			b.WriteString(key(e.key) + ":")
		}
		sep := " "
		for g := e.granted.head; g != 0; g = t.requests[g].next {
			r := &t.requests[g]
			fmt.Fprintf(&b, "%s%s %v", sep, name(r.owner), r.held)
			sep = ", "
		}
		sep = " | "
		for q := e.queue.head; q != 0; q = t.requests[q].qnext {
			r := &t.requests[q]
			fmt.Fprintf(&b, "%s%s %v", sep, name(r.owner), r.want)
			sep = ", "
		}
		b.WriteByte('\n')
	}
	return b.String()
}
