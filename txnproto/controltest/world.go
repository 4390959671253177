package controltest

import (
	"errors"
	"fmt"
	"time"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// WorldConfig is a random run: clients with random programs, random delays of
// every message, and changes of leader at random times.
type WorldConfig struct {
	Config
	Clients       int
	Requests      int // per client
	Ops           int // at most, per program
	LeaderChanges int
	MaxDelay      time.Duration // of a message; 0: 1 ms
	MaxAttempts   int           // per request; more is an error. 0: 2000
	MaxEvents     int           // 0: ten million
	// Settled lets a client go on only when its commit is carried out on every
	// shard; otherwise it goes on from the decision.
	Settled bool
	// Programs, when given, replaces the random programs.
	Programs func(client, n int) []txnproto.Op
}

// WorldResult says how a random run went.
type WorldResult struct {
	*Driver
	Commits   int
	Rollbacks int // constraint violations, which are not retried, and programs that rolled back
	Aborts    map[txnproto.AbortReason]int
	Worst     int // attempts of the worst request
}

type world struct {
	WorldConfig
	*Driver
	random *rng.Stream
	result WorldResult
	open   int
	failed error
}

// ErrStarved is the error of a run in which a request was aborted time and again.
// Protocols that answer conflicts with aborts alone promise no better.
var ErrStarved = errors.New("starved")

// RunWorld runs the clients to their end. The error names a transaction that
// waits for ever, was retried without end, or left something behind.
func RunWorld(c WorldConfig) (WorldResult, error) {
	if c.MaxDelay == 0 {
		c.MaxDelay = time.Millisecond
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 2000
	}
	if c.MaxEvents == 0 {
		c.MaxEvents = 10_000_000
	}
	w := &world{WorldConfig: c, random: c.Seed.Stream("world")}
	c.Latency = w.delay
	w.Driver = NewDriver(c.Config)
	w.result = WorldResult{Driver: w.Driver, Aborts: map[txnproto.AbortReason]int{}}
	for i := range c.Clients {
		w.open++
		w.call(w.delay(), func() { w.request(i, 0) })
	}
	for range c.LeaderChanges {
		s := w.Driver.Shards[w.random.Uint64n(uint64(c.Config.Shards))]
		w.call(w.delay()*time.Duration(1+w.random.Uint64n(uint64(4*c.Requests))), s.ChangeLeader)
	}
	for range c.MaxEvents {
		if !w.Loop.Step() || w.failed != nil {
			break
		}
	}
	switch {
	case w.failed != nil:
		return w.result, w.failed
	case w.Loop.Len() > 0:
		return w.result, fmt.Errorf("no end after %d events", c.MaxEvents)
	case w.open > 0 || len(w.Stuck()) > 0:
		return w.result, fmt.Errorf("stuck: %d clients have not ended, %v wait", w.open, w.Stuck())
	case w.Open() > 0:
		return w.result, fmt.Errorf("%d branches were left behind", w.Open())
	}
	return w.result, nil
}

func (w *world) delay() time.Duration {
	return time.Duration(w.random.Uint64n(uint64(w.MaxDelay)))
}

// RandomOp draws an operation on keys 0 to keys-1: half reads and modifies, the rest
// of every other kind.
func RandomOp(r *rng.Stream, keys txnproto.Key) txnproto.Op {
	kinds := [...]txnproto.OpKind{
		txnproto.Read, txnproto.Read, txnproto.Read, txnproto.Modify, txnproto.Modify, txnproto.Write,
		txnproto.Write, txnproto.ReadForUpdate, txnproto.Insert, txnproto.Delete, txnproto.Scan, txnproto.Scan,
	}
	op := txnproto.Op{
		Kind:  kinds[r.Uint64n(uint64(len(kinds)))],
		Key:   txnproto.Key(r.Uint64n(uint64(keys))),
		Value: txnproto.Value(1 + r.Uint64n(9)),
	}
	if op.Kind == txnproto.Scan {
		op.End = op.Key + 1 + txnproto.Key(r.Uint64n(uint64(keys)))
	}
	return op
}

func (w *world) request(client, n int) {
	if n == w.Requests {
		w.open--
		return
	}
	var ops []txnproto.Op
	if w.Programs != nil {
		ops = w.Programs(client, n)
	} else {
		for range 1 + w.random.Uint64n(uint64(w.Ops)) {
			ops = append(ops, RandomOp(w.random, w.Driver.Keys))
		}
	}
	s := &session{w: w, client: client, n: n, ops: ops, id: txnproto.RequestID(client*w.Requests + n + 1)}
	s.locks = w.lockSet(ops)
	s.begin(nil)
}

// session drives one request.
type session struct {
	w         *world
	client, n int
	id        txnproto.RequestID
	ops       []txnproto.Op
	locks     []txnproto.ShardLock // to be taken before ops
	locked    int
	a         *Attempt
	next      int
	due       int // answers outstanding
	lost      bool
	sequenced bool
}

func (s *session) begin(prev *Attempt) {
	s.a = s.w.Begin(s.id, prev)
	s.next, s.locked, s.due, s.lost = 0, 0, 0, false
	s.sequenced = !s.w.claim(s.a, s.ops)
	s.step()
}

// step locks what is declared, then runs the operations, each under a savepoint of its
// own but for the first: RollbackTo with value n undoes operations n to the last.
func (s *session) step() {
	if !s.sequenced {
		s.sequenced = true
		s.access(txnproto.Op{Kind: txnproto.Sequence}, []*Shard{s.w.home(s.a, s.ops)})
		return
	}
	if s.locked < len(s.locks) {
		l := s.locks[s.locked]
		s.locked++
		s.access(l.Op, []*Shard{s.w.Driver.Shards[l.Shard]})
		return
	}
	if s.next == len(s.ops) {
		s.commit()
		return
	}
	op := s.ops[s.next]
	if op == RollBack {
		s.rollBack()
		return
	}
	if s.next > 0 {
		s.a.Savepoint()
	}
	s.next++
	if op.Kind == txnproto.RollbackTo {
		s.rollbackTo(int(op.Value))
		return
	}
	shards := []*Shard{s.w.ShardOf(op.Key)}
	if op.Kind == txnproto.Scan {
		shards = s.w.Driver.Shards
	}
	s.access(op, shards)
}

// grown tells the shards of a lock point, in messages that others may overtake.
func (s *session) grown() {
	a, ahead := s.a, withoutRollBack(s.ops[s.next:])
	s.w.Driver.grown(a, &s.ops[s.next-1], ahead, func(sh *Shard) {
		s.w.call(s.w.delay(), func() { sh.Shrink(a, ahead) })
	})
}

// rollBack ends the request by its own will.
func (s *session) rollBack() {
	a := s.a
	a.Outcome, s.lost = txnproto.Aborted, true
	s.w.result.Rollbacks++
	s.forgo(a)
	for _, id := range a.participants() {
		s.w.call(s.w.delay(), func() { s.w.Driver.Shards[id].Finish(a, txnproto.Aborted) })
	}
	s.w.call(s.w.MaxDelay, s.done)
}

// rollbackTo undoes operations, branch after branch at once.
func (s *session) rollbackTo(save int) {
	a := s.a
	ids := a.participants()
	s.due = len(ids)
	for _, id := range ids {
		sh := s.w.Driver.Shards[id]
		s.w.call(s.w.delay(), func() {
			if a.Outcome == txnproto.Undecided {
				sh.RollbackTo(a, save)
				s.heard(a, txnproto.Granted, func() { a.forgetReads(save); s.step() })
			}
		})
	}
}

func (s *session) access(op txnproto.Op, shards []*Shard) {
	a := s.a
	s.due = len(shards)
	for _, sh := range shards {
		s.w.call(s.w.delay(), func() {
			if a.Outcome != txnproto.Undecided {
				return
			}
			sh.Access(a, op, func(v txnproto.Verdict) { s.heard(a, v, s.goOn) }, func(r txnproto.AbortReason) {
				s.heard(a, txnproto.Abort(r), nil)
			})
		})
	}
}

// goOn follows an operation that was granted.
func (s *session) goOn() {
	if s.next > 0 {
		s.grown()
	}
	s.step()
}

// heard takes an answer back to the client and goes on with then after the last.
func (s *session) heard(a *Attempt, v txnproto.Verdict, then func()) {
	s.w.call(s.w.delay(), func() {
		if s.a != a || s.lost {
			return
		}
		if r, aborted := v.Aborted(); aborted {
			s.lose(r)
			return
		}
		if s.due--; s.due == 0 {
			then()
		}
	})
}

// lose ends the attempt everywhere and tries again.
func (s *session) lose(r txnproto.AbortReason) {
	s.lost = true
	a := s.a
	s.w.result.Aborts[r]++
	for _, id := range a.participants() {
		s.w.call(s.w.delay(), func() { s.w.Driver.Shards[id].Finish(a, txnproto.Aborted) })
	}
	s.forgo(a)
	if r == txnproto.Constraint {
		s.w.result.Rollbacks++
		s.w.call(s.w.MaxDelay, s.done) // its end has arrived everywhere
		return
	}
	if a.Number >= s.w.MaxAttempts {
		s.w.failed = fmt.Errorf("request %d has been aborted %d times, last for %v: %w", s.id, a.Number, r, ErrStarved)
		return
	}
	backoff := s.w.delay() * time.Duration(min(a.Number, 20))
	s.w.call(backoff, func() { s.begin(a) })
}

func (s *session) done() {
	s.w.result.Worst = max(s.w.result.Worst, s.a.Number)
	s.w.call(s.w.delay(), func() { s.w.request(s.client, s.n+1) })
}

func (s *session) commit() {
	a := s.a
	s.forgo(a)
	ids := a.participants()
	s.due = len(ids)
	for _, id := range ids {
		sh := s.w.Driver.Shards[id]
		s.w.call(s.w.delay(), func() {
			if a.Outcome != txnproto.Undecided {
				return
			}
			sh.Prepare(a, func(v txnproto.Verdict) {
				if len(ids) == 1 && v.IsGranted() {
					s.decided(ids) // one log entry, written where it prepared
					return
				}
				s.heard(a, v, func() { s.decided(ids) })
			})
		})
	}
}

// decided logs the decision and carries it out.
func (s *session) decided(ids []txnproto.ShardID) {
	a := s.a
	if r := s.w.judge(a); r != txnproto.NoReason {
		a.Outcome, a.Reason = txnproto.Aborted, r
		s.lose(r)
		return
	}
	s.w.decide(a)
	s.w.result.Commits++
	for _, id := range ids {
		sh := s.w.Driver.Shards[id]
		if a.branches[id].stage == ended {
			continue
		}
		logIt := func() {
			if a.branches[id].stage != ended {
				sh.LogCommit(a)
				sh.drainLog()
			}
		}
		if len(ids) == 1 {
			logIt()
		} else {
			s.w.call(s.w.delay(), logIt)
		}
	}
	if s.w.Settled {
		s.settle()
	} else {
		s.done()
	}
}

// settle goes on when the attempt has no open branch.
func (s *session) settle() {
	for _, b := range s.a.branches {
		if b != nil && b.stage != ended {
			s.w.call(s.w.delay(), s.settle)
			return
		}
	}
	s.done()
}

// drainLog arranges that the commits in the shard's log are installed and
// finished in order.
func (sh *Shard) drainLog() {
	d := sh.d
	delay := func() time.Duration {
		if d.Latency == nil {
			return 0
		}
		return d.Latency()
	}
	at := d.Loop.Now().Add(delay())
	sh.applyAt = max(sh.applyAt, at)
	term := sh.term
	d.call(sh.applyAt.Sub(d.Loop.Now()), func() {
		if sh.term != term {
			return
		}
		for _, b := range sh.log {
			if !b.visible {
				sh.Install(b.attempt)
				break
			}
		}
		sh.finishAt = max(sh.finishAt, d.Loop.Now())
		if d.Early {
			sh.finishAt = max(sh.finishAt, d.Loop.Now().Add(delay()/4))
		}
		d.call(sh.finishAt.Sub(d.Loop.Now()), func() {
			if sh.term == term {
				sh.Finish(sh.log[0].attempt, txnproto.Committed)
			}
		})
	})
}
