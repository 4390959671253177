package timestamp

import (
	"testing"

	"pgregory.net/rapid"

	"interleave/txnproto"
)

// Ranges agree with an array, and have no step that is none.
func TestRangesAgreeWithArray(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const keys = 40
		var r ranges
		var model [keys]txnproto.Timestamp
		for range rapid.IntRange(0, 60).Draw(t, "scans") {
			lo := rapid.IntRange(0, keys-1).Draw(t, "lo")
			hi := rapid.IntRange(lo+1, keys).Draw(t, "hi")
			ts := txnproto.Timestamp(rapid.IntRange(1, 30).Draw(t, "ts"))
			r.raise(txnproto.Key(lo), txnproto.Key(hi), ts)
			for k := lo; k < hi; k++ {
				model[k] = max(model[k], ts)
			}
			steps, before := 0, txnproto.Timestamp(0)
			for k, want := range model {
				if got := r.read(txnproto.Key(k)); got != want {
					t.Fatalf("key %d: %d, want %d (%v)", k, got, want, &r)
				}
				if want != before {
					steps++
				}
				before = want
			}
			if before != 0 {
				steps++
			}
			if r.read(keys) != 0 || r.steps.Len() != steps {
				t.Fatalf("%d steps, want %d (%v)", r.steps.Len(), steps, &r)
			}
		}
	})
}
