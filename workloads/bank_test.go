package workloads

import (
	"reflect"
	"strings"
	"testing"

	"interleave/txnproto"
)

func TestTransfersConserveTheTotal(t *testing.T) {
	for _, given := range []map[string]string{
		{"keys": "10", "initial": "50"},
		{"keys": "10", "initial": "50", "access": "read", "order": "by-key"},
		{"keys": "30", "distribution": "zipfian", "theta": "1.2", "audit": "0.3"},
		{"keys": "2", "initial": "1"},
	} {
		w := mustNew(t, "bank", given, 2)
		d := newDatabase(w)
		g := w.Generator(1, "c", 0)
		ends := map[txnproto.Step]int{}
		for range 2000 {
			p := g.Next(nil)
			before := len(d.changed)
			ops, end, _ := run(t, p, d, 1, false)
			ends[end]++
			if end == txnproto.StepRollback && (len(ops) != 2 || len(d.changed) != before) {
				t.Fatalf("a transfer that rolls back wrote: %v", ops)
			}
			if p.Class() == classTransfer && end == txnproto.StepCommit {
				checkTransfer(t, w.(*bank), ops)
			}
		}
		if err := w.Check(d); err != nil {
			t.Errorf("%v: %v", given, err)
		}
		if given["initial"] != "" && ends[txnproto.StepRollback] == 0 {
			t.Errorf("%v: no transfer was refused", given)
		}
	}
}

func checkTransfer(t *testing.T, w *bank, ops []txnproto.Op) {
	t.Helper()
	if len(ops) != 4 || ops[0].Kind != w.readKind || ops[1].Kind != w.readKind ||
		ops[2].Kind != txnproto.Write || ops[3].Kind != txnproto.Write ||
		ops[0].Key == ops[1].Key || ops[0].Key != ops[2].Key || ops[1].Key != ops[3].Key {
		t.Fatalf("a transfer is %v", ops)
	}
	if w.byKey && ops[0].Key > ops[1].Key {
		t.Fatalf("by key, a transfer is %v", ops)
	}
}

func TestAudits(t *testing.T) {
	w := mustNew(t, "bank", map[string]string{"keys": "30", "audit": "0.25"}, 1)
	audits, n := 0, 4000
	for _, ops := range programs(t, w, 1, "c", 0, n) {
		if len(ops) == 1 {
			audits++
			if want := (txnproto.Op{Kind: txnproto.Scan, End: 30}); ops[0] != want {
				t.Fatalf("an audit is %v", ops)
			}
		}
	}
	within(t, "audits", audits, n, 0.25)
	w = mustNew(t, "bank", map[string]string{"keys": "30", "audit": "1", "audit-keys": "7"}, 1)
	for _, ops := range programs(t, w, 1, "c", 0, 10) {
		seen := map[txnproto.Key]bool{}
		for _, op := range ops {
			seen[op.Key] = op.Kind == txnproto.Read
		}
		if len(ops) != 7 || len(seen) != 7 {
			t.Fatalf("an audit of seven accounts is %v", ops)
		}
	}
}

func TestBankCheck(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(d *database)
		want  string
	}{
		"lost":     {func(d *database) { d.put(3, 999, true) }, "the balances sum to 9999, at the start to 10000"},
		"negative": {func(d *database) { d.put(3, -1, true); d.put(4, 2001, true) }, "no balance below 0: account 3 has -1"},
		"missing":  {func(d *database) { d.put(3, 0, false) }, "account 3 is missing"},
		"extra":    {func(d *database) { d.put(10, 0, true) }, "account 10 was opened"},
	} {
		w := mustNew(t, "bank", map[string]string{"keys": "10"}, 1)
		d := newDatabase(w)
		c.spoil(d)
		if err := w.Check(d); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

func TestTwoTransfers(t *testing.T) {
	w := mustNew(t, "two-transfers", nil, 2)
	d := newDatabase(w)
	var got [][]txnproto.Op
	for c := range txnproto.ClientID(2) {
		ops, end, _ := run(t, w.Generator(7, "client", c).Next(nil), d, 1, true)
		if end != txnproto.StepCommit {
			t.Fatalf("client %d ended with %d", c, end)
		}
		got = append(got, ops)
	}
	const read, write = txnproto.ReadForUpdate, txnproto.Write
	want := [][]txnproto.Op{
		{{Kind: read, Key: 0}, {Kind: read, Key: 1}, {Kind: write, Key: 0, Value: 4500}, {Kind: write, Key: 1, Value: 3500}},
		{{Kind: read, Key: 1}, {Kind: read, Key: 0}, {Kind: write, Key: 1, Value: 3200}, {Kind: write, Key: 0, Value: 4800}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the transfers are %v, want %v", got, want)
	}
	if err := w.Check(d); err != nil || d.Get(0).Value != 4800 || d.Get(1).Value != 3200 {
		t.Errorf("the balances are %d and %d, error %v", d.Get(0).Value, d.Get(1).Value, err)
	}
	w = mustNew(t, "two-transfers", map[string]string{"order": "by-key", "access": "read"}, 2)
	ops, _, _ := run(t, w.Generator(7, "client", 1).Next(nil), newDatabase(w), 1, false)
	if ops[0] != (txnproto.Op{Kind: txnproto.Read, Key: 0}) {
		t.Errorf("by key, the second transfer begins with %v", ops[0])
	}
}
