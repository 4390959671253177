package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// String returns the schedule in the one form that [Parse] reads back to an equal
// schedule: r1(x) w2(x=5) c1, initial values in front, one line a time.
func (s *Schedule) String() string {
	var b strings.Builder
	if s.Name != "" {
		b.WriteString(s.Name + ": ")
	}
	if len(s.Initial) > 0 {
		b.WriteString("init")
		for _, in := range s.Initial {
			fmt.Fprintf(&b, " %s=%d", in.Item, in.Value)
		}
		b.WriteString(";")
	}
	for i, op := range s.Ops {
		switch {
		case s.Timed && (i == 0 || op.At != s.Ops[i-1].At):
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(time.Duration(op.At).String() + ": ")
		case i > 0 || len(s.Initial) > 0:
			b.WriteByte(' ')
		}
		b.WriteString(op.String())
	}
	return b.String()
}

// String returns the operation as Parse reads it, without its time: r1(x) u nowait.
func (op Op) String() string { return op.name() + op.clauses() }

// name is the operation without lock and wait clauses, for pictures and reasons;
// a read for update has a letter of its own.
func (op Op) name() string {
	n := strconv.Itoa(int(op.Txn))
	switch op.Kind {
	case Begin:
		return "b" + n
	case Read, Scan:
		letter := "r"
		if op.Lock == ForUpdate {
			letter = "u"
		}
		if op.Kind == Scan {
			return letter + n + "[" + string(op.Item) + ".." + string(op.End) + "]"
		}
		return letter + n + op.argument()
	case Write:
		return "w" + n + op.argument()
	case Insert:
		return "i" + n + op.argument()
	case Delete:
		return "d" + n + op.argument()
	case Savepoint:
		return "s" + n + "(" + op.Savepoint + ")"
	case RollbackTo:
		return "rb" + n + "(" + op.Savepoint + ")"
	case Release:
		return "rel" + n + "(" + op.Savepoint + ")"
	case Commit:
		return "c" + n
	case Abort:
		return "a" + n
	default:
		panic(fmt.Sprintf("schedule: unknown kind %d", op.Kind))
	}
}

func (op Op) argument() string {
	if op.Value == nil {
		return "(" + string(op.Item) + ")"
	}
	return "(" + string(op.Item) + "=" + op.Value.String() + ")"
}

func (op Op) clauses() string {
	var out string
	if op.Lock == ForShare {
		out = " share"
	}
	switch op.Wait {
	case Wait:
	case NoWait:
		out += " nowait"
	case SkipLocked:
		out += " skip locked"
	case WaitFor:
		out += " wait " + op.Timeout.String()
	default:
		panic(fmt.Sprintf("schedule: unknown wait clause %d", op.Wait))
	}
	return out
}

// String returns the sum as it is written: x+5-y.
func (e Expr) String() string {
	var b strings.Builder
	for i, t := range e {
		switch {
		case t.Minus:
			b.WriteByte('-')
		case i > 0:
			b.WriteByte('+')
		}
		if t.Item != "" {
			b.WriteString(string(t.Item))
		} else {
			b.WriteString(strconv.FormatInt(t.Number, 10))
		}
	}
	return b.String()
}
