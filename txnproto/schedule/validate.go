package schedule

import (
	"fmt"
	"slices"

	"interleave/sim/event"
)

// New makes a schedule of operations, such as those a protocol has executed.
// The error is an *OpError: an operation of a transaction that has ended, a begin
// that is not the first, an unknown savepoint, a name no item can have, times that
// go back, or a bound that is passed.
func New(initial []Initial, ops []Op) (*Schedule, error) {
	s := &Schedule{Initial: slices.Clone(initial), Ops: slices.Clone(ops)}
	for _, op := range ops {
		s.Timed = s.Timed || op.At != 0
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	return s, nil
}

// txnState is what validation knows of a transaction so far.
type txnState struct {
	begun      bool
	ended      Kind // Commit or Abort; Begin while it has not ended
	savepoints []string
}

func (s *Schedule) validate() error {
	if len(s.Ops) > MaxOps {
		return &OpError{MaxOps, fmt.Sprintf("one too many: a schedule has at most %d operations", MaxOps)}
	}
	for i, in := range s.Initial {
		if !validName(string(in.Item)) {
			return &OpError{-1, fmt.Sprintf("initial value %d: %q is no name of an item: want letters, digits and underscores", i+1, in.Item)}
		}
		if slices.ContainsFunc(s.Initial[:i], func(o Initial) bool { return o.Item == in.Item }) {
			return &OpError{-1, fmt.Sprintf("item %s has two initial values", in.Item)}
		}
	}
	txns := map[Txn]*txnState{}
	items := s.Items()
	touches := 0
	for i, op := range s.Ops {
		t := txns[op.Txn]
		if t == nil {
			if len(txns) == MaxTxns {
				return &OpError{i, fmt.Sprintf("one transaction too many: a schedule has at most %d", MaxTxns)}
			}
			t = &txnState{}
			txns[op.Txn] = t
		}
		if msg := op.objection(); msg != "" {
			return &OpError{i, msg}
		}
		if touches += op.touches(items); touches > MaxTouches {
			return &OpError{i, fmt.Sprintf("the operations up to here touch more than %d items, each item of a range counted", MaxTouches)}
		}
		if msg := t.step(op); msg != "" {
			return &OpError{i, msg}
		}
		if op.At > event.Time(MaxTime) {
			return &OpError{i, fmt.Sprintf("time %v is too late: a schedule takes at most %v", op.At, MaxTime)}
		}
		if i > 0 && op.At < s.Ops[i-1].At {
			return &OpError{i, fmt.Sprintf("time %v is before the %v of the operation before it: times may not go back", op.At, s.Ops[i-1].At)}
		}
	}
	return nil
}

// touches counts the items that op reads or writes.
func (op Op) touches(items []Item) int {
	switch {
	case op.Kind == Scan:
		from, _ := slices.BinarySearchFunc(items, op.Item, CompareItems)
		to, last := slices.BinarySearchFunc(items, op.End, CompareItems)
		if last {
			to++
		}
		return to - from
	case op.Item != "":
		return 1
	}
	return 0
}

// objection says what is wrong with an operation taken alone, or nothing.
func (op Op) objection() string {
	switch {
	case op.Kind >= numKinds:
		return fmt.Sprintf("unknown kind %d", op.Kind)
	case op.Txn < 0 || op.Txn > MaxTxn:
		return fmt.Sprintf("transaction number %d: want 0 to %d", op.Txn, MaxTxn)
	case op.At < 0:
		return fmt.Sprintf("time %v: want 0 or later", op.At)
	case (op.Kind.Reads() || op.Kind.Writes()) && !validName(string(op.Item)):
		return fmt.Sprintf("%q is no name of an item: want letters, digits and underscores", op.Item)
	case op.Kind == Scan && !validName(string(op.End)):
		return fmt.Sprintf("%q is no name of an item: want letters, digits and underscores", op.End)
	case op.Kind == Scan && CompareItems(op.Item, op.End) > 0:
		return fmt.Sprintf("the range %s..%s is empty: %s comes after %s", op.Item, op.End, op.Item, op.End)
	case (op.Kind == Savepoint || op.Kind == RollbackTo || op.Kind == Release) && !validName(op.Savepoint):
		return fmt.Sprintf("%q is no name of a savepoint: want letters, digits and underscores", op.Savepoint)
	case op.Lock != Plain && !op.Kind.Reads():
		return "a lock clause (u, for update, share) belongs to a read"
	case op.Wait != Wait && !op.Kind.Reads() && !op.Kind.Writes():
		return "a wait clause (nowait, skip locked, wait) belongs to a read or a write"
	case op.Wait == WaitFor && op.Timeout <= 0:
		return fmt.Sprintf("wait %v: want a time above 0", op.Timeout)
	case op.Value != nil && op.Kind == Read && (len(op.Value) != 1 || op.Value[0].Item != ""):
		return "the value of a read is a number: r1(x=50)"
	case op.Value != nil && !op.Kind.Writes() && op.Kind != Read, op.Value != nil && op.Kind == Delete:
		return "only a write, an insert or a read has a value"
	case op.Value != nil && len(op.Value) == 0:
		return "an empty value"
	}
	for _, t := range op.Value {
		// A name that opens with a digit would be read as a number.
		if t.Item != "" && (!validName(string(t.Item)) || digits(string(t.Item)) > 0) {
			return fmt.Sprintf("%q cannot stand in a value: want a number, or an item whose name opens with a letter", t.Item)
		}
		if t.Number < 0 {
			return fmt.Sprintf("number %d in a value: want 0 or more, with Minus for the sign", t.Number)
		}
	}
	return ""
}

// step takes one operation in, and says why it may not stand here, or nothing.
func (t *txnState) step(op Op) string {
	if t.ended != Begin {
		done := "committed"
		if t.ended == Abort {
			done = "aborted"
		}
		return fmt.Sprintf("%v has already %s", op.Txn, done)
	}
	switch op.Kind {
	case Begin:
		if t.begun {
			return fmt.Sprintf("%v has already begun: b%d comes first and once", op.Txn, op.Txn)
		}
	case Savepoint:
		t.savepoints = append(t.savepoints, op.Savepoint)
	case RollbackTo, Release:
		at := lastIndex(t.savepoints, op.Savepoint)
		if at < 0 {
			return fmt.Sprintf("%v has no savepoint %s here", op.Txn, op.Savepoint)
		}
		if op.Kind == RollbackTo {
			at++ // the savepoint itself stays
		}
		t.savepoints = t.savepoints[:at]
	case Commit, Abort:
		t.ended = op.Kind
	case Read, Scan, Write, Insert, Delete:
	default:
		panic(fmt.Sprintf("schedule: unknown kind %d", op.Kind))
	}
	t.begun = true
	return ""
}

func lastIndex(names []string, name string) int {
	for i := len(names) - 1; i >= 0; i-- {
		if names[i] == name {
			return i
		}
	}
	return -1
}

func validName(s string) bool {
	for i := range len(s) {
		if !nameByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func nameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
