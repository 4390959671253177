package locking

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// describe writes the table, a line per key in key order, for people:
//
//	5: T1 X | T2 S, T3 S
//
// says that T1 holds X on row 5 and T2 and T3 wait for S, T2 first.
func (t *table) describe(name func(owner) string) string {
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
		if e.key == endOfKeys {
			b.WriteString("end:")
		} else {
			fmt.Fprintf(&b, "%d:", e.key)
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
