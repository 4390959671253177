package deterministic

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"interleave/txnproto"
)

// Describe implements txnproto.Describer: who is being collected, the order of those
// who have a place, and the queues of the rows:
//
//	next batch: T3
//	order: T1, T2
//	x: T1 X | T2 S
//	ranges of T2: [a..c]
//
// says that T1 has x exclusively and T2 waits to share it.
func (c *controller) Describe(n *txnproto.Names) string {
	var b strings.Builder
	var names []string
	for _, t := range c.open.Txns {
		if t.ID != 0 {
			names = append(names, n.Txn(t.ID))
		}
	}
	list(&b, "next batch", names)
	names = nil
	for i := range c.sealed {
		if c.sealed[i].batch == nil {
			continue
		}
		for _, t := range c.sealed[i].batch.Txns {
			names = append(names, n.Txn(t.ID))
		}
	}
	list(&b, "going into the log", names)
	names = nil
	for _, eid := range c.inOrder() {
		names = append(names, n.Txn(c.entries[eid].id))
	}
	list(&b, "order", names)
	c.describeRows(&b, n)
	return b.String()
}

func list(b *strings.Builder, what string, names []string) {
	if len(names) > 0 {
		b.WriteString(what + ": " + strings.Join(names, ", ") + "\n")
	}
}

// inOrder lists the transactions that have a place here, in its order.
func (c *controller) inOrder() []entryID {
	var ids []entryID
	for i := range c.entries {
		if e := &c.entries[i]; e.id != 0 && e.stage != dropped {
			ids = append(ids, entryID(i))
		}
	}
	slices.SortFunc(ids, func(a, b entryID) int {
		x, y := &c.entries[a], &c.entries[b]
		return cmp.Or(cmp.Compare(x.place, y.place), cmp.Compare(x.id, y.id))
	})
	return ids
}

func (c *controller) describeRows(b *strings.Builder, n *txnproto.Names) {
	t := &c.table
	var ids []rowID
	for i := range t.rows {
		if i > 0 && t.index.Get(t.rows[i].key) == int32(i) {
			ids = append(ids, rowID(i))
		}
	}
	slices.SortFunc(ids, func(x, y rowID) int { return cmp.Compare(t.rows[x].key, t.rows[y].key) })
	for _, id := range ids {
		r := &t.rows[id]
		b.WriteString(n.Key(r.key) + ":")
		sep := " "
		for q := r.head; q != 0; q = t.requests[q].next {
			mode := "S"
			if t.requests[q].exclusive {
				mode = "X"
			}
			if q == r.next {
				sep = " | "
			}
			fmt.Fprintf(b, "%s%s %s", sep, n.Txn(c.entries[t.requests[q].owner].id), mode)
			sep = ", "
		}
		b.WriteByte('\n')
	}
	last := entryID(0)
	for _, s := range t.spans {
		if s.owner != last {
			if last != 0 {
				b.WriteByte('\n')
			}
			b.WriteString("ranges of " + n.Txn(c.entries[s.owner].id) + ":")
			last = s.owner
		}
		b.WriteString(" " + n.Range(s.lo, s.hi))
	}
	if last != 0 {
		b.WriteByte('\n')
	}
}

// String shows the state.
func (c *controller) String() string { return c.Describe(nil) }

// Leftover tells what is kept, for the conformance suite.
func (c *controller) Leftover() string {
	if n := c.index.Len() + c.table.index.Len() + len(c.table.spans) + len(c.open.Txns) + len(c.sealed); n == 0 && !c.timing {
		return ""
	}
	return c.String() + fmt.Sprintf("%d transactions, %d rows, %d epochs, timer %v", c.index.Len(), c.table.index.Len(), len(c.sealed), c.timing)
}
