package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// held is a lock as an interval of moments.
type held struct {
	txn      Txn
	item     Item
	mode     string
	from, to int
}

func excludes(a, b string) bool { return a == "X" || b == "X" || a == "U" && b == "U" }

// compatible reports whether no two locks that exclude each other overlap.
func compatible(locks []held) bool {
	for i, a := range locks {
		for _, b := range locks[:i] {
			if a.txn != b.txn && a.item == b.item && excludes(a.mode, b.mode) && a.from <= b.to && b.from <= a.to {
				return false
			}
		}
	}
	return true
}

// needs lists, for each transaction, item and mode, the first and last step that needs
// the lock, with the end of the transaction for locks that the discipline keeps.
func needs(s *Schedule, d discipline) []held {
	var out []held
	for _, x := range touches(s) {
		at := slices.IndexFunc(out, func(h held) bool { return h.txn == x.txn && h.item == x.item && h.mode == x.mode })
		if at < 0 {
			out = append(out, held{x.txn, x.item, x.mode, x.step, x.step})
		} else {
			out[at].to = x.step
		}
	}
	for i := range out {
		if d == rigorousTwoPhase || d == strictTwoPhase && out[i].mode == "X" {
			out[i].to = min(endStep(s, out[i].txn), len(s.Ops))
		}
	}
	return out
}

// lockPointsExist tries every choice of lock points. Between two steps there are as
// many moments as transactions, so that every order of points fits in.
func lockPointsExist(s *Schedule, d discipline) bool {
	txns := s.Txns()
	n := len(txns)
	scale := n + 1
	points := map[Txn]int{}
	need := needs(s, d)
	var choose func(i int) bool
	choose = func(i int) bool {
		var locks []held
		for _, h := range need {
			if p, chosen := points[h.txn]; chosen {
				h.from, h.to = min(h.from*scale, p), max(h.to*scale, p)
				locks = append(locks, h)
			}
		}
		if i == n || !compatible(locks) {
			return i == n && compatible(locks)
		}
		first := -scale
		if k := slices.IndexFunc(s.Ops, func(op Op) bool { return op.Txn == txns[i] }); s.Ops[k].Kind == Begin {
			first = k * scale
		}
		last := min(endStep(s, txns[i]), len(s.Ops)) * scale
		for p := first; p < last; p++ {
			if p%scale == 0 {
				continue // a step itself; points lie between
			}
			points[txns[i]] = p
			if choose(i + 1) {
				return true
			}
		}
		delete(points, txns[i])
		return false
	}
	return choose(0)
}

// TestLockPointsBruteForce compares the test of two-phase locking with all choices of
// lock points.
func TestLockPointsBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var count [3][3]int
	for range 300 * effort {
		s := random(r, mix{txns: 3, items: 3, ops: 3, scans: true, updates: true, begins: true, aborts: true})
		c := Classify(s, Options{})
		for d := twoPhase; d <= rigorousTwoPhase; d++ {
			want := lockPointsExist(s, d)
			v := c.Verdict(TwoPhaseLocking + Class(d))
			if (v.Holds == Yes) != want {
				t.Fatalf("%v\n%v: got %v (%s), by all lock points %v", s, v.Class, v.Holds, v.Because, want)
			}
			count[d][v.Holds]++
		}
	}
	if count[twoPhase][Yes] < 100 || count[twoPhase][No] < 20 || count[strictTwoPhase][Yes] < 50 {
		t.Errorf("counts %v decide little", count)
	}
}

// locksExist tries every placement of every lock and unlock, two moments between steps,
// and asks of each transaction that it lock nothing after it has unlocked something.
func locksExist(s *Schedule) bool {
	need := needs(s, twoPhase)
	var choose func(i int, locks []held) bool
	choose = func(i int, locks []held) bool {
		if !compatible(locks) || !phased(locks) {
			return false
		}
		if i == len(need) {
			return true
		}
		h := need[i]
		// Step k is moment 3k; moments 3k+1 and 3k+2 follow it.
		for from := -2; from <= 3*h.from; from++ {
			for to := 3 * h.to; to < 3*len(s.Ops); to++ {
				// Moments of steps that do not need the lock add nothing.
				if (from%3 != 0 || from == 3*h.from) && (to%3 != 0 || to == 3*h.to) && choose(i+1, append(locks[:i:i], held{h.txn, h.item, h.mode, from, to})) {
					return true
				}
			}
		}
		return false
	}
	return choose(0, nil)
}

func phased(locks []held) bool {
	for _, a := range locks {
		for _, b := range locks {
			if a.txn == b.txn && a.from > b.to {
				return false
			}
		}
	}
	return true
}

// TestLocksBruteForce does without lock points: it places each lock and unlock.
func TestLocksBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	var count [3]int
	for i := range 400 * effort {
		s := random(r, mix{txns: 2, items: 2, ops: 2})
		s.Ops = slices.DeleteFunc(s.Ops, func(op Op) bool { return op.Kind.Ends() })
		v := Classify(s, Options{}).Verdict(TwoPhaseLocking)
		if v.Holds == Yes && i%40 > 0 {
			continue // most are possible; a few of those do
		}
		if want := locksExist(s); (v.Holds == Yes) != want {
			t.Fatalf("%v\ngot %v (%s), by all placements of locks %v", s, v.Holds, v.Because, want)
		}
		count[v.Holds]++
	}
	if count[Yes] == 0 || count[No] == 0 {
		t.Errorf("counts %v decide little", count)
	}
}

// TestInclusions holds the classes to what the theory says of one another.
func TestInclusions(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	implied := []struct{ if_, then Class }{
		{Serial, ConflictSerializable},
		{ConflictSerializable, ViewSerializable},
		{ViewSerializable, FinalStateSerializable},
		{Rigorous, Strict},
		{Strict, Cascadeless},
		{Cascadeless, Recoverable},
		{Rigorous, CommitOrdered},
		{RigorousTwoPhaseLocking, StrictTwoPhaseLocking},
		{StrictTwoPhaseLocking, TwoPhaseLocking},
		{TwoPhaseLocking, ConflictSerializable},
		{StrictTwoPhaseLocking, Strict},
		{Rigorous, RigorousTwoPhaseLocking},
		{RigorousTwoPhaseLocking, Rigorous},
		{TimestampOrdering, ConflictSerializable},
		{TimestampOrdering, ThomasWriteRule},
		{CommitOrdered, ConflictSerializable},
	}
	seen := make([]int, len(implied))
	for range 1500 * effort {
		s := random(r, mix{txns: 4, items: 3, ops: 3, scans: true, aborts: true, allEnd: true})
		c := Classify(s, Options{})
		for i, im := range implied {
			if c.Verdict(im.if_).Holds != Yes {
				continue
			}
			seen[i]++
			if c.Verdict(im.then).Holds != Yes {
				t.Fatalf("%v\n%v and not %v: %s", s, im.if_, im.then, c.Verdict(im.then).Because)
			}
		}
		checkAnomalies(t, s, c)
	}
	for i, n := range seen {
		if n == 0 {
			t.Errorf("no schedule was %v", implied[i].if_)
		}
	}
}

// checkAnomalies holds the anomalies to the classes that exclude or demand them.
func checkAnomalies(t *testing.T, s *Schedule, c *Classification) {
	t.Helper()
	has := func(codes ...Code) bool { return slices.ContainsFunc(codes, c.Has) }
	cycle := has(G0, G1c, GSingle, G2Item, G2)
	serializable := c.Verdict(ConflictSerializable).Holds == Yes
	aborts := slices.ContainsFunc(s.Ops, func(op Op) bool { return op.Kind == Abort })
	var wrong string
	switch {
	case cycle == serializable:
		wrong = "a cycle has an Adya name exactly when the graph has a cycle"
	case serializable && has(P4, A5A, A5B):
		wrong = "a lost update and skews make cycles"
	case serializable && !aborts && has(A2, A3, G1b):
		wrong = "without aborts, unstable and intermediate reads make cycles"
	case c.Verdict(Serial).Holds == Yes && len(c.Anomalies) > 0:
		wrong = "a serial schedule has no anomaly"
	case c.Verdict(Rigorous).Holds == Yes && len(c.Anomalies) > 0:
		wrong = "a rigorous schedule has no anomaly"
	case c.Verdict(Strict).Holds == Yes && has(P0, P1, A1, G0, G1a, G1b, G1c):
		wrong = "a strict schedule has no dirty operation"
	case c.Verdict(Rigorous).Holds == No && !has(P0, P1, A1, P2, P3):
		wrong = "what is not rigorous shows one of P0 to P3"
	}
	if wrong != "" {
		t.Fatalf("%v\n%s:\n%s", s, wrong, fmt.Sprintln(c.Anomalies))
	}
}
