package nodes

import (
	"testing"

	"pgregory.net/rapid"

	"interleave/txnproto"
)

// TestTxnTable compares the table with Go's map, on ids that collide.
func TestTxnTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table txnTable[int]
		model := map[txnproto.TxnID]*int{}
		id := rapid.Custom(func(t *rapid.T) txnproto.TxnID {
			return txnproto.TxnID(rapid.IntRange(0, 3).Draw(t, "run")*16 + rapid.IntRange(0, 12).Draw(t, "place"))
		})
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			txn := id.Draw(t, "txn")
			if rapid.Bool().Draw(t, "put") {
				v := new(int)
				table.put(txn, v)
				model[txn] = v
			} else {
				table.del(txn)
				delete(model, txn)
			}
			if other := id.Draw(t, "other"); table.get(other) != model[other] || table.n != len(model) {
				t.Fatalf("%v is %p, want %p; %d records, want %d", other, table.get(other), model[other], table.n, len(model))
			}
		}
		seen := 0
		for txn, v := range table.all {
			seen++
			if model[txn] != v {
				t.Fatalf("%v is %p, want %p", txn, v, model[txn])
			}
		}
		if seen != len(model) {
			t.Fatalf("%d records are listed, want %d", seen, len(model))
		}
	})
}
