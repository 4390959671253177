package snapshot

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"interleave/txnproto/controltest"
)

// The scenarios in testdata, each told in its file.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) { controltest.Script(t, path) })
}
