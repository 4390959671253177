//go:build slow

package conformance

import (
	"testing"

	"interleave/txnproto"
)

// TestThePreventedNeverOccursSlow: a million random transactions for each protocol.
func TestThePreventedNeverOccursSlow(t *testing.T) {
	for _, p := range txnproto.Protocols() {
		if !isBroken(p.Name) {
			t.Run(p.Name, func(t *testing.T) { random(t, p, 1_000_000, 1000) })
		}
	}
}
