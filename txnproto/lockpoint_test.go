package txnproto

import (
	"reflect"
	"testing"
	"time"

	"interleave/sim/rng"
)

// foretelling is a stepProgram that says what is to come.
type foretelling struct{ *stepProgram }

func (p foretelling) Ahead(ops []Op) []Op {
	for _, s := range p.steps[p.at:] {
		switch s.s {
		case StepOp:
			ops = append(ops, s.op)
		case StepRollbackTo:
			ops = append(ops, Op{Kind: RollbackTo})
		case StepThink, StepCommit, StepRollback, StepSavepoint:
		default:
			panic("unknown step")
		}
	}
	return ops
}

// stepsThatForetell are steps whose programs do.
type stepsThatForetell struct{ steps }

func (w stepsThatForetell) Generator(_ rng.Seed, _ string, c ClientID) Generator {
	return foretellingGen{&stepGen{w: w.steps, client: c}}
}

type foretellingGen struct{ *stepGen }

func (g foretellingGen) Next(p Program) Program {
	return foretelling{g.stepGen.Next(p).(*stepProgram)}
}

func opOf(k OpKind, key Key) step { return step{op: Op{Kind: k, Key: key, End: key + 2, Value: 1}} }

// TestLockPoint has one client with the keys on two shards, by parity: what is
// sent, with LP where a message says that the lock point is passed, and what is ahead then.
func TestLockPoint(t *testing.T) {
	type told struct {
		kind  MsgKind
		shard ShardID
		point bool
		ahead []Key
	}
	rfu := func(k Key) step { return opOf(ReadForUpdate, k) }
	for _, c := range []struct {
		name string
		prog []step
		want []told
	}{
		{"the last operation", []step{readKey(0), writeKey(1), toCommit}, []told{
			{MsgOp, 0, false, nil}, {MsgOp, 1, true, nil}, {MsgRelease, 0, true, nil}, {MsgCommit, 1, false, nil},
		}},
		{"rows read for update", []step{rfu(0), rfu(1), writeKey(0), writeKey(1), toCommit}, []told{
			{MsgOp, 0, false, nil}, {MsgOp, 1, false, nil}, {MsgOp, 0, true, nil}, {MsgRelease, 1, true, []Key{1}}, {MsgOp, 1, true, nil}, {MsgCommit, 0, false, nil},
		}},
		{"a row read is not one to be written", []step{readKey(0), readKey(1), writeKey(0), toCommit}, []told{
			{MsgOp, 0, false, nil}, {MsgOp, 1, false, nil}, {MsgOp, 0, true, nil}, {MsgRelease, 1, true, nil}, {MsgCommit, 0, false, nil},
		}},
		{"a row written is one to be read", []step{writeKey(0), writeKey(1), readKey(0), toCommit}, []told{
			{MsgOp, 0, false, nil}, {MsgOp, 1, true, nil}, {MsgRelease, 0, true, []Key{0}}, {MsgOp, 0, true, nil}, {MsgCommit, 0, false, nil},
		}},
		{"a scan over two shards", []step{readKey(0), scanKeys(2, 4), toCommit}, []told{
			{MsgOp, 0, false, nil}, {MsgOp, 0, false, nil}, {MsgOp, 1, true, nil}, {MsgRelease, 0, true, nil}, {MsgCommit, 0, false, nil},
		}},
		{"a scan to come", []step{scanKeys(0, 1), scanKeys(0, 1), toCommit}, []told{
			{MsgOp, 0, false, nil}, {MsgOp, 0, true, nil}, {MsgCommit, 0, false, nil},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, 2)
			var got []told
			f.hears = func(m *Msg) {
				x := told{m.Kind, m.Shard, m.LockPoint, nil}
				for _, op := range m.Ahead {
					x.ahead = append(x.ahead, op.Key)
				}
				got = append(got, x)
			}
			f.start(stepsThatForetell{always(c.prog...)}, ClientsConfig{Clients: 1, PerClient: 1, Foretell: true})
			f.run(time.Second)
			f.finish()
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("told\n%v, want\n%v", got, c.want)
			}
		})
	}
}

// TestNobodyForetells has a program that foretells nothing: it commits, and that is all.
func TestNobodyForetells(t *testing.T) {
	f := newFake(t, 2)
	f.hears = func(m *Msg) {
		if m.LockPoint || m.Kind == MsgRelease {
			t.Errorf("%v says that the lock point is passed", m.Kind)
		}
	}
	f.start(always(readKey(0), writeKey(1), toCommit), ClientsConfig{Clients: 1, PerClient: 1, Foretell: true})
	f.run(time.Second)
	f.finish()
}

// TestForetoldWrongly has a program that does what it has not foretold.
func TestForetoldWrongly(t *testing.T) {
	f := newFake(t, 1)
	f.start(always(toCommit), ClientsConfig{Clients: 1, PerClient: 1, Foretell: true})
	f.clients.sessions[0].gen = liars{}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f.run(time.Second)
}

type liars struct{}

func (liars) Next(Program) Program {
	return liar{&stepProgram{steps: []step{readKey(0), writeKey(0), toCommit}}}
}

type liar struct{ *stepProgram }

func (liar) Ahead(ops []Op) []Op { return ops }

// TestGrowth: what is held covers what, and a rollback to a savepoint takes it back.
func TestGrowth(t *testing.T) {
	var g Growth
	op := func(k OpKind) *Op { return &Op{Kind: k, Key: 7, End: 8} }
	covered := func() (ks []OpKind) {
		for k := range NumOpKinds {
			if g.Covers(op(k)) {
				ks = append(ks, k)
			}
		}
		return ks
	}
	reads := []OpKind{Read, LockShared}
	all := []OpKind{Read, ReadForUpdate, Write, Modify, Insert, Delete, LockShared, LockExclusive}
	for _, c := range []struct {
		kind    OpKind
		present bool
		want    []OpKind
	}{
		{Read, true, reads},
		{ReadForUpdate, true, all},
		{ReadForUpdate, false, reads}, // to make the row present takes the gap too
		{Write, false, all},
		{Delete, false, all},
		{Scan, true, nil},
	} {
		mark := g.Mark()
		g.Note(op(c.kind), c.present)
		if got := covered(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v, present %v: covers %v, want %v", c.kind, c.present, got, c.want)
		}
		if g.Covers(&Op{Kind: Read, Key: 8}) {
			t.Errorf("%v covers another row", c.kind)
		}
		g.Undo(mark)
		if got := covered(); got != nil {
			t.Errorf("%v, taken back, covers %v", c.kind, got)
		}
	}
}
