package txnproto

import (
	"time"

	"interleave/sim/event"
	"interleave/sim/rng"
)

// Vote is what a branch tells its coordinator beside yes; its meaning is the
// protocol's own.
type Vote [3]uint64

// Txn is one attempt as one shard sees it: its branch there. The host makes it
// at the attempt's first operation on the shard and drops it after Finish.
//
// All fields but the workspace are fixed at the branch's birth.
type Txn struct {
	ID      TxnID
	Request RequestID
	Client  ClientID
	Class   ClassID
	Attempt int       // 1 for the request's first
	Hits    int       // earlier attempts of the request that were deadlock victims
	TS      Timestamp // drawn at this attempt's begin
	FirstTS Timestamp // drawn at the request's first begin: its age over all attempts

	// CommitTS is drawn when the commit is decided, under protocols whose versions
	// are numbered by it (VersionByCommit); set before Finish with Committed.
	CommitTS Timestamp

	// ReadOnly says that the program has declared that it will not write; see
	// Protocol.TellReadOnly.
	ReadOnly bool

	// Place is the attempt's place in the global order, under protocols that have one;
	// 0: it has none yet, or its client has not heard.
	Place Place

	// Claims are what the attempt will want, in the order of SortClaims, while its
	// Sequence is being answered.
	Claims []Claim

	// Alone says, from Prepare on, that the attempt has no branch but this one, and is
	// decided by its Prepare: no timestamp of its commit has to be asked for first.
	Alone bool

	// Vote is filled in by the controller in Prepare for the coordinator, which
	// merges the votes of all branches with Protocol.Agree. Agreed is what they came
	// to, set before Finish with Committed; zero when it was lost with a leader.
	Vote, Agreed Vote

	// Save counts the savepoints set so far: what the branch does now is undone by
	// a rollback to any of them (their numbers are 1 to Save).
	Save int

	// Slot is the branch's dense index in this shard, reused after Finish. A
	// controller keeps its own state per branch in a slice by Slot, and knows a
	// newcomer by an ID that differs from the one it stored.
	Slot int

	// Ops counts operations granted to the branch so far (the work done here).
	Ops int

	// Puts is the workspace: the branch's uncommitted writes, one per key, in
	// order of first write. The host fills it in when a write is granted.
	Puts []Put
	idx  map[Key]int // places in Puts; used from 16 puts on, else empty
}

const putIndexFrom = 16

// Put returns the branch's own uncommitted write of k, or nil.
func (t *Txn) Put(k Key) *Put {
	if len(t.idx) > 0 {
		if i, ok := t.idx[k]; ok {
			return &t.Puts[i]
		}
		return nil
	}
	for i := range t.Puts {
		if t.Puts[i].Key == k {
			return &t.Puts[i]
		}
	}
	return nil
}

// SetPut records an uncommitted write. Only the host calls it.
func (t *Txn) SetPut(p Put) {
	if old := t.Put(p.Key); old != nil {
		*old = p
		return
	}
	t.Puts = append(t.Puts, p)
	if len(t.idx) > 0 {
		t.idx[p.Key] = len(t.Puts) - 1
		return
	}
	if len(t.Puts) > putIndexFrom {
		if t.idx == nil {
			t.idx = make(map[Key]int, 2*len(t.Puts))
		}
		for i := range t.Puts {
			t.idx[t.Puts[i].Key] = i
		}
	}
}

// DropPut takes k out of the workspace: that write will not be installed. A
// controller may call it in Prepare, and while that waits, for a write that its
// protocol skips.
func (t *Txn) DropPut(k Key) {
	for i := range t.Puts {
		if t.Puts[i].Key == k {
			t.Puts = append(t.Puts[:i], t.Puts[i+1:]...)
			break
		}
	}
	clear(t.idx)
	if len(t.Puts) > putIndexFrom {
		for i := range t.Puts {
			t.idx[t.Puts[i].Key] = i
		}
	}
}

// DropLastPut takes the newest row out of the workspace. Only the host calls it.
func (t *Txn) DropLastPut() {
	n := len(t.Puts) - 1
	if t.idx != nil {
		delete(t.idx, t.Puts[n].Key)
	}
	t.Puts = t.Puts[:n]
}

// Reset makes t an empty branch, keeping its memory. Only the host calls it.
func (t *Txn) Reset() {
	if len(t.idx) > 0 {
		clear(t.idx)
	}
	slot, puts, idx := t.Slot, t.Puts[:0], t.idx
	*t = Txn{} // in place: a literal with these fields would be built elsewhere and copied
	t.Slot, t.Puts, t.idx = slot, puts, idx
}

// Controller is one shard's concurrency control. Its host calls it from the
// event loop, one call at a time, and never from within a Host method: what a
// controller asks of its host takes effect after the current call returns.
//
// The life of a branch is: Access for each operation (after Waiting no further
// call for the branch until its Resolve, but Finish may come: another shard, a
// wound or the client can abort it); Prepare once, when the client commits;
// Finish once. After an Abort verdict, given or resolved, the host calls Finish
// with Aborted. A branch recovered from the log by a new leader is born
// prepared: see Recoverer. Under Protocol.Sequenced a branch may see nothing but Finish
// with Aborted: its attempt has claims here, and has ended without coming.
type Controller interface {
	// Access asks to run op for tx. Granted and Abort are final. After Waiting,
	// the controller calls Host.Resolve for tx exactly once, later, unless
	// Finish comes first. On Granted the host reads the newest committed version
	// of the rows (or the branch's own write) and puts writes in the workspace.
	// op is valid until it is answered.
	Access(tx *Txn, op *Op) Verdict
	// Prepare asks whether tx may commit here: validation. Same verdicts.
	// After Granted the branch can no longer be killed by the controller.
	Prepare(tx *Txn) Verdict
	// Finish ends tx here and releases what it holds. On Committed the host has
	// already installed its writes.
	Finish(tx *Txn, outcome Outcome)
}

// Recoverer is implemented by controllers whose prepared transactions need
// more than nothing to survive a change of leader: the new leader's host calls
// Recover for each prepared branch in its log, in log order, before any other
// call. The controller takes back what protects tx.Puts (locks, pending writes).
type Recoverer interface {
	Recover(tx *Txn)
}

// Savepointer is implemented by controllers that let go of something when a
// transaction rolls back to a savepoint.
type Savepointer interface {
	// RollbackTo is told that tx undoes what it did under savepoint save and later
	// ones: what was acquired while tx.Save was at least save may be released. The
	// host has already undone the workspace.
	RollbackTo(tx *Txn, save int)
}

// Exposer is implemented by the controllers of protocols under which writes can be seen
// before they are committed; see Protocol.Exposes. The controller keeps the exposed
// writes, over the rows of the store. When it exposes one it numbers it by
// Host.NewVersion in the workspace (Put.Version), and so every write before it answers
// Prepare with Granted: it is installed as that version, whenever its turn comes in the log. Recover
// finds the numbers in the workspace.
type Exposer interface {
	// Shrink says that tx has reached its lock point: on no shard will it run an
	// operation that needs a lock it does not hold, and here none but those of ahead.
	// Prepare says the same of a transaction that Shrink was not called for. It may be
	// called again, with more or fewer operations ahead than before.
	Shrink(tx *Txn, ahead []Op)
	// See returns what tx finds at k, which it may read: the newest write exposed or
	// committed. It is called when a granted operation is carried out.
	See(tx *Txn, k Key) Row
	// SeeRange does so for the rows of [lo, hi): rows are the committed ones in key order,
	// as Result.Rows has them, and are returned with the exposed ones among them. Keys that
	// tx has written itself are left as they are.
	SeeRange(tx *Txn, lo, hi Key, rows []Row) []Row
	// Seen reports whether another transaction has seen an exposed write of tx.
	Seen(tx *Txn) bool
}

// Timed is implemented by controllers that use Host.After.
type Timed interface {
	// Timer is called when the timer set with arg has run out.
	Timer(arg uint64)
}

// Messenger is implemented by controllers that use Host.Send.
type Messenger interface {
	// Receive takes a message that the controller of shard from sent.
	Receive(from ShardID, m *Message)
	// PeerReset says that shard's controller was lost with its leader and starts empty.
	PeerReset(shard ShardID)
}

// Logger is implemented by controllers that use Host.Log.
type Logger interface {
	// Logged says that the oldest batch given to Log, of those not yet reported, is in
	// the log for good. A batch that is lost with its leader is not reported.
	Logged()
}

// Message goes from the controller of one shard to that of another, with the
// latency of the link between their leaders; two on the same way keep their order.
type Message struct {
	Kind uint8
	Txn  TxnID
	Args [6]uint64
	Txns []TxnID
	// Batch is nil for most. The receiver may read it during Receive only.
	Batch *Batch
}

// Host is what a controller has: the clock, timers, the store and the way to
// answer. Methods have no effect inside the controller's current call but to
// note what shall happen after it.
type Host interface {
	// Shard is the shard this controller is in charge of; Shards how many there are.
	Shard() ShardID
	Shards() int
	// Now is the virtual time.
	Now() event.Time
	// Store is the committed state of the shard.
	Store() Store
	// NewestTS is the newest timestamp that any attempt of the run has drawn so far,
	// 0 before the first: what a controller without memory must reckon with.
	NewestTS() Timestamp
	// PrepareTS is a timestamp that is not newer than tx's commit will be, and not older
	// than the snapshot of any operation that was granted here. To be called in Prepare.
	PrepareTS(tx *Txn) Timestamp
	// OldestTS is the oldest timestamp that a running attempt of the run may read
	// at: versions that only older ones would see are garbage.
	OldestTS() Timestamp
	// NewVersion returns a number above all that it has returned at this shard before,
	// under whichever leader: what an Exposer numbers writes by. (A real system would put the
	// leader's term before a count of its own.)
	NewVersion() Version
	// Resolve ends the Waiting of tx's operation or prepare.
	Resolve(tx *Txn, v Verdict)
	// Kill aborts another branch with a reason, whatever it is doing: its client is
	// told, and Finish follows after the current call. It reports false when the
	// branch is prepared or has ended: then it must be waited for.
	Kill(tx *Txn, r AbortReason) bool
	// Blocked reports that tx has begun to wait for the given transactions
	// over key; for the report, traces and the waits-for picture.
	Blocked(tx *Txn, key Key, on []TxnID)
	// After asks for Timer(arg) in d; Cancel takes it back.
	After(d time.Duration, arg uint64) event.Timer
	Cancel(t event.Timer) bool
	// Send sends a message to the controller of another shard. It copies m.
	Send(to ShardID, m *Message)
	// Log puts a batch, which it copies, into the shard's log as one entry. The log has
	// what it costs and that it is safe; nothing is read back from it.
	Log(b *Batch)
	// Rand is the controller's own random stream.
	Rand() *rng.Stream
	// Stats are the counters the controller fills in.
	Stats() *ControlStats
}

// Store is the committed state of one shard as its controller may read it.
type Store interface {
	// Get returns the newest committed row of k.
	Get(k Key) Row
	// Present reports whether k holds a row in its newest committed state: Get's
	// Exists, at less cost.
	Present(k Key) bool
	// NextKey returns the smallest present key >= k in this shard, and false when
	// there is none: the key whose gap a range lock must cover.
	NextKey(k Key) (Key, bool)
	// At returns the newest row of k whose version is not above v. It differs from
	// Get under protocols that keep versions only.
	At(k Key, v Version) Row
}

// ControlStats are a controller's counters, summed over shards in the report.
type ControlStats struct {
	Deadlocks      uint64            // cycles found
	FalseDeadlocks uint64            // cycles that no longer held when the victim was reached
	CycleLength    [16]uint64        // by number of transactions; the last bucket holds longer ones
	QueueSum       uint64            // queue lengths met by waiting operations, summed
	QueueCount     uint64            // how many operations met a queue
	QueueMax       int               // the longest queue met
	Extra          map[string]uint64 // a protocol's own counters by name
}
