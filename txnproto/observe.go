package txnproto

import (
	"time"

	"interleave/sim/event"
)

// Part is a share of a request's latency. The parts of a committed request sum
// to its latency exactly.
type Part uint8

// The parts, in the order in which reports show them.
const (
	PartNetwork      Part = iota // messages between client and nodes
	PartCPUQueue                 // waiting for a processor
	PartCPUService               // being served by one
	PartLockWait                 // any wait that a controller imposed
	PartDisk                     // the leader's own log write, of the deciding entry
	PartReplication              // from there until a majority had it
	PartCommit                   // two-phase commit: from the coordinator's start to the last vote
	PartBackoff                  // between attempts
	PartAdmission                // from intended arrival to the first begin
	PartThink                    // pauses of the program inside the transaction
	PartLostAttempts             // attempts that aborted
	PartTimestamp                // asking the oracle for timestamps: the way, its queue, its service; or until a machine's clock shows one
	NumParts
)

var partNames = [NumParts]string{
	"network", "cpu_queue", "cpu_service", "lock_wait", "disk", "replication",
	"commit_protocol", "backoff", "admission", "think", "lost_attempts", "timestamp",
}

// String returns the part's name in reports.
func (p Part) String() string { return partNames[p] }

// Parts is a latency divided.
type Parts [NumParts]time.Duration

// Sum returns the whole.
func (p *Parts) Sum() time.Duration {
	var s time.Duration
	for _, d := range p {
		s += d
	}
	return s
}

// Ending is how a request ended.
type Ending uint8

// The endings.
const (
	EndCommitted  Ending = iota
	EndRolledBack        // by the program's own logic: a completion
	EndGivenUp           // its retry bound was reached
	NumEndings
)

// String returns the ending's name in reports.
func (e Ending) String() string {
	switch e {
	case EndCommitted:
		return "committed"
	case EndRolledBack:
		return "rolled back"
	case EndGivenUp:
		return "given up"
	default:
		panic("txnproto: unknown ending")
	}
}

// AttemptRecord describes an attempt that has ended at its client.
type AttemptRecord struct {
	Txn        TxnID
	Request    RequestID
	Client     ClientID
	Class      ClassID
	Attempt    int
	Begin, End event.Time
	Outcome    Outcome
	Reason     AbortReason // Aborted; NoReason there means the program rolled back
	// Key is the key of the operation that was aborted, where one was (KeyKnown).
	Key      Key
	KeyKnown bool
	Ops      int // operations completed
}

// RequestRecord describes a request that has ended.
type RequestRecord struct {
	Request  RequestID
	Txn      TxnID // its last attempt
	Client   ClientID
	Class    ClassID
	Ending   Ending
	Attempts int
	Ops      int        // operations of the last attempt
	Arrival  event.Time // when it was meant to begin
	Begin    event.Time // when its first attempt began
	LastTry  event.Time // when its last attempt began
	End      event.Time
	Parts    Parts       // of End - Arrival
	Reason   AbortReason // of the last abort, if any attempt aborted
}

// Observer hears of everything the clients finish. Records are valid during the call.
type Observer interface {
	// AttemptEnded takes an attempt when its client knows how it ended; what the
	// end of the run cuts off does not end.
	AttemptEnded(a *AttemptRecord)
	// RequestEnded takes a request, after its last attempt.
	RequestEnded(r *RequestRecord)
}

// WaitObserver hears of every wait that a controller imposed, when it is over.
type WaitObserver interface {
	// Waited reports that an operation on key waited for d.
	Waited(shard ShardID, key Key, d time.Duration)
	// WaitedForPlace reports that a transaction waited d at its sequencer until its
	// epoch was over. No key, and nobody, was in its way.
	WaitedForPlace(shard ShardID, d time.Duration)
}
