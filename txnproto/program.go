package txnproto

import (
	"time"

	"interleave/sim/rng"
)

// Step is what a program wants next.
type Step uint8

// The steps.
const (
	StepOp         Step = iota // run the operation
	StepThink                  // pause inside the transaction
	StepCommit                 // end it
	StepRollback               // end it without effect: its own logic said no
	StepSavepoint              // set savepoint Action.Savepoint
	StepRollbackTo             // undo what was done since it; the savepoint stays
)

// Action is a program's next step, filled in by Program.Next.
type Action struct {
	Op    Op            // for StepOp
	Think time.Duration // for StepThink
	// Savepoint names a savepoint, for StepSavepoint (a name used again moves) and StepRollbackTo.
	Savepoint int
}

// Program is the logic of one request, a state machine that the session drives:
//
//	Start(1, false); Next(zero) → op; Next(result) → op; …; Next(result) → StepCommit
//
// and, after an abort, again from Start. A program is used by one session at a
// time and must not look at anything but its results: the same requests are
// compared under every protocol.
type Program interface {
	// Class is the transaction class the request counts in.
	Class() ClassID
	// Start begins attempt number attempt (1 for the first). With fresh, a retry
	// draws new keys; otherwise it repeats the first attempt's.
	Start(attempt int, fresh bool)
	// Next is told what the last operation found (nil at the start and after a
	// think) and fills in the next action.
	Next(last *Result, a *Action) Step
}

// Declarer is implemented by programs that know beforehand what they will
// access. Some protocols need that: see Protocol.Declares.
type Declarer interface {
	// Declare appends the operations of the attempt that Start began, in any
	// order; Value is not looked at. A program may declare more than it does.
	Declare(ops []Op) []Op
}

// Foreteller is implemented by programs that know, as they run, what may still come.
// Protocols that release locks early need that; see Growth.
type Foreteller interface {
	// Ahead appends every operation that may follow the one that Next has just
	// returned, in any order, and a RollbackTo when the program may go back to a savepoint,
	// but not what comes after that. Value is not looked at.
	Ahead(ops []Op) []Op
}

// Generator makes requests one after another: a client's, or those of an
// open-loop arrival process. The n-th program depends on the generator's own
// streams and n only, never on results or times.
type Generator interface {
	// Next returns the next request's program. recycled is a program of this
	// generator that is no longer used, or nil.
	Next(recycled Program) Program
}

// Workload is what the clients do and what must hold of the data.
type Workload interface {
	// Classes names the transaction classes, indexed by ClassID.
	Classes() []string
	// InitialKeys is how many rows the database holds at the start: keys 0 to n-1.
	InitialKeys() uint64
	// Initial is the value of an initial row. REQUIRES: k < InitialKeys.
	Initial(k Key) Value
	// ValueBytes is what one row weighs in messages and on disk, in bytes.
	ValueBytes() int
	// Generator returns the request source named name ("client/17", "arrivals").
	Generator(seed rng.Seed, name string, client ClientID) Generator
	// Check returns an error that names the invariant which the final state breaks, or nil.
	Check(final View) error
}

// Sparse is implemented by workloads some of whose initial keys hold no row at the start.
type Sparse interface {
	// Absent reports whether k holds no row. REQUIRES: k < InitialKeys.
	Absent(k Key) bool
}

// View reads the committed state of the whole database.
type View interface {
	// Get returns the row of k in its last committed state.
	Get(k Key) Row
	// Inserted calls f for every present row outside the initial keys, in key order.
	Inserted(f func(Row))
	// Deleted calls f for every initial key whose row has been deleted, in key order.
	Deleted(f func(Key))
}
