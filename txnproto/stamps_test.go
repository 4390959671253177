package txnproto

import (
	"reflect"
	"testing"
	"time"

	"interleave/sim/clock"
)

// TestOracleIsAskedAtBegin follows a request whose first attempt is refused: each
// attempt asks anew, or only the first where a request keeps its age.
func TestOracleIsAskedAtBegin(t *testing.T) {
	for _, c := range []struct {
		draws     Draws
		ts, first []Timestamp // of the attempts, whose ids come from the same counter
		lost      time.Duration
	}{
		{DrawsBegin, []Timestamp{2, 4}, []Timestamp{2, 2}, 2 * fakeOneWay},
		{DrawsFirst, []Timestamp{2, 3}, []Timestamp{2, 2}, 0},
		{0, []Timestamp{1, 2}, []Timestamp{1, 1}, 0},
	} {
		f := newFake(t, 1)
		f.answer = func(m *Msg) bool {
			if m.Tx.Attempt == 1 {
				return refuse(m, TSOrder)
			}
			grant(m)
			return true
		}
		f.start(always(readKey(0), toCommit), ClientsConfig{
			Clients: 1, PerClient: 1, Retry: Retry{Policy: RetryFixed, Base: ms},
			Stamping: Stamping{Source: FromOracle, Draws: c.draws},
		})
		f.run(time.Second)
		f.finish()
		if len(f.requests) != 1 || f.requests[0].Parts[PartTimestamp] != c.lost {
			t.Fatalf("draws %v: %+v, want %v at the oracle in the attempt that committed", c.draws, f.requests, c.lost)
		}
		var ts, first []Timestamp
		for _, m := range f.sent {
			if m.kind == MsgOp {
				ts, first = append(ts, m.tx.TS), append(first, m.tx.FirstTS)
			}
		}
		if !reflect.DeepEqual(ts, c.ts) || !reflect.DeepEqual(first, c.first) {
			t.Errorf("draws %v: timestamps %v, of the requests %v; want %v and %v", c.draws, ts, first, c.ts, c.first)
		}
	}
}

// TestOracleIsAskedPerStatement: before each read and scan, not before a write.
func TestOracleIsAskedPerStatement(t *testing.T) {
	f := newFake(t, 2)
	var snapshots []Version
	f.answer = func(m *Msg) bool {
		if m.Kind == MsgOp {
			snapshots = append(snapshots, m.Op.Snapshot)
		}
		grant(m)
		return true
	}
	f.start(always(readKey(0), writeKey(1), scanKeys(0, 2), toCommit), ClientsConfig{
		Clients: 1, PerClient: 1, Stamping: Stamping{Source: FromOracle, Draws: DrawsStatement | DrawsCommit},
	})
	f.run(time.Second)
	f.finish()
	if want := []Version{2, 0, 3, 3}; !reflect.DeepEqual(snapshots, want) {
		t.Errorf("snapshots %v, want %v: a scan has one for its shards", snapshots, want)
	}
	if want := []MsgKind{MsgTimestamp, MsgOp, MsgOp, MsgTimestamp, MsgOp, MsgOp, MsgCommit}; !reflect.DeepEqual(f.kinds(1), want) {
		t.Errorf("sent %v, want %v", f.kinds(1), want)
	}
	if got := f.requests[0].Parts[PartTimestamp]; got != 4*fakeOneWay {
		t.Errorf("%v at the oracle, want %v", got, 4*fakeOneWay)
	}
}

// TestAbortedWhileAsking: a controller ends the attempt while its statement's timestamp
// is on its way. The answer, which comes late, is nobody's.
func TestAbortedWhileAsking(t *testing.T) {
	f := newFake(t, 1)
	f.answer = func(m *Msg) bool {
		if m.Kind == MsgOp && m.Tx.ID == 1 {
			k := f.pool.New(MsgKilled)
			k.Tx, k.Reason = m.Tx, Wounded
			f.loop.After(fakeOneWay+ms/2, f.hClient, k.Index())
		}
		grant(m)
		return true
	}
	f.start(always(readKey(0), readKey(0), toCommit), ClientsConfig{
		Clients: 1, PerClient: 1, Stamping: Stamping{Source: FromOracle, Draws: DrawsStatement},
	})
	f.run(time.Second)
	f.finish()
	if len(f.attempts) != 2 || f.attempts[0].Reason != Wounded || f.attempts[1].Outcome != Committed {
		t.Fatalf("attempts %+v", f.attempts)
	}
	if want := []MsgKind{MsgTimestamp, MsgOp, MsgTimestamp, MsgAbort}; !reflect.DeepEqual(f.kinds(1), want) {
		t.Errorf("the first attempt sends %v, want %v", f.kinds(1), want)
	}
}

// TestClockTimestamps draws from many clocks: none twice, each client's in order, none
// further from the time than the bound, and none older than what was promised to be
// the oldest before.
func TestClockTimestamps(t *testing.T) {
	const clients = 5
	f := newFake(t, 1)
	bound := 3 * ms
	clocks := clock.New(11, "clocks", clients, clock.Config{Bound: bound, Drift: 1000})
	seen, last := map[Timestamp]bool{}, [clients]Timestamp{}
	var floor Timestamp
	f.answer = func(m *Msg) bool {
		ts := m.Tx.TS
		if m.Kind != MsgOp {
			grant(m)
			return true
		}
		if seen[ts] {
			t.Errorf("timestamp %d is drawn twice", ts)
		}
		seen[ts] = true
		if ts <= last[m.Tx.Client] {
			t.Errorf("client %d has timestamp %d after %d", m.Tx.Client, ts, last[m.Tx.Client])
		}
		last[m.Tx.Client] = ts
		if ts < floor {
			t.Errorf("timestamp %d is older than %d, which was said to be the oldest", ts, floor)
		}
		drawn := f.loop.Now().Add(-fakeOneWay - f.service)
		if off := time.Duration(ts>>clientBits(clients)) - bound - 1 - time.Duration(drawn); off > bound+1 || off < -bound-1 {
			t.Errorf("timestamp %d is off by %v, the bound is %v", ts, off, bound)
		}
		floor = max(floor, f.clients.OldestTS())
		if newest := f.clients.NewestTS(); newest < ts {
			t.Errorf("timestamp %d is newer than the newest, %d", ts, newest)
		}
		grant(m)
		return true
	}
	f.start(always(readKey(0), toCommit), ClientsConfig{
		Clients: clients, PerClient: 40, Stamping: Stamping{Source: FromClock, Draws: DrawsBegin, Clocks: clocks},
	})
	f.run(time.Second)
	f.finish()
	if len(f.requests) != clients*40 {
		t.Fatalf("%d requests", len(f.requests))
	}
}

// TestCatchUp has a client that was too late move its clock on, as far as the bound allows.
func TestCatchUp(t *testing.T) {
	for _, catchUp := range []bool{false, true} {
		f := newFake(t, 1)
		clocks := clock.New(3, "clocks", 2, clock.Config{Bound: 50 * ms})
		slow := 0
		if clocks.Offset(1, 0) < clocks.Offset(0, 0) {
			slow = 1
		}
		var met Timestamp
		refused := 0
		f.answer = func(m *Msg) bool {
			if m.Kind == MsgOp {
				if m.Tx.TS < met {
					refused++
					m.Met = met
					return refuse(m, TSOrder)
				}
				met = m.Tx.TS
			}
			grant(m)
			return true
		}
		f.start(always(readKey(0), toCommit), ClientsConfig{
			Clients: 2, PerClient: 50, Retry: Retry{Policy: RetryImmediate},
			Stamping: Stamping{Source: FromClock, Draws: DrawsBegin, Clocks: clocks, CatchUp: catchUp},
		})
		apart := clocks.Offset(1-slow, 0) - clocks.Offset(slow, 0)
		f.run(200 * ms)
		if left := clocks.Offset(1-slow, f.loop.Now()) - clocks.Offset(slow, f.loop.Now()); catchUp != (left < apart/2) {
			t.Errorf("catch up %v: the clocks were %v apart and are %v", catchUp, apart, left)
		}
		if catchUp != (refused < 20) {
			t.Errorf("catch up %v: %d refusals", catchUp, refused)
		}
		f.run(10 * time.Second)
		f.finish()
	}
}
