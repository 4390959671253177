package nodes

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"interleave/sim/rng"
	"interleave/txnproto"
)

func testMachine(tb testing.TB) *machine {
	tb.Helper()
	place, err := NewPlacement(PlacementNames[0], 1, 10)
	if err != nil {
		tb.Fatal(err)
	}
	return newMachine(NewStore(0, place, flat{10}, txnproto.VersionLatest))
}

// randomEntries makes a log as hosts write it: prepares that are finished some
// time, decisions that are forgotten some time, with finishes said twice.
func randomEntries(s *rng.Stream, n int) []Entry {
	var log []Entry
	var prepared, decided []txnproto.TxnID
	puts := func() []txnproto.Put {
		var ps []txnproto.Put
		for range s.Uint64n(4) {
			ps = append(ps, txnproto.Put{
				Key: txnproto.Key(s.Uint64n(20)), Value: txnproto.Value(s.Uint64n(100)) - 50, Deleted: s.Uint64n(5) == 0,
			})
		}
		return ps
	}
	take := func(from *[]txnproto.TxnID) txnproto.TxnID {
		i := s.Uint64n(uint64(len(*from)))
		t := (*from)[i]
		*from = append((*from)[:i], (*from)[i+1:]...)
		return t
	}
	for i := range n {
		e := Entry{
			Txn: txnproto.TxnID(i + 1), Request: txnproto.RequestID(i + 1), Client: txnproto.ClientID(s.Uint64n(5)),
			Attempt: int32(1 + s.Uint64n(3)), TS: txnproto.Timestamp(i + 1), FirstTS: txnproto.Timestamp(i),
		}
		switch s.Uint64n(8) {
		case 0:
		case 6:
			e.Kind, e.Puts = EntryInstall, puts()
		case 7:
			e.Kind, e.Puts = EntryCommitAll, puts()
			e.Participants, e.Remotes = append(e.Participants, 1, 2), append(e.Remotes, 2, 0)
			e.Remote = append(e.Remote, txnproto.Put{Key: txnproto.Key(i), Value: 1}, txnproto.Put{Key: 7, Deleted: true})
			decided = append(decided, e.Txn)
		case 5:
			e.Kind = EntryBatch
			for n := range s.Uint64n(3) {
				e.Batch.Add(txnproto.BatchTxn{ID: txnproto.TxnID(i), Slot: int32(n)}, []txnproto.Claim{{Key: txnproto.Key(n), Exclusive: n == 1}})
			}
		case 1:
			e.Kind, e.Puts = EntryPrepare, puts()
			e.Coordinator = txnproto.ShardID(s.Uint64n(3))
			prepared = append(prepared, e.Txn)
		case 2:
			e.Kind, e.Puts = EntryCommit, puts()
			for sh := range s.Uint64n(3) {
				e.Participants = append(e.Participants, txnproto.ShardID(sh))
			}
			if len(e.Participants) > 0 {
				decided = append(decided, e.Txn)
			}
		default:
			if len(prepared) > 0 {
				e.Kind, e.Txn = EntryFinish, take(&prepared)
				e.Outcome = txnproto.Committed + txnproto.Outcome(s.Uint64n(2))
				if s.Uint64n(3) == 0 {
					log = append(log, e)
				}
			}
		}
		if len(decided) > 2 {
			e.Forget = append(e.Forget, take(&decided))
		}
		log = append(log, e)
	}
	return log
}

// apply applies a log from its encoded form, as a replica reads it.
func apply(tb testing.TB, m *machine, log []Entry, from int) {
	tb.Helper()
	for i := range log {
		var e Entry
		if err := e.Decode(log[i].AppendTo(nil)); err != nil {
			tb.Fatal(err)
		}
		m.Apply(uint64(from+i+1), &e)
	}
}

// TestMachineRestored feeds one machine a whole log, and another half of it from
// a snapshot of the first half: they must not differ.
func TestMachineRestored(t *testing.T) {
	for seed := range rng.Seed(60) {
		s := seed.Stream("machine")
		log := randomEntries(s, 80)
		cut := int(s.Uint64n(uint64(len(log))))
		whole, half, restored := testMachine(t), testMachine(t), testMachine(t)
		apply(t, whole, log, 0)
		apply(t, half, log[:cut], 0)
		if cut < len(log)/2 && half.differs(whole) == "" {
			t.Fatalf("seed %d: half a log and a whole one make the same state", seed)
		}
		var snapshot bytes.Buffer
		if err := half.Snapshot(&snapshot); err != nil {
			t.Fatal(err)
		}
		apply(t, restored, log[:3], 0) // what it held is to be forgotten
		if err := restored.Restore(&snapshot); err != nil {
			t.Fatal(err)
		}
		if d := restored.differs(half); d != "" {
			t.Fatalf("seed %d: restored from entry %d: %s", seed, cut, d)
		}
		if restored.index != half.index {
			t.Fatalf("seed %d: restored at %d, want %d", seed, restored.index, half.index)
		}
		apply(t, restored, log[cut:], cut)
		if d := restored.differs(whole); d != "" {
			t.Fatalf("seed %d: restored from entry %d and fed the rest: %s", seed, cut, d)
		}
		for c := range txnproto.ClientID(6) {
			for i := range log {
				e := &log[i]
				if a, b := restored.committed(c, e.Request, e.Txn), whole.committed(c, e.Request, e.Txn); a != b {
					t.Fatalf("seed %d: client %d: %v committed: %v and %v", seed, c, e.Txn, a, b)
				}
			}
		}
	}
}

func TestMachineFinish(t *testing.T) {
	m := testMachine(t)
	m.Apply(1, &Entry{Kind: EntryPrepare, Txn: 7, Request: 3, Client: 1, Coordinator: 2, Puts: []txnproto.Put{{Key: 4, Value: 1}, {Key: 15, Value: 2}}})
	if r := m.store.Get(4); r.Version != 0 {
		t.Errorf("a prepared write is visible: %+v", r)
	}
	if in := m.inDoubt(); len(in) != 1 || in[0].info.ID != 7 || in[0].coordinator != 2 {
		t.Errorf("in doubt: %+v", in)
	}
	finish := Entry{Kind: EntryFinish, Txn: 7, Outcome: txnproto.Committed}
	m.Apply(2, &finish)
	if len(finish.Puts) != 2 || finish.Puts[0].Version != 1 {
		t.Errorf("finish installs %+v", finish.Puts)
	}
	again := Entry{Kind: EntryFinish, Txn: 7, Outcome: txnproto.Committed}
	m.Apply(3, &again)
	if len(again.Puts) != 0 || m.store.Get(4).Version != 1 {
		t.Errorf("finished twice: %+v", m.store.Get(4))
	}
	m.Apply(4, &Entry{Kind: EntryPrepare, Txn: 8, Puts: []txnproto.Put{{Key: 4, Value: 9}}})
	m.Apply(5, &Entry{Kind: EntryFinish, Txn: 8, Outcome: txnproto.Aborted})
	if r := m.store.Get(4); r.Version != 1 || r.Value != 1 {
		t.Errorf("an aborted write is installed: %+v", r)
	}
	if m.prepared.n != 0 {
		t.Errorf("%d still prepared", m.prepared.n)
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic for an entry applied twice")
		}
	}()
	m.Apply(5, &Entry{})
}

func TestMachineRemembersCommits(t *testing.T) {
	m := testMachine(t)
	m.Apply(1, &Entry{Kind: EntryCommit, Txn: 5, Request: 2, Client: 3, Participants: []txnproto.ShardID{1}})
	m.Apply(2, &Entry{Kind: EntryCommit, Txn: 9, Request: 4, Client: 3})
	if !m.committed(3, 2, 5) {
		t.Error("a decision that is not carried out is forgotten")
	}
	m.Apply(3, &Entry{Kind: EntryNoop, Forget: []txnproto.TxnID{5}})
	if m.committed(3, 2, 5) || m.decided.n != 0 {
		t.Error("a decision that is carried out is kept")
	}
	if !m.committed(3, 4, 9) || m.committed(3, 4, 8) || m.committed(2, 4, 9) || m.committed(100, 4, 9) {
		t.Error("the newest commit of client 3 is T9 of request 4")
	}
}

func TestRestoreMalformed(t *testing.T) {
	m := testMachine(t)
	apply(t, m, randomEntries(rng.Seed(1).Stream("malformed"), 60), 0)
	var b bytes.Buffer
	if err := m.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	for n := range whole {
		if err := testMachine(t).Restore(bytes.NewReader(whole[:n])); err == nil {
			t.Fatalf("no error for a snapshot cut to %d of %d bytes", n, len(whole))
		}
	}
	if err := testMachine(t).Restore(bytes.NewReader(append(bytes.Clone(whole), 0))); err == nil {
		t.Error("no error for a snapshot with a byte too many")
	}
	s := rng.Seed(1).Stream("flips")
	for range 2000 { // must not panic, and must not take memory it has no bytes for
		bad := bytes.Clone(whole)
		bad[s.Uint64n(uint64(len(bad)))] ^= byte(1 + s.Uint64n(255))
		_ = testMachine(t).Restore(bytes.NewReader(bad))
	}
}

func drawClaim(t *rapid.T) txnproto.Claim {
	return txnproto.Claim{
		Key: txnproto.Key(rapid.Uint64().Draw(t, "key")), End: txnproto.Key(rapid.Uint64().Draw(t, "end")),
		Shard: txnproto.ShardID(rapid.Int32().Draw(t, "shard")), Rows: rapid.Int32().Draw(t, "rows"), Exclusive: rapid.Bool().Draw(t, "exclusive"),
	}
}

func TestEntryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Entry{
			Kind: EntryKind(rapid.IntRange(0, int(EntryInstall)).Draw(t, "kind")), Outcome: txnproto.Outcome(rapid.IntRange(0, 2).Draw(t, "outcome")),
			Attempt: rapid.Int32().Draw(t, "attempt"), Client: txnproto.ClientID(rapid.Int32().Draw(t, "client")),
			Request: txnproto.RequestID(rapid.Uint64().Draw(t, "request")), Txn: txnproto.TxnID(rapid.Uint64().Draw(t, "txn")),
			TS: txnproto.Timestamp(rapid.Uint64().Draw(t, "ts")), FirstTS: txnproto.Timestamp(rapid.Uint64().Draw(t, "first")),
			Coordinator: txnproto.ShardID(rapid.Int32().Draw(t, "coordinator")), Tag: rapid.Uint64().Draw(t, "tag"),
			Versioned: rapid.Bool().Draw(t, "versioned"),
		}
		for range rapid.IntRange(0, 4).Draw(t, "participants") {
			e.Participants = append(e.Participants, txnproto.ShardID(rapid.Int32().Draw(t, "s")))
		}
		for range rapid.IntRange(0, 4).Draw(t, "puts") {
			p := txnproto.Put{Key: txnproto.Key(rapid.Uint64().Draw(t, "k")), Value: txnproto.Value(rapid.Int64().Draw(t, "v")), Deleted: rapid.Bool().Draw(t, "d")}
			if e.Versioned {
				p.Version = txnproto.Version(rapid.Uint64().Draw(t, "version"))
			}
			e.Puts = append(e.Puts, p)
		}
		for range rapid.IntRange(0, 4).Draw(t, "forget") {
			e.Forget = append(e.Forget, txnproto.TxnID(rapid.Uint64().Draw(t, "f")))
		}
		if e.Kind == EntryCommitAll {
			for range e.Participants {
				n := rapid.IntRange(0, 2).Draw(t, "writes")
				e.Remotes = append(e.Remotes, int32(n))
				for range n {
					e.Remote = append(e.Remote, txnproto.Put{Key: txnproto.Key(rapid.Uint64().Draw(t, "remote")), Value: 3})
				}
			}
		}
		if e.Kind == EntryBatch {
			for range rapid.IntRange(0, 4).Draw(t, "transactions") {
				e.Batch.Add(txnproto.BatchTxn{
					ID: txnproto.TxnID(rapid.Uint64().Draw(t, "id")), Place: txnproto.Place(rapid.Uint64().Draw(t, "place")), Slot: rapid.Int32().Draw(t, "slot"),
				}, rapid.SliceOfN(rapid.Custom(drawClaim), 0, 3).Draw(t, "claims"))
			}
		}
		b := e.AppendTo([]byte("before"))[len("before"):]
		if len(b) != e.Size(0) {
			t.Fatalf("%d bytes encoded, Size(0) is %d", len(b), e.Size(0))
		}
		var d Entry
		if err := d.Decode(b); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(d, e) {
			t.Fatalf("decoded\n%+v, want\n%+v", d, e)
		}
	})
}

// FuzzDecode gives Decode any bytes: what it accepts it must write again as it was read.
func FuzzDecode(f *testing.F) {
	for _, e := range randomEntries(rng.Seed(2).Stream("fuzz"), 20) {
		f.Add(e.AppendTo(nil))
	}
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{255}, 66))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Entry
		if e.Decode(b) != nil {
			return
		}
		var d Entry
		if err := d.Decode(e.AppendTo(nil)); err != nil || !reflect.DeepEqual(d, e) {
			t.Fatalf("%+v read again is %+v, %v", e, d, err)
		}
	})
}
