package controltest

import (
	"fmt"
	"slices"
	"time"

	"interleave/sim/event"
	"interleave/sim/rng"
	"interleave/txnproto"
)

// Config is what a Driver runs.
type Config struct {
	Protocol *txnproto.Protocol
	Params   map[string]string
	Shards   int            // key k is in shard k mod Shards
	Keys     txnproto.Key   // rows are 0 to Keys-1
	Present  []txnproto.Key // those that exist at the start
	Seed     rng.Seed
	Latency  func() time.Duration // of a message between controllers; nil: none
	// Early makes a commit visible some time before the controller hears of it, as
	// a replicated log does that applies several entries at once.
	Early bool
	// LateBegin lets Explore begin a program with its first step instead of before all.
	LateBegin bool
	// Skew, when not 0, makes an attempt's timestamp a reading of a clock that may be off
	// by so much either way, another for each attempt: in no order, but none twice.
	Skew time.Duration
	// After is called when a controller call, and what followed from it, is over.
	After func(s txnproto.ShardID, c txnproto.Controller)
}

// Driver is a set of shards under one protocol.
type Driver struct {
	Config
	Loop   *event.Loop
	Shards []*Shard

	History []*Attempt // committed ones, in order of decision
	begun   []*Attempt // those that may be undecided

	params  txnproto.Params
	newest  txnproto.Timestamp
	lastTxn txnproto.TxnID
	skews   *rng.Stream
	settled bool // the clocks
	calls   []func()
	run     event.HandlerID
	arrived map[[2]txnproto.ShardID]event.Time
}

// NewDriver makes a driver. It panics on parameters that the protocol does not take.
func NewDriver(c Config) *Driver {
	p, err := txnproto.NewParams(c.Protocol.Name, c.Protocol.Params, c.Params)
	if err != nil {
		panic(err)
	}
	d := &Driver{Config: c, Loop: event.New(), params: p, arrived: map[[2]txnproto.ShardID]event.Time{}}
	d.skews = c.Seed.Stream("skews")
	d.run = d.Loop.Handle("controltest.call", func(arg uint64) {
		f := d.calls[arg]
		d.calls[arg] = nil
		f()
	})
	for i := range c.Shards {
		s := &Shard{id: txnproto.ShardID(i), d: d, store: newStore(c.Protocol.Versioning)}
		s.stats.Extra = map[string]uint64{}
		s.timer = d.Loop.Handle("controltest.timer", s.fire)
		s.random = c.Seed.Stream(fmt.Sprintf("control/%d", i))
		d.Shards = append(d.Shards, s)
	}
	for _, k := range c.Present {
		d.ShardOf(k).store.set(txnproto.Row{Key: k, Exists: true})
	}
	for _, s := range d.Shards {
		s.control = c.Protocol.New(s, p)
	}
	return d
}

// ShardOf returns the shard that k is in.
func (d *Driver) ShardOf(k txnproto.Key) *Shard {
	return d.Shards[uint64(k)%uint64(len(d.Shards))]
}

// call runs f after a delay.
func (d *Driver) call(delay time.Duration, f func()) {
	d.calls = append(d.calls, f)
	d.Loop.After(delay, d.run, uint64(len(d.calls)-1))
}

// Attempt is one transaction attempt.
type Attempt struct {
	ID       txnproto.TxnID
	Request  txnproto.RequestID
	TS       txnproto.Timestamp
	First    txnproto.Timestamp
	CommitTS txnproto.Timestamp // drawn at the decision of one that wrote, where versions are numbered by it
	Number   int
	Hits     int
	Outcome  txnproto.Outcome
	Reason   txnproto.AbortReason
	Reads    []ReadOf
	Writes   []ReadOf // versions that it installed
	ReadOnly bool     // declared to read only
	Place    txnproto.Place
	Claims   []txnproto.Claim // with which it is sequenced
	save     int              // savepoints set so far
	marks    []int            // len(Reads) at each
	grown    []int            // the mark of growth at each
	branches []*branch
	agreed   txnproto.Vote
	growth   txnproto.Growth
	past     bool       // its lock point
	From     []*Attempt // whose exposed writes it has read, as long as these were undecided
	Exposed  []ReadOf   // versions that others have read so
}

// ReadOf is a version of a key that was read or written.
type ReadOf struct {
	Key     txnproto.Key
	Version txnproto.Version
}

// Begin starts an attempt of a request; prev is the request's attempt before, or nil.
func (d *Driver) Begin(r txnproto.RequestID, prev *Attempt) *Attempt {
	d.lastTxn++
	ts := d.drawTS()
	a := &Attempt{ID: d.lastTxn, Request: r, TS: ts, First: ts, Number: 1}
	a.branches = make([]*branch, len(d.Shards))
	d.begun = append(d.begun, a)
	if prev != nil {
		a.First, a.Number, a.Hits = prev.First, prev.Number+1, prev.Hits
		if prev.Reason == txnproto.Deadlock {
			a.Hits++
		}
	}
	return a
}

// idBits are the low bits of a clock's timestamp, which tell attempts apart.
const idBits = 24

// drawTS draws the timestamp of the newest attempt.
func (d *Driver) drawTS() txnproto.Timestamp {
	if d.Skew == 0 {
		d.newest++
		return d.newest
	}
	off := 2 * d.Skew
	if !d.settled {
		off = time.Duration(d.skews.Uint64n(2*uint64(d.Skew) + 1))
	}
	ts := d.clockTS(off) + txnproto.Timestamp(d.lastTxn)
	d.newest = max(d.newest, ts)
	return ts
}

// SettleClocks makes every clock as fast as the fastest from now on: timestamps come in
// order again, after all that have been.
func (d *Driver) SettleClocks() { d.settled = true }

// clockTS is the least timestamp of a clock that is ahead by off, less the skew.
func (d *Driver) clockTS(off time.Duration) txnproto.Timestamp {
	return txnproto.Timestamp(d.Loop.Now().Add(off)+1) << idBits
}

// participants returns the shards where the attempt has a branch.
func (a *Attempt) participants() []txnproto.ShardID {
	var ids []txnproto.ShardID
	for i, b := range a.branches {
		if b != nil {
			ids = append(ids, txnproto.ShardID(i))
		}
	}
	return ids
}

// judge merges the votes of a's branches and returns why it may not commit, if so.
func (d *Driver) judge(a *Attempt) txnproto.AbortReason {
	a.agreed = txnproto.Vote{}
	for _, b := range a.branches {
		if b == nil || d.Protocol.Agree == nil {
			continue
		}
		var r txnproto.AbortReason
		if a.agreed, r = d.Protocol.Agree(a.agreed, b.tx.Vote); r != txnproto.NoReason {
			return r
		}
	}
	return txnproto.NoReason
}

// decide notes the commit decision, once. REQUIRES: judge has nothing against it.
func (d *Driver) decide(a *Attempt) {
	if a.Outcome == txnproto.Committed {
		return
	}
	a.Outcome = txnproto.Committed
	wrote := slices.ContainsFunc(a.branches, func(b *branch) bool { return b != nil && len(b.tx.Puts) > 0 })
	if wrote && d.Protocol.Versioning == txnproto.VersionByCommit {
		d.newest++
		a.CommitTS = d.newest
	}
	for _, b := range a.branches {
		if b != nil && b.recovered {
			a.agreed = txnproto.Vote{} // as when the coordinator is the one that was lost
		}
	}
	for _, b := range a.branches {
		if b != nil {
			b.tx.CommitTS, b.tx.Agreed = a.CommitTS, a.agreed
		}
	}
	d.History = append(d.History, a)
}

type stage uint8

const (
	idle stage = iota
	running
	preparing
	prepared
	ended
)

// branch is an attempt at one shard.
type branch struct {
	tx      txnproto.Txn
	attempt *Attempt
	stage   stage
	op      txnproto.Op
	wait    bool
	undo    []undoPut
	visible bool // its writes are installed
	found   bool // its last read found a row
	// recovered says that it was prepared under an earlier leader.
	recovered bool
	logged    bool // its commit is in the log and cannot be lost
	reply     func(txnproto.Verdict)
	told      func(txnproto.AbortReason) // the client's ear for aborts between operations
}

// Shard is one shard with its controller; it is the controller's Host.
type Shard struct {
	id       txnproto.ShardID
	d        *Driver
	store    *store
	control  txnproto.Controller
	term     uint64
	stats    txnproto.ControlStats
	random   *rng.Stream
	timer    event.HandlerID
	timers   []timerArg
	slots    []*branch // live, by Slot
	inCall   bool
	todo     []func()
	prepared []*branch  // in log order, not yet ended
	log      []*branch  // commits logged and not yet finished, in log order
	batchAt  event.Time // when the newest batch is in the log
	applyAt  event.Time
	finishAt event.Time
	exposed  txnproto.Version // the newest that was exposed
	blocked  func(tx *txnproto.Txn, k txnproto.Key, on []txnproto.TxnID)
}

type timerArg struct{ term, arg uint64 }

// Controller returns the shard's controller.
func (s *Shard) Controller() txnproto.Controller { return s.control }

// enter runs one controller call and then what the controller asked for in it.
func (s *Shard) enter(call func()) {
	if s.inCall {
		panic("controltest: a controller is called from within its own call")
	}
	s.inCall = true
	call()
	s.inCall = false
	for len(s.todo) > 0 {
		f := s.todo[0]
		s.todo = s.todo[1:]
		f()
	}
	if s.d.After != nil {
		s.d.After(s.id, s.control)
	}
}

// Access runs one operation of a at this shard; reply is told the verdict, once,
// and told hears of an abort that comes while nothing is asked.
func (s *Shard) Access(a *Attempt, op txnproto.Op, reply func(txnproto.Verdict), told func(txnproto.AbortReason)) {
	b := a.branches[s.id]
	if b == nil {
		b = s.newBranch(a)
	}
	if b.stage != running || b.wait {
		panic(fmt.Sprintf("controltest: %v is not ready for an operation", a.ID))
	}
	b.op, b.reply, b.told, b.wait = op, reply, told, true
	b.tx.Save = a.save
	if op.Kind == txnproto.Sequence {
		b.tx.Claims = a.Claims
	}
	s.enter(func() {
		v := s.control.Access(&b.tx, &b.op)
		if !v.IsWaiting() {
			s.todo = append(s.todo, func() { s.answer(b, v) })
		}
	})
}

// Prepare asks whether a may commit here.
func (s *Shard) Prepare(a *Attempt, reply func(txnproto.Verdict)) {
	b := a.branches[s.id]
	if b.stage != running || b.wait {
		panic(fmt.Sprintf("controltest: %v is not ready to prepare", a.ID))
	}
	b.stage, b.reply, b.wait = preparing, reply, true
	b.tx.Alone = len(a.participants()) == 1
	s.enter(func() {
		v := s.control.Prepare(&b.tx)
		if !v.IsWaiting() {
			s.todo = append(s.todo, func() { s.answer(b, v) })
		}
	})
}

// Finish ends a here. A committed branch's writes are installed first, by Install
// or by Finish itself.
func (s *Shard) Finish(a *Attempt, o txnproto.Outcome) {
	b := a.branches[s.id]
	if b == nil || b.stage == ended {
		return
	}
	if o == txnproto.Committed {
		s.Install(a)
	}
	s.end(b, o)
}

// Install makes a's writes here visible.
func (s *Shard) Install(a *Attempt) {
	b := a.branches[s.id]
	if b.visible {
		return
	}
	b.visible = true
	for i := range b.tx.Puts {
		p := &b.tx.Puts[i]
		s.store.install(&b.tx, p)
		a.Writes = append(a.Writes, ReadOf{p.Key, p.Version})
	}
}

func (s *Shard) newBranch(a *Attempt) *branch {
	b := &branch{attempt: a, stage: running}
	b.tx = txnproto.Txn{
		ID: a.ID, Request: a.Request, Attempt: a.Number, Hits: a.Hits, TS: a.TS, FirstTS: a.First,
		ReadOnly: a.ReadOnly, Place: a.Place,
	}
	b.tx.Slot = slices.Index(s.slots, nil)
	if b.tx.Slot < 0 {
		b.tx.Slot = len(s.slots)
		s.slots = append(s.slots, nil)
	}
	s.slots[b.tx.Slot] = b
	a.branches[s.id] = b
	return b
}

// answer ends the waiting of b.
func (s *Shard) answer(b *branch, v txnproto.Verdict) {
	if b.stage == ended {
		return
	}
	if !b.wait {
		panic(fmt.Sprintf("controltest: %v was answered twice", b.tx.ID))
	}
	b.wait = false
	reply := b.reply
	if v.IsGranted() && b.stage == running && !s.execute(b) {
		v = txnproto.Abort(txnproto.Constraint)
	}
	if r, aborted := v.Aborted(); aborted {
		s.note(b.attempt, r)
		reply(v)
		s.end(b, txnproto.Aborted)
		return
	}
	if b.stage == preparing {
		b.stage = prepared
		switch {
		case len(b.tx.Puts) == 0 && s.d.Protocol.DropReadOnly:
			s.end(b, txnproto.Committed)
		default:
			s.prepared = append(s.prepared, b)
		}
	} else if b.op.Kind == txnproto.Sequence {
		b.attempt.Place = txnproto.Place(b.op.Value)
		b.tx.Place, b.tx.Claims = b.attempt.Place, nil
	} else {
		b.tx.Ops++
	}
	reply(v)
}

func (s *Shard) note(a *Attempt, r txnproto.AbortReason) {
	if a.Outcome == txnproto.Committed {
		panic(fmt.Sprintf("controltest: %v is aborted after its commit", a.ID))
	}
	if a.Outcome == txnproto.Undecided {
		a.Outcome, a.Reason = txnproto.Aborted, r
	}
}

func (s *Shard) end(b *branch, o txnproto.Outcome) {
	if b.stage == ended {
		return
	}
	b.stage, b.wait = ended, false
	if i := slices.Index(s.prepared, b); i >= 0 {
		s.prepared = slices.Delete(s.prepared, i, i+1)
	}
	if b.logged {
		i := slices.Index(s.log, b)
		s.log = slices.Delete(s.log, i, i+1)
	}
	s.enter(func() {
		s.control.Finish(&b.tx, o)
		s.slots[b.tx.Slot] = nil
	})
}

// LogCommit notes that a's commit is in the shard's log: a change of leader carries it out.
func (s *Shard) LogCommit(a *Attempt) {
	b := a.branches[s.id]
	b.logged = true
	s.log = append(s.log, b)
}

// execute does what a granted operation does; it reports false when a constraint forbids it.
func (s *Shard) execute(b *branch) bool {
	k := b.op.Key
	if b.op.Skip {
		return true
	}
	switch b.op.Kind {
	case txnproto.Read, txnproto.ReadForUpdate:
		s.read(b, k)
	case txnproto.Write:
		b.put(txnproto.Put{Key: k, Value: b.op.Value})
	case txnproto.Modify:
		r := s.read(b, k)
		b.put(txnproto.Put{Key: k, Value: r.Value + b.op.Value})
	case txnproto.Insert:
		if s.read(b, k).Exists {
			return false
		}
		b.put(txnproto.Put{Key: k, Value: b.op.Value})
	case txnproto.Delete:
		b.put(txnproto.Put{Key: k, Deleted: true})
	case txnproto.Scan:
		for k := b.op.Key; k < min(b.op.End, s.d.Keys); k++ {
			if s.d.ShardOf(k) == s {
				s.read(b, k)
			}
		}
		s.seeRange(b)
	case txnproto.LockShared, txnproto.LockExclusive, txnproto.Sequence:
	default:
		panic("controltest: unknown operation")
	}
	return true
}

func (s *Shard) read(b *branch, k txnproto.Key) txnproto.Row {
	if p := b.tx.Put(k); p != nil {
		b.found = true
		return txnproto.Row{Key: k, Value: p.Value, Exists: !p.Deleted, Own: true}
	}
	r := s.store.At(k, b.op.Snapshot)
	if s.d.Protocol.Exposes() {
		r = s.see(b, k)
	}
	b.found = r.Exists
	b.attempt.Reads = append(b.attempt.Reads, ReadOf{k, r.Version})
	return r
}

// ChangeLeader replaces the shard's controller: what is prepared is recovered,
// what is in the log as a commit is carried out, all else aborts.
func (s *Shard) ChangeLeader() {
	s.term++
	for _, b := range s.log {
		s.Install(b.attempt)
		b.stage = ended
	}
	s.log = nil
	s.control = s.d.Protocol.New(s, s.d.params)
	var lost []*branch
	for i, b := range s.slots {
		s.slots[i] = nil
		if b != nil && b.stage != prepared && b.stage != ended {
			lost = append(lost, b)
		}
	}
	s.prepared = slices.DeleteFunc(s.prepared, func(b *branch) bool { return b.stage == ended })
	for i, b := range s.prepared {
		b.tx.Slot, b.recovered = i, true
		s.slots[i] = b
		if r, ok := s.control.(txnproto.Recoverer); ok {
			s.enter(func() { r.Recover(&b.tx) })
		}
	}
	for _, b := range lost {
		waiting := b.wait
		b.stage, b.wait = ended, false
		s.note(b.attempt, txnproto.LeaderChange)
		if waiting {
			b.reply(txnproto.Abort(txnproto.LeaderChange))
		} else {
			b.told(txnproto.LeaderChange)
		}
	}
	for _, peer := range s.d.Shards {
		if m, ok := peer.control.(txnproto.Messenger); ok && peer != s {
			peer.enter(func() { m.PeerReset(s.id) })
		}
	}
}

// Stuck lists the branches that wait.
func (d *Driver) Stuck() []txnproto.TxnID {
	var ids []txnproto.TxnID
	for _, s := range d.Shards {
		for _, b := range s.slots {
			if b != nil && b.wait {
				ids = append(ids, b.tx.ID)
			}
		}
	}
	return ids
}

// Open counts branches that have not ended.
func (d *Driver) Open() int {
	n := 0
	for _, s := range d.Shards {
		for _, b := range s.slots {
			if b != nil {
				n++
			}
		}
	}
	return n
}

// Stats sums the controllers' counters.
func (d *Driver) Stats() txnproto.ControlStats {
	sum := txnproto.ControlStats{Extra: map[string]uint64{}}
	for _, s := range d.Shards {
		sum.Deadlocks += s.stats.Deadlocks
		sum.FalseDeadlocks += s.stats.FalseDeadlocks
		for i, n := range s.stats.CycleLength {
			sum.CycleLength[i] += n
		}
		sum.QueueSum += s.stats.QueueSum
		sum.QueueCount += s.stats.QueueCount
		sum.QueueMax = max(sum.QueueMax, s.stats.QueueMax)
		for name, n := range s.stats.Extra { // order: sums by name
			sum.Extra[name] += n
		}
	}
	return sum
}
