package reports

import (
	"strings"
	"testing"

	"interleave/txnproto"
)

// What a protocol counts for itself is in the table, in order of name, and
// protocols that count nothing have no line there.
func TestCountersAreShown(t *testing.T) {
	plain := play(testSpec("x", "uniform", ""), 2, txnproto.TSOrder)
	if s := newComparison([]*Result{plain}).counters(); s != "" {
		t.Errorf("nothing is counted, yet: %s", s)
	}
	counted := play(testSpec("y", "uniform", ""), 2, txnproto.TSOrder)
	counted.ProtocolExtra = map[string]uint64{"skipped-writes": 1234, "old-versions": 5}
	var b strings.Builder
	if err := WriteTable(&b, []*Result{plain, counted}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "old versions 5 · skipped writes 1,234") {
		t.Errorf("the counters are not there:\n%s", b.String())
	}
}
