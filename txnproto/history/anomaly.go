package history

import (
	"fmt"
	"strings"
)

// Kind names a phenomenon that some isolation level rules out.
type Kind uint8

// The phenomena, worst first. The cycles among them are told apart by their edges
// alone, so each cycle has one name.
const (
	// Inconsistent: the history contradicts itself. A version was read that nobody
	// installed, or installed twice; a transaction or request ended twice.
	Inconsistent Kind = iota
	G0                // cycle of ww
	G1a               // read of a version whose transaction aborted or never ended
	G1b               // read of a version that its own transaction overwrote
	G1c               // cycle of ww and wr with a wr
	// LostUpdate: one rw and then ww, all on a key that the reader overwrote: its
	// write was computed from a version that was no longer the last.
	LostUpdate
	// OTV, observed transaction vanishes: T1 saw a write of T2 and later read a
	// version that another write of T2 had overwritten (Bailis et al., "Highly
	// Available Transactions", VLDB 2013; here for two transactions).
	OTV
	GSingle      // cycle with one rw, otherwise: read skew
	GNonadjacent // cycle of several rw, no two in a row
	G2Item       // cycle with two rw in a row, on keys that were read: write skew
	G2           // cycle with a predicate rw: phantom
	GRealTime    // cycle that needs a real-time edge
	numKinds
)

// kindText is what a reader sees of a kind.
var kindText = [numKinds]struct{ name, title string }{
	Inconsistent: {"inconsistent", "the history contradicts itself"},
	G0:           {"G0", "dirty write"},
	G1a:          {"G1a", "aborted read"},
	G1b:          {"G1b", "intermediate read"},
	G1c:          {"G1c", "circular information flow"},
	LostUpdate:   {"lost-update", "lost update"},
	OTV:          {"OTV", "observed transaction vanishes"},
	GSingle:      {"G-single", "read skew"},
	GNonadjacent: {"G-nonadjacent", "no snapshot explains the reads"},
	G2Item:       {"G2-item", "write skew"},
	G2:           {"G2", "phantom"},
	GRealTime:    {"G-realtime", "order of real time broken"},
}

// String returns the kind's name in reports and JSON.
func (k Kind) String() string {
	if k >= numKinds {
		panic(fmt.Sprintf("history: unknown kind %d", uint8(k)))
	}
	return kindText[k].name
}

// Title returns the kind in words: "write skew" for G2-item.
func (k Kind) Title() string {
	if k >= numKinds {
		panic(fmt.Sprintf("history: unknown kind %d", uint8(k)))
	}
	return kindText[k].title
}

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a kind's name.
func (k *Kind) UnmarshalText(text []byte) error {
	for i := range kindText {
		if kindText[i].name == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("unknown anomaly %q", text)
}

// The levels that a broken one breaks with it.
var (
	everyLevel     = levels(Levels()...)
	fromCommitted  = levels(ReadCommitted, Snapshot, RepeatableRead, Serializable, StrictSerializable)
	fromSnapshot   = levels(Snapshot, Serializable, StrictSerializable)
	fromRepeatable = levels(RepeatableRead, Serializable, StrictSerializable)
	fromSerial     = levels(Serializable, StrictSerializable)
	onlyStrict     = levels(StrictSerializable)
)

// Edge says why one transaction comes before another.
type Edge struct {
	From, To TxnID
	Kind     EdgeKind
	Because  string // one sentence
}

// Anomaly is one phenomenon found, with its reason.
type Anomaly struct {
	Kind    Kind
	Txns    []TxnID // those involved; in order of the cycle where there is one
	Cycle   []Edge  // empty for the kinds that are no cycles
	Because string  // for those, the reason
	Breaks  []Level // the levels that rule it out, weakest first
}

// Explain returns the anomaly in several lines: its name, a line for each edge of
// its cycle, and what follows. Lines end in newlines.
func (a *Anomaly) Explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v (%s): ", a.Kind, a.Kind.Title())
	if len(a.Cycle) == 0 {
		fmt.Fprintf(&b, "%s\n", a.Because)
	} else {
		fmt.Fprintf(&b, "cycle of %d transactions\n", len(a.Cycle))
		for _, e := range a.Cycle {
			fmt.Fprintf(&b, "  %v before %v (%v): %s\n", e.From, e.To, e.Kind, e.Because)
		}
	}
	names := make([]string, len(a.Breaks))
	for i, l := range a.Breaks {
		names[i] = l.String()
	}
	fmt.Fprintf(&b, "  not allowed by: %s\n", strings.Join(names, ", "))
	return b.String()
}

// link is an edge of a cycle between nodes of the history.
type link struct {
	from, to uint32
	kind     EdgeKind
}

// shape counts what a cycle's name depends on.
type shape struct {
	anti, predicate, wr, realTime int
	adjacent                      bool // two anti-dependencies in a row
}

func shapeOf(cycle []link) shape {
	var s shape
	for i, l := range cycle {
		next := cycle[(i+1)%len(cycle)]
		switch l.kind {
		case WW:
		case WR:
			s.wr++
		case RW:
			s.anti++
		case PredicateRW:
			s.anti++
			s.predicate++
		case RealTime:
			s.realTime++
		default:
			panic(fmt.Sprintf("history: unknown edge kind %d", l.kind))
		}
		if l.kind.anti() && next.kind.anti() {
			s.adjacent = true
		}
	}
	return s
}

// breaks returns the levels that a cycle of this shape breaks.
func (s shape) breaks() levelSet {
	switch {
	case s.realTime > 0:
		return onlyStrict
	case s.anti == 0 && s.wr == 0:
		return everyLevel
	case s.anti == 0:
		return fromCommitted
	}
	b := fromSerial
	if s.anti == 1 || !s.adjacent {
		b |= fromSnapshot
	}
	if s.predicate == 0 {
		b |= fromRepeatable
	}
	return b
}

// kind names a cycle of this shape; lost updates and vanishing transactions are
// G-single here, since telling them apart takes more than the shape.
func (s shape) kind() Kind {
	switch {
	case s.realTime > 0:
		return GRealTime
	case s.anti == 0 && s.wr == 0:
		return G0
	case s.anti == 0:
		return G1c
	case s.predicate > 0:
		return G2
	case s.anti == 1:
		return GSingle
	case !s.adjacent:
		return GNonadjacent
	default:
		return G2Item
	}
}
