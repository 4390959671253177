package schedule

import (
	"fmt"
	"math"
	"slices"
)

// never is a step that does not come.
const never = math.MaxInt

// initial stands for the state before the schedule where a writer is named.
const initial = -1

// access is one operation's touch of one item. A scan has one for each item of its
// range that the schedule names.
type access struct {
	step   int // index in the schedule's operations
	txn    int // dense index, in order of transaction numbers
	item   int // dense index, in order of items
	write  bool
	scan   bool
	rows   bool // an insert or a delete: it changes which items exist
	update bool // a read for update
	// undone is the step that undid this write: an abort or a rollback to a
	// savepoint. never for reads and for writes that stand.
	undone int
	// source is the access whose write a read returned, or initial.
	source int
}

// member is what the analysis knows of a transaction.
type member struct {
	txn   Txn
	first int  // its first operation
	last  int  // its last operation
	begun bool // first is a written begin
	end   int  // its commit or abort, or never
	fate  Kind // Commit, Abort, or Begin while it is active
}

// analysis is a schedule with everything the verdicts ask for laid out by dense
// indices. It is read only once built.
type analysis struct {
	s       *Schedule
	members []member
	items   []Item
	acc     []access
	// kept are the accesses of the projection, in order: those of transactions that
	// have not aborted, without writes that were undone.
	kept []int
	// alive are the transactions of the projection.
	alive []int
}

func analyse(s *Schedule) *analysis {
	a := &analysis{s: s, items: s.Items()}
	for _, t := range s.Txns() {
		a.members = append(a.members, member{txn: t, first: -1, end: never, fate: Begin})
	}
	for i, op := range s.Ops {
		t := a.index(op.Txn)
		m := &a.members[t]
		if m.first < 0 {
			m.first, m.begun = i, op.Kind == Begin
		}
		m.last = i
		if op.Kind.Ends() {
			m.end, m.fate = i, op.Kind
		}
		a.touch(i, t, op)
	}
	a.undo()
	a.readFrom()
	for t, m := range a.members {
		if m.fate != Abort {
			a.alive = append(a.alive, t)
		}
	}
	for i, x := range a.acc {
		if a.members[x.txn].fate != Abort && x.undone == never {
			a.kept = append(a.kept, i)
		}
	}
	return a
}

func (a *analysis) index(t Txn) int {
	i, ok := slices.BinarySearchFunc(a.members, t, func(m member, t Txn) int { return int(m.txn) - int(t) })
	if !ok {
		panic(fmt.Sprintf("schedule: %v is no transaction of this schedule", t))
	}
	return i
}

// touch appends the accesses of one operation.
func (a *analysis) touch(step, txn int, op Op) {
	x := access{step: step, txn: txn, undone: never, source: initial, update: op.Lock == ForUpdate}
	switch op.Kind {
	case Read:
	case Write, Insert, Delete:
		x.write, x.rows = true, op.Kind != Write
	case Scan:
		x.scan = true
		for i, it := range a.items {
			if CompareItems(op.Item, it) <= 0 && CompareItems(it, op.End) <= 0 {
				x.item = i
				a.acc = append(a.acc, x)
			}
		}
		return
	case Begin, Savepoint, RollbackTo, Release, Commit, Abort:
		return
	default:
		panic(fmt.Sprintf("schedule: unknown kind %d", op.Kind))
	}
	i, ok := slices.BinarySearchFunc(a.items, op.Item, CompareItems)
	if !ok {
		panic(fmt.Sprintf("schedule: item %s of step %d is not among the items", op.Item, step+1))
	}
	x.item = i
	a.acc = append(a.acc, x)
}

// undo finds for each write the step that undid it.
func (a *analysis) undo() {
	type mark struct {
		name string
		step int
	}
	marks := make([][]mark, len(a.members))
	for i, op := range a.s.Ops {
		t := a.index(op.Txn)
		at := -1
		for j, m := range marks[t] {
			if m.name == op.Savepoint {
				at = j // of two savepoints of one name, the later counts
			}
		}
		switch op.Kind {
		case Savepoint:
			marks[t] = append(marks[t], mark{op.Savepoint, i})
		case Release:
			marks[t] = marks[t][:at]
		case RollbackTo:
			a.undoSince(t, marks[t][at].step, i)
			marks[t] = marks[t][:at+1]
		case Abort:
			a.undoSince(t, -1, i)
		case Begin, Read, Scan, Write, Insert, Delete, Commit:
		default:
			panic(fmt.Sprintf("schedule: unknown kind %d", op.Kind))
		}
	}
}

func (a *analysis) undoSince(txn, since, by int) {
	for i := range a.acc {
		x := &a.acc[i]
		if x.txn == txn && x.write && x.step > since && x.step < by && x.undone == never {
			x.undone = by
		}
	}
}

// readFrom finds the write that each read returned: the last of its item that had
// not been undone when it read.
func (a *analysis) readFrom() {
	for i := range a.acc {
		if r := &a.acc[i]; !r.write {
			r.source = a.lastWrite(i, func(w access) bool { return w.undone > r.step })
		}
	}
}

// lastWrite returns the last write before access i on its item that counts, or initial.
func (a *analysis) lastWrite(i int, counts func(access) bool) int {
	for j := i - 1; j >= 0; j-- {
		if w := a.acc[j]; w.write && w.item == a.acc[i].item && counts(w) {
			return j
		}
	}
	return initial
}

// conflicting reports whether two accesses conflict: different transactions, one
// item, at least one write.
func conflicting(x, y access) bool {
	return x.txn != y.txn && x.item == y.item && (x.write || y.write)
}

// open reports whether x's effect is uncommitted at step: its transaction has not
// ended and the write has not been undone before.
func (a *analysis) open(x access, step int) bool {
	return min(a.members[x.txn].end, x.undone) > step
}

// op names a step as reasons do: w2(x) at step 3.
func (a *analysis) op(step int) string {
	return fmt.Sprintf("%s at step %d", a.s.Ops[step].name(), step+1)
}

// at names an access, with the item where the operation does not.
func (a *analysis) at(i int) string {
	x := a.acc[i]
	if x.scan {
		return fmt.Sprintf("%s at step %d (item %s)", a.s.Ops[x.step].name(), x.step+1, a.items[x.item])
	}
	return a.op(x.step)
}

func (a *analysis) txn(t int) Txn { return a.members[t].txn }

// txns translates dense indices.
func (a *analysis) txns(of []int) []Txn {
	out := make([]Txn, len(of))
	for i, t := range of {
		out[i] = a.txn(t)
	}
	return out
}
