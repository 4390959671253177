//go:build slow

package conformance

import (
	"os"
	"strconv"
	"testing"

	"interleave/txnproto"
)

// TestThePreventedNeverOccursSlow: a hundred thousand random transactions for each
// protocol, or as many as RANDOM_TRANSACTIONS says.
func TestThePreventedNeverOccursSlow(t *testing.T) {
	transactions := 100_000
	if s := os.Getenv("RANDOM_TRANSACTIONS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("RANDOM_TRANSACTIONS: %v", err)
		}
		transactions = n
	}
	for _, p := range txnproto.Protocols() {
		if !isBroken(p.Name) {
			t.Run(p.Name, func(t *testing.T) { random(t, p, transactions, 1000) })
		}
	}
}
