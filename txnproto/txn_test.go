package txnproto

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestWorkspace compares a branch's writes with a map, over several lives of
// the branch, on both sides of the size from which they are indexed.
func TestWorkspace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tx := Txn{Slot: 3}
		for range rapid.IntRange(1, 4).Draw(t, "lives") {
			model := map[Key]Put{}
			var order []Key
			for range rapid.IntRange(0, 60).Draw(t, "writes") {
				p := Put{Key: Key(rapid.IntRange(0, 30).Draw(t, "k")), Value: Value(rapid.IntRange(0, 9).Draw(t, "v")), Deleted: rapid.Bool().Draw(t, "d")}
				if _, ok := model[p.Key]; !ok {
					order = append(order, p.Key)
				}
				model[p.Key] = p
				tx.SetPut(p)
			}
			for range rapid.IntRange(0, 20).Draw(t, "drops") {
				k := Key(rapid.IntRange(0, 32).Draw(t, "drop"))
				delete(model, k)
				order = slices.DeleteFunc(order, func(o Key) bool { return o == k })
				tx.DropPut(k)
			}
			for k := range Key(32) {
				got := tx.Put(k)
				want, ok := model[k]
				if (got != nil) != ok || ok && *got != want {
					t.Fatalf("key %d: %v, want %v %v", k, got, want, ok)
				}
			}
			for i, k := range order {
				if tx.Puts[i].Key != k {
					t.Fatalf("write %d is of key %d, want %d", i, tx.Puts[i].Key, k)
				}
			}
			if len(tx.Puts) != len(order) {
				t.Fatalf("%d writes of %d keys", len(tx.Puts), len(order))
			}
			tx.ID, tx.Ops = 9, 4
			tx.Reset()
			if tx.Slot != 3 || tx.ID != 0 || tx.Ops != 0 || len(tx.Puts) != 0 {
				t.Fatalf("after Reset: %+v", tx)
			}
		}
	})
}

func TestWorkspaceAllocatesNothingTwice(t *testing.T) {
	var tx Txn
	fill := func() {
		tx.Reset()
		for k := range Key(100) {
			tx.SetPut(Put{Key: k})
		}
	}
	fill()
	if n := testing.AllocsPerRun(50, fill); n > 0 {
		t.Errorf("%v allocations for a large workspace filled again", n)
	}
}

func TestPool(t *testing.T) {
	var p Pool
	a, b := p.New(MsgOp), p.New(MsgVote)
	if p.At(a.Index()) != a || p.At(b.Index()) != b || p.Live() != 2 {
		t.Fatalf("two messages, %d live", p.Live())
	}
	for _, kind := range []MsgKind{MsgOp, MsgReply, MsgCommit, MsgVote, MsgControl} {
		a.Kind = kind
		a.Result.Rows = append(a.Result.Rows, Row{Key: 1})
		a.Tx.ID, a.Outcome, a.ReadOnly, a.Wrote = 4, Committed, true, 2
		switch kind {
		case MsgOp: // at its lock point
			a.LockPoint, a.Ahead = true, append(a.Ahead, Op{Key: 2})
		case MsgReply: // to a request for a place
			a.Op.Kind = Sequence
			a.OwnBatch().Claims = append(a.OwnBatch().Claims, Claim{})
		case MsgCommit:
			a.Branches = append(a.Branches, Branch{Shard: 1})
		case MsgVote:
			a.Vote[1], a.Puts = 3, append(a.Puts, Put{Key: 2})
		default:
			a.Control.Txns = append(a.Control.Txns, 5)
		}
		index := a.Index()
		p.Free(a)
		c := p.New(MsgDecide)
		if c.Index() != index || c.Kind != MsgDecide || p.Live() != 2 {
			t.Errorf("a freed message is not used again: %+v", c)
		}
		if c.Tx != (Info{}) || c.Op != (Op{}) || c.Outcome != Undecided || c.ReadOnly || c.LockPoint || c.Wrote != 0 || c.Vote != (Vote{}) ||
			len(c.Branches)+len(c.Control.Txns)+len(c.Result.Rows)+len(c.Ahead)+len(c.Puts) != 0 || c.Batch != nil && len(c.Batch.Claims) != 0 {
			t.Errorf("a message used again is not empty: %+v, %+v", c, c.Extra)
		}
	}
	if cap(a.Branches) == 0 || cap(a.Control.Txns) == 0 || cap(a.Result.Rows) == 0 || cap(a.Ahead) == 0 || cap(a.Puts) == 0 {
		t.Error("a freed message loses its memory")
	}
}

func TestParams(t *testing.T) {
	defs := []Param{
		{Name: "n", Kind: ParamInt, Default: "3", Min: 1, Max: 9},
		{Name: "x", Kind: ParamFloat, Default: "0.5", Min: 0, Max: 1},
		{Name: "on", Kind: ParamBool, Default: "true"},
		{Name: "wait", Kind: ParamDuration, Default: "10ms"},
		{Name: "how", Kind: ParamChoice, Default: "a", Choices: []string{"a", "b"}},
		{Name: "text", Kind: ParamString, Default: "t"},
	}
	p, err := NewParams("test", defs, map[string]string{"n": "4", "how": "b"})
	if err != nil {
		t.Fatal(err)
	}
	if p.Int("n") != 4 || p.Float("x") != 0.5 || !p.Bool("on") || p.Duration("wait") != 10*ms || p.Choice("how") != "b" || p.String("text") != "t" {
		t.Errorf("%+v", p)
	}
	for name, bad := range map[string]string{"n": "10", "x": "1.5", "on": "maybe", "wait": "-1s", "how": "c", "none": "1"} { // order: each by itself
		_, err := NewParams("test", defs, map[string]string{name: bad})
		if err == nil || !strings.Contains(err.Error(), name) || name != "none" && !strings.Contains(err.Error(), strings.TrimPrefix(bad, "-1")) {
			t.Errorf("%s = %s: error %v", name, bad, err)
		}
	}
	if _, err := NewParams("test", defs, map[string]string{"x": "NaN"}); err == nil {
		t.Error("x may be NaN")
	}
}
