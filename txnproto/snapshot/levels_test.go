package snapshot

import (
	"testing"

	"interleave/txnproto"
	"interleave/txnproto/controltest"
	"interleave/txnproto/history"
)

func read(k txnproto.Key) txnproto.Op { return txnproto.Op{Kind: txnproto.Read, Key: k} }

func write(k txnproto.Key) txnproto.Op { return txnproto.Op{Kind: txnproto.Write, Key: k, Value: 1} }

func modify(k txnproto.Key) txnproto.Op { return txnproto.Op{Kind: txnproto.Modify, Key: k, Value: 1} }

func insert(k txnproto.Key) txnproto.Op { return txnproto.Op{Kind: txnproto.Insert, Key: k, Value: 1} }

func scan(lo, hi txnproto.Key) txnproto.Op {
	return txnproto.Op{Kind: txnproto.Scan, Key: lo, End: hi}
}

// Each case is run in every interleaving; the protocols named show the anomaly in
// some, the others in none, and all keep what they promise. Rows are those of Berenson
// et al. 1995, table 4, and a scan counts as a read of each row of its range; the
// receipts are the example of Ports and Grittner 2012, sec. 2.1.2, where it takes the
// reader to make an anomaly.
func TestEveryInterleaving(t *testing.T) {
	type ops = []txnproto.Op
	cases := []struct {
		name     string
		programs []ops
		kind     history.Kind
		shown    map[string]bool
	}{
		{"dirty read", []ops{{write(1), write(1)}, {read(1), read(2)}}, history.G1b, nil},
		{"non-repeatable read", []ops{{read(1), read(2)}, {write(1), write(2)}}, history.GSingle, map[string]bool{"rc": true}},
		{"lost update", []ops{{read(1), write(1)}, {read(1), write(1)}}, history.LostUpdate, map[string]bool{"rc": true}},
		{"update in place", []ops{{modify(1), modify(2)}, {modify(2), modify(1)}}, history.LostUpdate, nil},
		{"write skew", []ops{{read(1), read(2), write(1)}, {read(1), read(2), write(2)}}, history.G2Item, map[string]bool{"rc": true, "si": true}},
		{"phantom", []ops{{scan(3, 6), write(1)}, {read(1), insert(4)}}, history.G2Item, map[string]bool{"rc": true, "si": true}},
		{"two inserts", []ops{{scan(3, 6), insert(3)}, {scan(3, 6), insert(4)}}, history.G2Item, map[string]bool{"rc": true, "si": true}},
		// The clerk reads the batch number and adds a receipt, the batch is closed, the
		// report reads the closed batch and its receipts.
		{"receipts", []ops{{read(1), insert(4)}, {modify(1)}, {read(1), scan(3, 6)}}, history.G2Item, map[string]bool{"rc": true, "si": true}},
	}
	for _, c := range cases {
		for _, name := range names {
			for _, shards := range []int{1, 2} {
				if len(c.programs) > 2 && shards > 1 {
					continue // too many interleavings
				}
				shown, kept := false, true
				p := protocol(t, name)
				level, err := history.ParseLevel(p.Promise)
				if err != nil {
					t.Fatal(err)
				}
				runs, err := controltest.Explore(controltest.Config{
					Protocol: p, Shards: shards, Keys: 7, Present: []txnproto.Key{1, 2, 5}, LateBegin: true,
				}, c.programs, func(r controltest.Run) error {
					res := controltest.CheckLevel(r.History, level)
					kept = kept && res.OK
					for _, n := range res.Counts {
						shown = shown || n.Kind == c.kind
					}
					return nil
				})
				if err != nil {
					t.Fatalf("%s under %s: %v", c.name, name, err)
				}
				if shown != c.shown[name] || !kept {
					t.Errorf("%s under %s on %d shards, %d interleavings: shown is %v, want %v; the promise is kept: %v",
						c.name, name, shards, runs, shown, c.shown[name], kept)
				}
			}
		}
	}
}
