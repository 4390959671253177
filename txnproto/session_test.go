package txnproto

import (
	"reflect"
	"testing"
	"time"

	"interleave/sim/event"
	"interleave/sim/rng"
)

const ms = time.Millisecond

// TestPartsOfARequest checks every part of a request's latency exactly: two
// operations, a pause and a commit on the second try.
func TestPartsOfARequest(t *testing.T) {
	f := newFake(t, 2)
	f.answer = func(m *Msg) bool {
		if m.Tx.Attempt == 1 && m.Kind == MsgOp && m.Op.Key == 1 {
			return refuse(m, Deadlock)
		}
		grant(m)
		if m.Kind == MsgOutcome {
			m.Parts[PartDisk] = 0
		}
		return true
	}
	retry := Retry{Policy: RetryFixed, Base: 7 * ms}
	f.start(always(readKey(0), pause(3*ms), writeKey(1), toCommit), ClientsConfig{Clients: 1, PerClient: 1, Retry: retry})
	f.run(time.Second)
	f.finish()
	if len(f.requests) != 1 || len(f.attempts) != 2 {
		t.Fatalf("%d requests, %d attempts", len(f.requests), len(f.attempts))
	}
	r := &f.requests[0]
	message := 2*fakeOneWay + f.service
	want := Parts{
		PartNetwork: 3 * 2 * fakeOneWay, PartCPUService: 3 * f.service, PartThink: 3 * ms,
		PartBackoff: 7 * ms, PartLostAttempts: 2*message + 3*ms,
	}
	if r.Parts != want {
		t.Errorf("parts\n%v, want\n%v", r.Parts, want)
	}
	if r.Attempts != 2 || r.Ops != 2 || r.Reason != Deadlock || r.Ending != EndCommitted {
		t.Errorf("request %+v", r)
	}
	a, b := &f.attempts[0], &f.attempts[1]
	if a.Outcome != Aborted || a.Reason != Deadlock || a.Key != 1 || !a.KeyKnown || a.Ops != 1 {
		t.Errorf("first attempt %+v", a)
	}
	if b.Begin.Sub(a.End) != 7*ms || b.Outcome != Committed || r.LastTry != b.Begin || r.Begin != a.Begin {
		t.Errorf("second attempt %+v of %+v", b, r)
	}
	if got, want := f.kinds(1), []MsgKind{MsgOp, MsgOp, MsgAbort}; !reflect.DeepEqual(got, want) {
		t.Errorf("the first attempt sends %v, want %v: the shard that refused knows", got, want)
	}
	second := f.sent[len(f.sent)-1].tx
	if second.ID != 2 || second.FirstTS != 1 || second.TS != 2 || second.Hits != 1 || second.Attempt != 2 {
		t.Errorf("what nodes are told about the second attempt: %+v", second)
	}
}

// TestCommitRecord: reads with versions, own writes left out, the written shard first.
func TestCommitRecord(t *testing.T) {
	f := newFake(t, 3)
	f.answer = func(m *Msg) bool {
		grant(m)
		if m.Kind == MsgReply && m.Op.Kind == Scan {
			for k := m.Op.Key; k < m.Op.End; k++ {
				if f.ShardOf(k) == m.Shard {
					m.Result.Rows = append(m.Result.Rows, Row{Key: k, Version: Version(k), Own: k == 4, Exists: true})
				}
			}
		}
		m.Result.Row.Own = m.Kind == MsgReply && m.Op.Key == 7
		return true
	}
	var program *stepProgram
	w := steps(func(ClientID, int) []step {
		return []step{readKey(3), writeKey(7), readKey(7), scanKeys(0, 5), toCommit}
	})
	f.start(w, ClientsConfig{Clients: 1, PerClient: 1})
	f.run(time.Second)
	program = f.clients.sessions[0].prog.(*stepProgram)
	f.finish()
	if len(f.commits) != 1 {
		t.Fatalf("%d commits", len(f.commits))
	}
	c := &f.commits[0]
	if want := []ReadVersion{{3, 3}}; !reflect.DeepEqual(c.Reads, want) {
		t.Errorf("reads %v, want %v", c.Reads, want)
	}
	want := []ScanRecord{
		{0, 5, 0, []ReadVersion{{3, 3}}}, // 0 was never written
		{0, 4, 1, []ReadVersion{{1, 1}}}, // a gap at 4, its own write
		{5, 5, 1, nil},
		{0, 5, 2, []ReadVersion{{2, 2}}},
	}
	if !reflect.DeepEqual(c.Scans, want) {
		t.Errorf("scans %v, want %v", c.Scans, want)
	}
	rows := program.last[len(program.last)-1].Rows
	for i := range rows {
		if rows[i].Key != Key(i) {
			t.Errorf("the scan's rows are not in order: %v", rows)
		}
	}
	last := f.sent[len(f.sent)-1]
	if last.kind != MsgCommit || last.shard != 1 || last.first != 1 || last.nBranch != 3 {
		t.Errorf("commit goes to %v with %d branches, %v first; want the written shard, s2", last.shard, last.nBranch, last.first)
	}
}

func TestNothingTouchedCommits(t *testing.T) {
	f := newFake(t, 1)
	f.start(always(pause(ms), toCommit), ClientsConfig{Clients: 2, Think: rng.Constant(ms)})
	f.run(100 * ms)
	f.finish()
	if len(f.requests) < 90 || len(f.sent) != 0 || f.requests[0].Parts[PartThink] != ms {
		t.Errorf("%d requests, %d messages, %+v", len(f.requests), len(f.sent), f.requests[0])
	}
}

func TestRollback(t *testing.T) {
	f := newFake(t, 2)
	f.start(always(readKey(0), writeKey(1), toRollback), ClientsConfig{Clients: 1, PerClient: 1})
	f.run(time.Second)
	f.finish()
	if len(f.requests) != 1 || f.requests[0].Ending != EndRolledBack || f.requests[0].Attempts != 1 {
		t.Fatalf("%+v", f.requests)
	}
	if a := &f.attempts[0]; a.Outcome != Aborted || a.Reason != NoReason || a.KeyKnown {
		t.Errorf("attempt %+v", a)
	}
	if f.aborts[1] != 2 || len(f.commits) != 0 {
		t.Errorf("%d shards are told, %d commits", f.aborts[1], len(f.commits))
	}
}

func TestRetryBounds(t *testing.T) {
	for _, c := range []struct {
		name   string
		reason AbortReason
		retry  Retry
		want   int
	}{
		{"bound", NoWait, Retry{MaxAttempts: 3}, 3},
		{"constraint", Constraint, Retry{MaxAttempts: 5}, 1},
		{"constraint with fresh keys", Constraint, Retry{MaxAttempts: 5, FreshKeys: true}, 5},
	} {
		f := newFake(t, 2)
		f.answer = func(m *Msg) bool { return refuse(m, c.reason) }
		f.start(always(writeKey(0), toCommit), ClientsConfig{Clients: 1, PerClient: 1, Retry: c.retry})
		f.run(time.Second)
		fresh := f.clients.sessions[0].prog.(*stepProgram).fresh
		f.finish()
		if len(f.requests) != 1 || f.requests[0].Ending != EndGivenUp || f.requests[0].Attempts != c.want {
			t.Errorf("%s: %+v", c.name, f.requests)
		}
		for i, isFresh := range fresh {
			if want := c.retry.FreshKeys && i > 0; isFresh != want {
				t.Errorf("%s: attempt %d starts with fresh %v, want %v", c.name, i+1, isFresh, want)
			}
		}
	}
}

func TestKilled(t *testing.T) {
	f := newFake(t, 2)
	kill := f.loop.Handle("test.kill", func(uint64) {
		m := f.pool.New(MsgKilled)
		m.Tx, m.Reason = f.sent[0].tx, Wounded
		f.clients.Deliver(m)
	})
	f.start(always(readKey(0), pause(20*ms), readKey(1), toCommit), ClientsConfig{Clients: 1, PerClient: 1, Retry: Retry{Policy: RetryFixed, Base: ms}})
	f.loop.After(10*ms, kill, 0) // while it pauses
	f.loop.After(12*ms, kill, 0) // again: of an attempt that is over
	f.run(time.Second)
	f.finish()
	if len(f.attempts) != 2 || f.attempts[0].Reason != Wounded || f.attempts[0].End != event.Time(10*ms) || f.attempts[1].Outcome != Committed {
		t.Errorf("attempts %+v", f.attempts)
	}
	if f.aborts[1] != 1 {
		t.Errorf("%d shards are told", f.aborts[1])
	}
}

// TestAbortDoesNotOvertake: an attempt is killed while its operation is on its
// way: the abort reaches that shard after the operation.
func TestAbortDoesNotOvertake(t *testing.T) {
	f := newFake(t, 2)
	kill := f.loop.Handle("test.kill", func(uint64) {
		m := f.pool.New(MsgKilled)
		m.Tx, m.Reason = f.sent[0].tx, Wounded
		f.clients.Deliver(m)
	})
	f.answer = func(m *Msg) bool { grant(m); return m.Shard == 0 } // s2 keeps what it gets
	f.start(always(readKey(0), readKey(1), toCommit), ClientsConfig{Clients: 1, PerClient: 1, Retry: Retry{MaxAttempts: 1}})
	for len(f.sent) < 2 {
		f.loop.Step()
	}
	f.loop.After(fakeOneWay/2, kill, 0)
	f.run(time.Second)
	op, aborts := f.sent[1], f.sent[2:]
	if len(aborts) != 2 || aborts[0].shard != 0 || aborts[0].at != op.at.Add(fakeOneWay/2) {
		t.Fatalf("aborts %+v", aborts)
	}
	if aborts[1].shard != 1 || aborts[1].at != op.at.Add(fakeOneWay) {
		t.Errorf("the abort follows the operation sent at %v: %+v", op.at, aborts[1])
	}
	f.finish()
}

func TestTimeout(t *testing.T) {
	f := newFake(t, 2)
	lose := true
	f.answer = func(m *Msg) bool {
		if lose && m.Shard == 1 && m.Kind == MsgOp {
			return false
		}
		grant(m)
		return true
	}
	f.start(always(readKey(0), readKey(1), toCommit), ClientsConfig{Clients: 1, PerClient: 1, Retry: Retry{Policy: RetryFixed, Base: ms}})
	f.run(10 * ms)
	if len(f.held) != 1 {
		t.Fatalf("%d held", len(f.held))
	}
	sent := f.sent[1].at
	f.clients.NodeDown(0) // nothing is expected of it
	f.clients.NodeDown(1)
	f.clients.NodeDown(1)
	lose = false
	f.run(time.Second)
	f.finish()
	if a := &f.attempts[0]; a.Reason != RPCTimeout || a.End.Sub(sent) != 50*ms {
		t.Errorf("%+v, sent at %v", a, sent)
	}
	if len(f.attempts) != 2 || f.requests[0].Ending != EndCommitted {
		t.Errorf("%+v", f.attempts)
	}
}

// TestTimeoutOfSomethingElse: what is lost belongs to an attempt, or to a shard's
// part of a scan, that is over; what the client waits for now may take as long
// as it likes.
func TestTimeoutOfSomethingElse(t *testing.T) {
	f := newFake(t, 2)
	f.answer = func(m *Msg) bool {
		if m.Shard == 1 && m.Kind == MsgOp {
			return false
		}
		grant(m)
		return true
	}
	f.start(always(scanKeys(0, 10), toCommit), ClientsConfig{Clients: 1, PerClient: 1})
	for len(f.sent) < 1 {
		f.loop.Step()
	}
	f.run(fakeOneWay + f.service + fakeOneWay/2) // the answer of s1 is on its way
	f.clients.NodeDown(0)
	stale := Msg{Kind: MsgOp, Tx: f.sent[0].tx, OpSeq: f.sent[0].opSeq}
	f.run(5 * ms)
	f.clients.Unanswered(&stale)
	f.run(500 * ms)
	if len(f.attempts) != 0 || len(f.held) != 1 {
		t.Fatalf("attempts %+v, %d held", f.attempts, len(f.held))
	}
	f.letGo()
	f.run(100 * ms)
	f.finish()
	if len(f.requests) != 1 || f.requests[0].Attempts != 1 || f.requests[0].Ending != EndCommitted {
		t.Errorf("%+v", f.requests)
	}
}

// TestStatus: the coordinator falls with the commit in doubt. The client asks,
// first in vain, and hears the one outcome.
func TestStatus(t *testing.T) {
	for _, outcome := range []Outcome{Committed, Aborted} {
		f := newFake(t, 2)
		asked := 0
		f.answer = func(m *Msg) bool {
			switch {
			case m.Kind == MsgCommit && m.Tx.Attempt == 1:
				return false
			case m.Kind == MsgStatus:
				asked++
				m.Kind, m.Outcome = MsgOutcome, Undecided
				if asked == 3 {
					m.Outcome, m.Reason = outcome, LeaderChange
				}
			default:
				grant(m)
			}
			return true
		}
		f.start(always(writeKey(0), toCommit), ClientsConfig{Clients: 1, PerClient: 1, Retry: Retry{Policy: RetryFixed, Base: ms}})
		f.run(20 * ms)
		f.clients.NodeDown(0)
		f.leaders[0] = -1
		f.run(100 * ms)
		if asked != 0 {
			t.Fatalf("asked %d times without a leader", asked)
		}
		f.leaders[0] = 1
		f.run(time.Second)
		for _, m := range f.held {
			f.pool.Free(m)
		}
		f.finish()
		if asked != 3 || len(f.requests) != 1 || f.requests[0].Ending != EndCommitted {
			t.Fatalf("%v: asked %d times, %+v", outcome, asked, f.requests)
		}
		want := 1
		if outcome == Aborted {
			want = 2
		}
		if len(f.attempts) != want || len(f.commits) != 1 {
			t.Errorf("%v: attempts %+v", outcome, f.attempts)
		}
	}
}

// TestOutcomeWhileAsking: the answer to the commit itself comes when the client
// has begun to ask. The question must not disturb the next request.
func TestOutcomeWhileAsking(t *testing.T) {
	f := newFake(t, 1)
	held := true
	f.answer = func(m *Msg) bool {
		if m.Kind == MsgCommit && held {
			return false
		}
		grant(m)
		return true
	}
	f.start(always(writeKey(0), toCommit), ClientsConfig{Clients: 1, PerClient: 3})
	f.run(20 * ms)
	f.clients.NodeDown(0)
	f.leaders[0] = -1
	f.run(50 * ms)
	held = false
	f.letGo()
	f.run(fakeOneWay)
	f.leaders[0] = 0
	f.run(time.Second)
	f.finish()
	if len(f.requests) != 3 || len(f.attempts) != 3 {
		t.Errorf("%d requests, %d attempts", len(f.requests), len(f.attempts))
	}
	ops := 0
	for i := range f.sent {
		switch f.sent[i].kind {
		case MsgOp:
			ops++
		case MsgStatus:
			t.Errorf("asked about %v, whose outcome is known", f.sent[i].tx.ID)
		default:
		}
	}
	if ops != 3 {
		t.Errorf("%d operations are sent for 3 requests of one", ops)
	}
}

func TestNoLeader(t *testing.T) {
	f := newFake(t, 1)
	f.leaders[0] = -1
	f.start(always(writeKey(0), toCommit), ClientsConfig{Clients: 1, PerClient: 1, Retry: Retry{Policy: RetryFixed, Base: ms}})
	f.run(20 * ms)
	f.leaders[0] = 0
	f.run(50 * ms)
	f.finish()
	if len(f.requests) != 1 || f.requests[0].Attempts != 1 || f.requests[0].Parts[PartReplication] != 20*ms {
		t.Errorf("%+v", f.requests)
	}
	f = newFake(t, 1)
	f.leaders[0] = -1
	f.start(always(writeKey(0), toCommit), ClientsConfig{Clients: 1, PerClient: 1, Retry: Retry{Policy: RetryFixed, Base: ms, MaxAttempts: 2}})
	f.run(time.Second)
	f.finish()
	if len(f.requests) != 1 || f.requests[0].Ending != EndGivenUp || f.requests[0].Reason != RPCTimeout {
		t.Errorf("%+v", f.requests)
	}
}

// TestSameMessages: whatever a run's nodes do, and however long they take, the
// n-th request of a client has the same messages in its first attempt.
func TestSameMessages(t *testing.T) {
	type name struct {
		client ClientID
		n      int
		kind   MsgKind
		opSeq  int32
		shard  ShardID
	}
	run := func(slow bool) map[name]uint64 {
		f := newFake(t, 3)
		if slow {
			f.service = 3 * ms
			f.answer = func(m *Msg) bool {
				if m.Kind == MsgOp && (m.Key+uint64(m.Tx.Attempt))%4 == 0 {
					return refuse(m, NoWait)
				}
				grant(m)
				return true
			}
		}
		w := steps(func(c ClientID, n int) []step {
			return []step{readKey(Key(c)), writeKey(Key(n)), scanKeys(0, 3), toCommit}
		})
		f.start(w, ClientsConfig{Clients: 4, Think: rng.Exponential(2 * ms), Retry: Retry{Policy: RetryFixed, Base: ms}})
		f.run(time.Second)
		f.finish()
		nth, last := map[ClientID]int{}, map[ClientID]RequestID{}
		keys := map[name]uint64{}
		for i := range f.sent {
			s := &f.sent[i]
			if last[s.tx.Client] != s.tx.Request {
				last[s.tx.Client] = s.tx.Request
				nth[s.tx.Client]++
			}
			if s.tx.Attempt == 1 && (s.kind == MsgOp || s.kind == MsgCommit) {
				keys[name{s.tx.Client, nth[s.tx.Client], s.kind, s.opSeq, s.shard}] = s.key
			}
		}
		return keys
	}
	fast, slow := run(false), run(true)
	both := 0
	for n, k := range slow {
		other, ok := fast[n]
		if !ok {
			continue
		}
		both++
		if other != k {
			t.Fatalf("%+v has key %x and %x", n, k, other)
		}
	}
	if both < 100 || both < len(slow)*9/10 {
		t.Errorf("%d messages in common of %d and %d", both, len(fast), len(slow))
	}
	distinct := map[uint64]bool{}
	for _, k := range fast {
		distinct[k] = true
	}
	if len(distinct) != len(fast) {
		t.Errorf("%d messages have %d keys", len(fast), len(distinct))
	}
}
