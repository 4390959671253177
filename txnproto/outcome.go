package txnproto

// Outcome is how an attempt ended at a shard.
type Outcome uint8

// The outcomes.
const (
	Undecided Outcome = iota
	Committed
	Aborted
)

// String returns the outcome's name.
func (o Outcome) String() string {
	switch o {
	case Undecided:
		return "undecided"
	case Committed:
		return "committed"
	case Aborted:
		return "aborted"
	default:
		panic("txnproto: unknown outcome")
	}
}

// AbortReason says why an attempt was aborted. A program's own rollback is none of them.
type AbortReason uint8

// The reasons. Their names are those of the report.
const (
	NoReason       AbortReason = iota
	Deadlock                   // victim of a deadlock
	WaitDie                    // younger than the holder, under wait-die
	Wounded                    // wounded by an older transaction
	NoWait                     // the lock was taken, under no-wait
	LockTimeout                // waited longer than the lock timeout
	TSOrder                    // too late for timestamp order
	Validation                 // failed optimistic validation
	WriteConflict              // first updater wins
	SSIPivot                   // pivot of a dangerous structure
	Cascade                    // read from a transaction that aborted
	LeaderChange               // what it relied on was lost with a leader
	RPCTimeout                 // a node did not answer
	CannotLock                 // NOWAIT
	Constraint                 // a constraint of the database forbade it
	Reconnaissance             // what it accesses is not what it was sequenced with
	NumReasons
)

var reasonNames = [NumReasons]string{
	"none", "deadlock", "wait-die", "wounded", "no-wait", "lock-timeout", "ts-order",
	"validation", "write-conflict", "ssi-pivot", "cascade", "leader-change", "rpc-timeout",
	"cannot-lock", "constraint", "reconnaissance",
}

// String returns the reason's name in reports.
func (r AbortReason) String() string { return reasonNames[r] }

// Verdict is a controller's answer to Access and Prepare.
type Verdict struct {
	state  verdictState
	reason AbortReason
}

type verdictState uint8

const (
	granted verdictState = iota
	waiting
	aborted
)

// Granted lets the operation go on; Waiting promises a later Resolve.
var (
	Granted = Verdict{state: granted}
	Waiting = Verdict{state: waiting}
)

// Abort is the verdict that ends the attempt.
func Abort(r AbortReason) Verdict {
	if r == NoReason || r >= NumReasons {
		panic("txnproto: an abort needs a reason")
	}
	return Verdict{aborted, r}
}

// IsGranted reports whether v lets the operation go on.
func (v Verdict) IsGranted() bool { return v.state == granted }

// IsWaiting reports whether a Resolve will follow.
func (v Verdict) IsWaiting() bool { return v.state == waiting }

// Aborted reports whether v ends the attempt, and why.
func (v Verdict) Aborted() (AbortReason, bool) { return v.reason, v.state == aborted }

// String returns the verdict for traces.
func (v Verdict) String() string {
	switch v.state {
	case granted:
		return "granted"
	case waiting:
		return "waiting"
	case aborted:
		return "abort: " + v.reason.String()
	default:
		panic("txnproto: unknown verdict")
	}
}
