package conformance

import (
	"interleave/txnproto"
	"interleave/txnproto/controltest"
	"interleave/txnproto/history"
)

// Anomaly is something that a level may allow, with programs that show it in some
// interleaving wherever it is possible.
type Anomaly struct {
	Name     string
	Kind     history.Kind // what the checker calls it
	Source   string
	Programs [][]txnproto.Op
}

// Anomalies are those of the table, weakest level first. A scan counts as a read of
// every row in its range, so that a phantom is a write skew to the checker here.
// Rows 1 and 2 exist, rows 3 and 4 do not.
func Anomalies() []Anomaly {
	read := func(k txnproto.Key) txnproto.Op { return txnproto.Op{Kind: txnproto.Read, Key: k} }
	write := func(k txnproto.Key) txnproto.Op { return txnproto.Op{Kind: txnproto.Write, Key: k, Value: 1} }
	insert := func(k txnproto.Key) txnproto.Op { return txnproto.Op{Kind: txnproto.Insert, Key: k, Value: 1} }
	scan := func(lo, hi txnproto.Key) txnproto.Op { return txnproto.Op{Kind: txnproto.Scan, Key: lo, End: hi} }
	type ops = []txnproto.Op
	return []Anomaly{
		{
			"dirty write", history.G0, "Berenson et al. 1995, P0",
			[][]txnproto.Op{ops{write(1), write(2)}, ops{write(2), write(1)}},
		},
		{
			"aborted read", history.G1a, "Berenson et al. 1995, A1; Adya 1999, G1a",
			[][]txnproto.Op{ops{write(1), controltest.RollBack}, ops{read(1)}},
		},
		{
			"dirty read", history.G1b, "Berenson et al. 1995, P1",
			[][]txnproto.Op{ops{write(1), write(1)}, ops{read(1), read(2)}},
		},
		{
			"circular flow", history.G1c, "Adya 1999, G1c",
			[][]txnproto.Op{ops{write(1), read(2)}, ops{write(2), read(1)}},
		},
		{
			"read skew", history.GSingle, "Berenson et al. 1995, A5A, and P2",
			[][]txnproto.Op{ops{read(1), read(2)}, ops{write(1), write(2)}},
		},
		{
			"lost update", history.LostUpdate, "Berenson et al. 1995, P4",
			[][]txnproto.Op{ops{read(1), write(1)}, ops{read(1), write(1)}},
		},
		{
			"write skew", history.G2Item, "Berenson et al. 1995, A5B",
			[][]txnproto.Op{ops{read(1), read(2), write(1)}, ops{read(1), read(2), write(2)}},
		},
		{
			"phantom", history.G2Item, "Berenson et al. 1995, A3, as a skew of two inserts",
			[][]txnproto.Op{ops{scan(3, 5), insert(3)}, ops{scan(3, 5), insert(4)}},
		},
	}
}

// Possible lists, for each protocol, the anomalies that it does not prevent.
var Possible = map[string][]string{
	"2pl":           nil,
	"2pl-nowait":    nil,
	"2pl-waitdie":   nil,
	"2pl-woundwait": nil,
	"2pl-timeout":   nil,
	"2pl-ordered":   nil,
	"2pl-basic":     {"aborted read"},
	"to":            nil,
	"to-thomas":     nil,
	"to-strict":     nil,
	"mvto":          nil,
	"occ":           nil,
	"occ-parallel":  nil,
	"occ-forward":   nil,
	"occ-version":   {"read skew", "write skew", "phantom"},
	"silo":          nil,
	"tictoc":        nil,
	"rc":            {"read skew", "lost update", "write skew", "phantom"},
	"si":            {"write skew", "phantom"},
	"ssi":           nil,
	"mv2pl":         nil,
	"calvin":        nil,
}
