package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"interleave/sim/event"
)

// Bounds on a schedule. What lies beyond them is no textbook case, and is refused
// by [New] and [Parse] with the bound in the error.
const (
	MaxOps     = 1000           // operations
	MaxTime    = 24 * time.Hour // of an operation; of a wait too, in a text
	MaxTouches = 4000           // items touched, one for each item of a scan's range
	MaxTxns    = 64             // transactions
	MaxTxn     = 999999         // largest transaction number
	MaxText    = 1 << 20        // bytes of text
)

// Txn is a transaction's number as written: 1 in r1(x).
type Txn int32

// String returns the transaction as reports print it: T1.
func (t Txn) String() string { return "T" + strconv.Itoa(int(t)) }

// Item names a data item: letters, digits and underscores, case kept.
type Item string

// CompareItems orders items as ranges take them: runs of digits by their number,
// all else by bytes, so that x9 comes before x10. It is zero only for equal items.
func CompareItems(a, b Item) int {
	x, y := string(a), string(b)
	for x != "" && y != "" {
		dx, dy := digits(x), digits(y)
		if dx == 0 || dy == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		nx, ny := strings.TrimLeft(x[:dx], "0"), strings.TrimLeft(y[:dy], "0")
		if c := cmp.Or(cmp.Compare(len(nx), len(ny)), cmp.Compare(nx, ny)); c != 0 {
			return c
		}
		x, y = x[dx:], y[dy:]
	}
	// 7 and 07 are different items: the bytes decide when the numbers do not.
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// Kind is what an operation does.
type Kind uint8

// The operations, with the letter they are printed by.
const (
	Begin      Kind = iota // b1
	Read                   // r1(x); u1(x) with Lock ForUpdate
	Scan                   // r1[a..c]: every item from a to c, both included
	Write                  // w1(x)
	Insert                 // i1(x)
	Delete                 // d1(x)
	Savepoint              // s1(name)
	RollbackTo             // rb1(name): undo what was written since the savepoint, which stays
	Release                // rel1(name): forget the savepoint, keep what was written
	Commit                 // c1
	Abort                  // a1
	numKinds
)

var kindNames = [numKinds]string{
	"begin", "read", "scan", "write", "insert", "delete", "savepoint", "rollback-to", "release", "commit", "abort",
}

// String returns the kind's name in JSON.
func (k Kind) String() string {
	if k >= numKinds {
		panic(fmt.Sprintf("schedule: unknown kind %d", uint8(k)))
	}
	return kindNames[k]
}

// Reads reports whether the operation reads items.
func (k Kind) Reads() bool { return k == Read || k == Scan }

// Writes reports whether the operation writes its item.
func (k Kind) Writes() bool { return k == Write || k == Insert || k == Delete }

// Ends reports whether the operation ends its transaction.
func (k Kind) Ends() bool { return k == Commit || k == Abort }

// LockClause is what a read asks of a lock manager beyond its kind.
type LockClause uint8

// The lock clauses.
const (
	Plain     LockClause = iota // what the protocol takes for a read
	ForShare                    // r1(x) share: a read lock kept like a write lock
	ForUpdate                   // u1(x), r1(x) u, r1(x) for update
)

// WaitClause is what an operation does when it would have to wait.
type WaitClause uint8

// The wait clauses.
const (
	Wait       WaitClause = iota // wait
	NoWait                       // fail at once
	SkipLocked                   // leave out the items that others have locked
	WaitFor                      // wait as long as Op.Timeout, then fail
)

// Op is one operation. Fields that its kind does not use are zero.
type Op struct {
	Kind      Kind
	Txn       Txn
	Item      Item // Read, Write, Insert, Delete; the first item of a Scan
	End       Item // Scan: the last item covered
	Savepoint string
	// Value is what is written, or nil when the schedule does not say; for a Read,
	// the constant that the schedule says was read.
	Value   Expr
	Lock    LockClause
	Wait    WaitClause
	Timeout time.Duration // WaitFor
	At      event.Time    // when it is issued, in a timed schedule
}

// Term is an item's value or a number, added or taken away. An item stands for
// the value its transaction last read or wrote; an empty Item means Number.
type Term struct {
	Minus  bool
	Item   Item
	Number int64
}

// Expr is a sum of terms.
type Expr []Term

// Initial is one item's value before the schedule.
type Initial struct {
	Item  Item
	Value int64
}

// Schedule is a sequence of operations in the order in which they happened, or
// were asked for.
type Schedule struct {
	Name    string // S in "S: r1(x)", or empty
	Initial []Initial
	Ops     []Op
	// Timed says that the operations' At were written; they never decrease.
	Timed bool
}

// OpError says which operation of a schedule is not allowed where it stands.
type OpError struct {
	Index int // from 0; -1 when the whole is refused
	Msg   string
}

// Error returns the operation's position, from 1, and what is wrong with it.
func (e *OpError) Error() string {
	if e.Index < 0 {
		return e.Msg
	}
	return fmt.Sprintf("operation %d: %s", e.Index+1, e.Msg)
}

// Txns returns the transactions in order of their numbers.
func (s *Schedule) Txns() []Txn {
	var out []Txn
	for _, op := range s.Ops {
		if !slices.Contains(out, op.Txn) {
			out = append(out, op.Txn)
		}
	}
	slices.Sort(out)
	return out
}

// Of returns the operations of one transaction in order: its program.
func (s *Schedule) Of(t Txn) []Op {
	var out []Op
	for _, op := range s.Ops {
		if op.Txn == t {
			out = append(out, op)
		}
	}
	return out
}

// Items returns the items that operations or initial values name, in the order of
// ranges. The ends of a range count only when something else names them.
func (s *Schedule) Items() []Item {
	var out []Item
	for _, in := range s.Initial {
		out = append(out, in.Item)
	}
	for _, op := range s.Ops {
		if op.Item != "" && op.Kind != Scan {
			out = append(out, op.Item)
		}
	}
	slices.SortFunc(out, CompareItems)
	return slices.Compact(out)
}

// Completion is what is done with transactions that neither commit nor abort.
type Completion uint8

// The completions.
const (
	LeaveActive     Completion = iota // leave them as they are
	CommitAfterLast                   // commit each right after its last operation
	CommitAtEnd                       // commit them after all operations, in order of their last ones
)

// Completed returns a copy of s in which no transaction is active.
func (s *Schedule) Completed(how Completion) *Schedule {
	out := *s
	out.Ops = slices.Clone(s.Ops)
	if how == LeaveActive {
		return &out
	}
	last := map[Txn]int{}
	ended := map[Txn]bool{}
	for i, op := range s.Ops {
		last[op.Txn] = i
		ended[op.Txn] = ended[op.Txn] || op.Kind.Ends()
	}
	out.Ops = nil
	var late []Op
	for i, op := range s.Ops {
		out.Ops = append(out.Ops, op)
		if ended[op.Txn] || last[op.Txn] != i {
			continue
		}
		c := Op{Kind: Commit, Txn: op.Txn, At: op.At}
		switch how {
		case CommitAfterLast:
			out.Ops = append(out.Ops, c)
		case CommitAtEnd:
			c.At = s.Ops[len(s.Ops)-1].At
			late = append(late, c)
		default:
			panic(fmt.Sprintf("schedule: unknown completion %d", how))
		}
	}
	out.Ops = append(out.Ops, late...)
	return &out
}
