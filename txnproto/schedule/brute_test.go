package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The tests of this file decide small schedules by trying everything the definitions
// speak of, from the operations alone, and hold the verdicts to that.

// touch is one item that one operation reads or writes.
type touch struct {
	step  int
	txn   Txn
	item  Item
	write bool
	mode  string // S, U or X
}

// touches lists what a schedule's operations touch.
func touches(s *Schedule) []touch {
	var out []touch
	for i, op := range s.Ops {
		t := touch{i, op.Txn, op.Item, op.Kind.Writes(), "S"}
		if op.Lock == ForUpdate {
			t.mode = "U"
		}
		if t.write {
			t.mode = "X"
		}
		switch {
		case op.Kind == Scan:
			for _, it := range s.Items() {
				if CompareItems(op.Item, it) <= 0 && CompareItems(it, op.End) <= 0 {
					t.item = it
					out = append(out, t)
				}
			}
		case op.Item != "":
			out = append(out, t)
		}
	}
	return out
}

// undoneAt returns for each step the step that undoes its write, by replaying each
// transaction's stack of savepoints.
func undoneAt(s *Schedule) map[int]int {
	out := map[int]int{}
	for _, t := range s.Txns() {
		type entry struct {
			write int
			mark  string
		}
		var stack []entry // writes and savepoints that count
		for i, op := range s.Ops {
			if op.Txn != t {
				continue
			}
			switch {
			case op.Kind.Writes():
				stack = append(stack, entry{write: i})
			case op.Kind == Savepoint:
				stack = append(stack, entry{mark: op.Savepoint})
			case op.Kind == RollbackTo:
				for stack[len(stack)-1].mark != op.Savepoint {
					if e := stack[len(stack)-1]; e.mark == "" {
						out[e.write] = i
					}
					stack = stack[:len(stack)-1]
				}
			case op.Kind == Release:
				at := len(stack) - 1
				for stack[at].mark != op.Savepoint {
					at--
				}
				kept := stack[:at:at]
				for _, e := range stack[at:] {
					if e.mark == "" {
						kept = append(kept, e)
					}
				}
				stack = kept
			case op.Kind == Abort:
				for _, e := range stack {
					if e.mark == "" {
						out[e.write] = i
					}
				}
			}
		}
	}
	return out
}

func ends(s *Schedule) map[Txn]Op {
	out := map[Txn]Op{}
	for _, op := range s.Ops {
		if op.Kind.Ends() {
			out[op.Txn] = op
		}
	}
	return out
}

func endStep(s *Schedule, t Txn) int {
	for i, op := range s.Ops {
		if op.Txn == t && op.Kind.Ends() {
			return i
		}
	}
	return 1 << 30
}

// projection is what serializability looks at.
func projection(s *Schedule) (out []touch, txns []Txn) {
	undone, end := undoneAt(s), ends(s)
	for _, x := range touches(s) {
		if _, gone := undone[x.step]; end[x.txn].Kind != Abort && !gone {
			out = append(out, x)
		}
	}
	for _, t := range s.Txns() {
		if end[t].Kind != Abort {
			txns = append(txns, t)
		}
	}
	return out, txns
}

// serialize puts the touches in the order of the transactions.
func serialize(ts []touch, order []Txn) []touch {
	var out []touch
	for _, t := range order {
		for _, x := range ts {
			if x.txn == t {
				out = append(out, x)
			}
		}
	}
	return out
}

// conflictPairs names each ordered pair of conflicting touches.
func conflictPairs(ts []touch) map[string]bool {
	out := map[string]bool{}
	for j, y := range ts {
		for _, x := range ts[:j] {
			if x.item == y.item && x.txn != y.txn && (x.write || y.write) {
				out[fmt.Sprint(x.step, x.item, y.step)] = true
			}
		}
	}
	return out
}

// viewOf names what each read returns and what is written last.
func viewOf(ts []touch) string {
	last := map[Item]int{}
	var out []string
	for _, x := range ts {
		if x.write {
			last[x.item] = x.step + 1
		} else {
			out = append(out, fmt.Sprint("read ", x.step, x.item, " from ", last[x.item]))
		}
	}
	slices.Sort(out)
	return fmt.Sprint(out, last)
}

// herbrand computes the final state with every write a term over all that its
// transaction has read before.
func herbrand(ts []touch) string {
	state := map[Item]string{}
	read := map[Txn][]string{}
	for _, x := range ts {
		if x.write {
			state[x.item] = fmt.Sprintf("f%d(%s)", x.step, strings.Join(read[x.txn], ","))
			continue
		}
		v, ok := state[x.item]
		if !ok {
			v = "0" + string(x.item)
		}
		read[x.txn] = append(read[x.txn], v)
	}
	return fmt.Sprint(state)
}

// serialOrders returns the serial orders for which equal holds, in lexical order.
func serialOrders(ts []touch, txns []Txn, equal func(serial []touch) bool) [][]Txn {
	out := [][]Txn{}
	permute(len(txns), func(p []int) bool {
		order := make([]Txn, len(p))
		for i, j := range p {
			order[i] = txns[j]
		}
		if equal(serialize(ts, order)) {
			out = append(out, order)
		}
		return true
	})
	return out
}

// TestSerializabilityBruteForce compares the three tests of serializability with all
// permutations.
func TestSerializabilityBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	in := map[string]int{}
	for range 1500 * effort {
		s := random(r, mix{txns: 4, items: 3, ops: 4, scans: true, updates: true, savepoints: true, aborts: true})
		c := Classify(s, Options{MaxOrders: 100})
		ts, txns := projection(s)
		conflicts, view, state := conflictPairs(ts), viewOf(ts), herbrand(ts)
		byConflict := serialOrders(ts, txns, func(serial []touch) bool {
			p := conflictPairs(serial)
			for k := range conflicts {
				if !p[k] {
					return false
				}
			}
			return true
		})
		byView := serialOrders(ts, txns, func(serial []touch) bool { return viewOf(serial) == view })
		byState := serialOrders(ts, txns, func(serial []touch) bool { return herbrand(serial) == state })
		compareOrders(t, s, c.Verdict(ConflictSerializable), c.ConflictOrders, byConflict)
		compareOrders(t, s, c.Verdict(ViewSerializable), c.ViewOrders, byView)
		if got, want := c.Verdict(FinalStateSerializable), len(byState) > 0; (got.Holds == Yes) != want {
			t.Fatalf("%v\nfinal-state serializable: got %v (%s), by all orders %v", s, got.Holds, got.Because, byState)
		}
		in[fmt.Sprint(len(byConflict) > 0, len(byView) > 0, len(byState) > 0)]++
	}
	for _, k := range []string{"true true true", "false true true", "false false true", "false false false"} {
		if in[k] == 0 {
			t.Errorf("no schedule was (conflict, view, final-state serializable) = %s", k)
		}
	}
}

func compareOrders(t *testing.T, s *Schedule, v Verdict, got Orders, want [][]Txn) {
	t.Helper()
	same := slices.EqualFunc(got.List, want, func(a, b []Txn) bool { return slices.Equal(a, b) })
	if (v.Holds == Yes) != (len(want) > 0) || got.Count != len(want) || !same {
		t.Fatalf("%v\n%v: got %v (%s), orders %v; by all orders %v", s, v.Class, v.Holds, v.Because, got, want)
	}
}

// TestRecoveryBruteForce holds the classes of recovery to their definitions.
func TestRecoveryBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	count := map[Class][3]int{}
	for range 4000 * effort {
		s := random(r, mix{txns: 3, items: 2, ops: 6, scans: true, savepoints: true, aborts: true, begins: true})
		c := Classify(s, Options{})
		ts, undone, end := touches(s), undoneAt(s), ends(s)
		gone := func(w touch) int { // when the write is undone
			if u, ok := undone[w.step]; ok {
				return u
			}
			return 1 << 30
		}
		want := map[Class]bool{Recoverable: true, Cascadeless: true, Strict: true, Rigorous: true, CommitOrdered: true}
		for j, y := range ts {
			for i, x := range ts[:j] {
				if x.item != y.item || x.txn == y.txn {
					continue
				}
				over := min(endStep(s, x.txn), gone(x)) // when x no longer counts
				if (x.write || y.write) && over > y.step {
					want[Rigorous] = false
					if x.write {
						want[Strict] = false
					}
				}
				ex, ey := endStep(s, x.txn), endStep(s, y.txn)
				_, ux := undone[x.step]
				_, uy := undone[y.step]
				if (x.write || y.write) && !ux && !uy && end[x.txn].Kind == Commit && end[y.txn].Kind == Commit && ex > ey {
					want[CommitOrdered] = false
				}
				// y reads from x: no write between counts when y reads.
				if !x.write || y.write || gone(x) < y.step || slices.ContainsFunc(ts[i+1:j], func(w touch) bool { return w.write && w.item == y.item && gone(w) > y.step }) {
					continue
				}
				if ex > y.step {
					want[Cascadeless] = false
				}
				if end[y.txn].Kind == Commit && (ux || end[x.txn].Kind != Commit || ex > ey) {
					want[Recoverable] = false
				}
			}
		}
		for class, w := range want {
			v := c.Verdict(class)
			if (v.Holds == Yes) != w {
				t.Fatalf("%v\n%v: got %v (%s), by definition %v", s, class, v.Holds, v.Because, w)
			}
			n := count[class]
			n[v.Holds]++
			count[class] = n
		}
	}
	for class, n := range count {
		if n[No] < 100 || n[Yes] < 100 {
			t.Errorf("%v: %d no and %d yes decide little", class, n[No], n[Yes])
		}
	}
}

// TestTimestampOrderBruteForce: basic timestamp ordering passes a schedule when no two
// conflicting operations come against the age of their transactions, and with Thomas's
// rule when none but two writes do.
func TestTimestampOrderBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var count [2][3]int
	for range 4000 * effort {
		s := random(r, mix{txns: 4, items: 3, ops: 3, scans: true, begins: true, aborts: true})
		c := Classify(s, Options{})
		basic, thomas := true, true
		ts := touches(s)
		age := func(t Txn) int { return slices.IndexFunc(s.Ops, func(op Op) bool { return op.Txn == t }) }
		for j, y := range ts {
			for _, x := range ts[:j] {
				if x.item == y.item && (x.write || y.write) && age(y.txn) < age(x.txn) {
					basic = false
					thomas = thomas && x.write && y.write
				}
			}
		}
		for i, want := range []bool{basic, thomas} {
			v := c.Verdict(TimestampOrdering + Class(i))
			if (v.Holds == Yes) != want {
				t.Fatalf("%v\n%v: got %v (%s), by all pairs %v", s, v.Class, v.Holds, v.Because, want)
			}
			count[i][v.Holds]++
		}
	}
	if count[0][Yes] < 100 || count[1][Yes] <= count[0][Yes] {
		t.Errorf("accepted %v: too few to tell", count)
	}
}
