package sim_test

import (
	"os"
	"strings"
	"testing"

	"interleave/txnproto/conformance"
	_ "interleave/txnproto/conformance/testdata/predicate"
)

// TestGuide: the protocol that docs/write-a-protocol.md makes is this one, and it
// does what the guide says.
func TestGuide(t *testing.T) {
	doc, err := os.ReadFile("../docs/write-a-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("../txnproto/conformance/testdata/predicate/predicate.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), "```go\n"+string(code)+"```\n") {
		t.Error("the guide does not show txnproto/conformance/testdata/predicate/predicate.go as it is")
	}
	conformance.Run(t, "predicate-nowait")
	for _, w := range [][]string{
		{"theta=0.9", "distribution=zipfian", "keys=1000", "ops=4"},
		{"keys=50", "ops=4", "scan=0.4", "insert=0.4", "update=0.1", "distribution=uniform"},
	} {
		spec := specOf(t, append([]string{"protocol=predicate-nowait", "replication=quorum", "clients=8", "requests=500"}, w...)...)[0]
		res := runOne(t, spec)
		mustBeOK(t, res)
		if res.Committed == 0 {
			t.Error("nothing was committed")
		}
	}
}
