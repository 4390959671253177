package optimistic

import (
	"fmt"
	"slices"
	"strings"

	"interleave/txnproto"
)

// Describe implements txnproto.Describer: validated transactions by number, with what
// they wrote, as long as somebody may have to be validated against them; then who is
// in its read phase, since which number, and what it has read.
func (c *serial) Describe(n *txnproto.Names) string {
	var b strings.Builder
	for i := c.records.first; i <= c.records.last; i++ {
		r := c.records.at(i)
		state := "pending"
		switch {
		case r.aborted:
			state = "aborted"
		case r.finished != 0:
			state = "committed"
		}
		var keys []txnproto.Key
		for id := r.writes; id != 0; id = c.writers.nodes[id].own {
			keys = append(keys, c.writers.nodes[id].key)
		}
		slices.Sort(keys)
		fmt.Fprintf(&b, "#%d %s %s, wrote %s\n", i, n.Txn(r.txn), state, keyList(n, keys))
	}
	for s := c.oldest; s != 0; s = c.branches[s-1].newer {
		t := &c.branches[s-1]
		fmt.Fprintf(&b, "%s from #%d, read %s", n.Txn(t.id), t.start, keyList(n, t.reads))
		for _, r := range t.ranges {
			b.WriteString(" " + n.Range(r.lo, r.hi))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// keyList names keys as [x y].
func keyList(n *txnproto.Names, keys []txnproto.Key) string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = n.Key(k)
	}
	return "[" + strings.Join(names, " ") + "]"
}
