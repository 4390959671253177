package txnproto

import "time"

// OpKind is what an operation does.
type OpKind uint8

// The operations.
const (
	Read          OpKind = iota // read one row
	ReadForUpdate               // read one row that the transaction means to write
	Write                       // set one row, whatever it held (present or not)
	Modify                      // read one row and write value + Op.Value in one step
	Insert                      // add one row; aborts with Constraint when it is present
	Delete                      // remove one row
	Scan                        // read every row with Key <= key < End
	LockShared                  // lock one row that the transaction will read; see Protocol.Declares
	LockExclusive               // lock one row that the transaction will write
	RollbackTo                  // undo what the branch did since savepoint Op.Value; never refused
	Sequence                    // take a place in the global order; see Protocol.Sequenced
	Reconnoitre                 // read every row with Key <= key < End, protected by nothing; no controller hears of it
	NumOpKinds
)

var opNames = [NumOpKinds]string{
	"read", "read-for-update", "update", "rmw", "insert", "delete", "scan", "lock-shared", "lock-exclusive", "rollback-to",
	"sequence", "reconnoitre",
}

// String returns the operation's name in reports.
func (k OpKind) String() string { return opNames[k] }

// Reads reports whether the operation's effect depends on the row's old state.
func (k OpKind) Reads() bool {
	switch k {
	case Read, ReadForUpdate, Modify, Insert, Scan, Reconnoitre:
		return true
	case Write, Delete, LockShared, LockExclusive, RollbackTo, Sequence:
		return false
	default:
		panic("txnproto: unknown operation")
	}
}

// Writes reports whether the operation leaves a new version at commit.
func (k OpKind) Writes() bool {
	switch k {
	case Write, Modify, Insert, Delete:
		return true
	case Read, ReadForUpdate, Scan, LockShared, LockExclusive, RollbackTo, Sequence, Reconnoitre:
		return false
	default:
		panic("txnproto: unknown operation")
	}
}

// Op is one operation of a program, or one shard's part of it: a scan over
// several shards reaches each controller as that shard's rows of [Key, End).
type Op struct {
	Kind OpKind
	// Wait says what to do where the operation would have to wait; see Timeout.
	Wait WaitMode
	// Skip is set by a controller that grants an operation with WaitSkip on a row
	// it cannot have: the host leaves the row out.
	Skip bool
	Key  Key
	End  Key // Scan: the first key not covered
	// Value is the new one of Write and Insert, and what Modify adds. Of Sequence it is
	// the Place, set by the controller that grants it.
	Value Value

	// Timeout, when not 0, bounds a wait; the attempt then aborts with LockTimeout.
	Timeout time.Duration

	// Snapshot is set by a multiversion controller that grants a read: the host
	// reads the newest version not above it. 0: the newest committed. A scan that has
	// been on other shards comes with the snapshot it had there.
	Snapshot Version
}

// WaitMode is what an operation does about a row it cannot have at once.
type WaitMode uint8

// The modes, with SQL's words for them.
const (
	WaitBlock WaitMode = iota // wait
	WaitNot                   // NOWAIT: abort with CannotLock
	WaitSkip                  // SKIP LOCKED: go on without the row
)

// Row is one row as an operation found it.
type Row struct {
	Key     Key
	Value   Value
	Version Version
	Exists  bool // false: never inserted, or deleted
	Own     bool // the transaction's own uncommitted write
	Skipped bool // left out by WaitSkip: nothing is known about it
}

// Result is what an operation found.
type Result struct {
	// Row is the row read; for Write and Delete it is zero but for the key.
	Row Row
	// Rows are a scan's rows in key order, those present (Exists) and those known
	// to be absent by a version; a program skips the absent. Valid until the next operation.
	Rows []Row
}

// Put is one row's uncommitted new state in an attempt's workspace.
type Put struct {
	Key     Key
	Value   Value
	Deleted bool
	Version Version // set when the store installs it, or before by an Exposer
}
