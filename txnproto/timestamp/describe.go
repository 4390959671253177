package timestamp

import (
	"fmt"
	"strings"

	"interleave/txnproto"
)

// Describe implements txnproto.Describer: read and write timestamps and pending
// writes by key, and the read timestamps that scans have left on ranges.
func (c *basic) Describe(n *txnproto.Names) string {
	return c.items.describeNamed(c, n) + c.ranges.describe(n)
}

// Describe implements txnproto.Describer: of each key its versions by the timestamps of
// their writers, the youngest first, with the read timestamp of each.
func (c *multiversion) Describe(n *txnproto.Names) string {
	return c.versions.describe(c, n) + c.ranges.describe(n)
}

// describe writes where the read timestamp of ranges changes.
func (r *ranges) describe(n *txnproto.Names) string {
	var b strings.Builder
	for k, ts, ok := r.steps.Ceil(0); ok; k, ts, ok = r.steps.Ceil(k + 1) {
		fmt.Fprintf(&b, " from %s R=%d", n.Key(k), ts)
	}
	if b.Len() == 0 {
		return ""
	}
	return "scans:" + b.String() + "\n"
}
