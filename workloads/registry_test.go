package workloads

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
)

func TestDefaultsAreAccepted(t *testing.T) {
	for _, info := range Workloads() {
		given := map[string]string{}
		for _, p := range info.Params {
			if p.Help == "" || strings.Contains(p.Help, "\n") {
				t.Errorf("%s.%s: help %q, want one line", info.Name, p.Name, p.Help)
			}
			if p.Default != "" {
				given[p.Name] = p.Default
			}
		}
		w := mustNew(t, info.Name, given, 3)
		if !reflect.DeepEqual(w.Classes(), mustNew(t, info.Name, nil, 3).Classes()) || w.InitialKeys() == 0 || w.ValueBytes() == 0 {
			t.Errorf("%s: classes %q, %d keys, %d bytes", info.Name, w.Classes(), w.InitialKeys(), w.ValueBytes())
		}
		if err := w.Check(newDatabase(w)); err != nil {
			t.Errorf("%s: an untouched database fails the check: %v", info.Name, err)
		}
	}
}

// TestProgramsDoNotDependOnWhatHappens: the n-th program of a generator is the
// same whatever the results, whether retries come in between, whoever else draws,
// and whether programs are recycled.
func TestProgramsDoNotDependOnWhatHappens(t *testing.T) {
	const n = 200
	for _, c := range []struct {
		name  string
		given map[string]string
	}{
		{"ycsb", map[string]string{"insert": "0.1", "scan": "0.1", "rmw": "0.2", "delete": "0.1", "distribution": "zipfian", "theta": "1.2", "keys": "50"}},
		{"ycsb", map[string]string{"mix": "d", "distribution": "latest", "keys": "100"}},
		{"ycsb", map[string]string{"distribution": "moving-hotspot", "every": "7", "keys": "100"}},
		{"ycsb", map[string]string{"classes": "short:3:ops=1-4;long:1:ops=30,scan=0.5", "keys": "1000"}},
		{"bank", map[string]string{"keys": "20", "audit": "0.2", "audit-keys": "5", "distribution": "zipfian"}},
		{"bank", map[string]string{"keys": "20", "initial": "0", "distribution": "moving-hotspot", "every": "3"}},
		{"two-transfers", nil},
		{"ycsb", map[string]string{"undo": "0.5", "keys": "50"}},
	} {
		want := programs(t, mustNew(t, c.name, c.given, 4), 5, "client/2", 2, n)
		w := mustNew(t, c.name, c.given, 4)
		other := w.Generator(5, "client/1", 1)
		g := w.Generator(5, "client/2", 2)
		d := newDatabase(w)
		if c.name == "bank" { // all poor: transfers roll back
			for k := range w.InitialKeys() {
				d.put(txnproto.Key(k), 0, true)
			}
		}
		for i := range n {
			for range i % 3 {
				run(t, other.Next(nil), d, 1, false)
			}
			p := g.Next(nil)
			var again []txnproto.Op
			for attempt := 1; attempt <= 1+i%4; attempt++ {
				run(t, p, newDatabase(w), attempt, true)
			}
			again, _, _ = run(t, p, d, 9, false)
			alone := want[i]
			if c.name != "ycsb" { // what a transfer writes, and whether, follows from what it read
				n := min(len(again), len(alone))
				again, alone = withoutValues(again[:n]), withoutValues(alone[:n])
			}
			if !reflect.DeepEqual(again, alone) {
				t.Fatalf("%s %v: program %d is %v, alone it was %v", c.name, c.given, i, again, alone)
			}
		}
	}
}

func withoutValues(ops []txnproto.Op) []txnproto.Op {
	for i := range ops {
		ops[i].Value = 0
	}
	return ops
}

func TestFreshKeysKeepTheShape(t *testing.T) {
	w := mustNew(t, "ycsb", map[string]string{"rmw": "0.3", "insert": "0.1", "scan": "0.2", "keys": "100000"}, 4)
	g := w.Generator(1, "client/0", 0)
	for range 50 {
		p := g.Next(nil)
		d := newDatabase(w)
		first, _, _ := run(t, p, d, 1, true)
		second, _, _ := run(t, p, d, 2, true)
		third, _, _ := run(t, p, d, 3, true)
		if len(first) != len(second) || reflect.DeepEqual(first, second) || reflect.DeepEqual(second, third) {
			t.Fatalf("attempts %v, %v and %v", first, second, third)
		}
		for i := range first {
			a, b := first[i], second[i]
			if a.Kind == txnproto.Insert && a != b {
				t.Fatalf("an insert moved from %v to %v", a, b)
			}
			if a.Kind != b.Kind || a.Value != b.Value || a.Kind == txnproto.Scan && a.End-a.Key != b.End-b.Key {
				t.Fatalf("operation %v became %v", a, b)
			}
		}
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		given map[string]string
	}{
		{"ycsb", map[string]string{"distribution": "scrambled-zipfian", "insert": "0.1", "scan": "0.1"}},
		{"ycsb", map[string]string{"ops": "64", "keys": "100", "distribution": "zipfian", "theta": "2"}},
		{"bank", map[string]string{"audit": "0.1", "audit-keys": "10"}},
		{"two-transfers", nil},
		{"queue", nil},
	} {
		w := mustNew(t, c.name, c.given, 2)
		g := w.Generator(1, "client/0", 0)
		var p txnproto.Program
		var a txnproto.Action
		result := &txnproto.Result{Row: txnproto.Row{Value: 1000, Exists: true}}
		attempt := func() {
			p = g.Next(p)
			for _, fresh := range []bool{false, true} {
				p.Start(2, fresh)
				for p.Next(result, &a) == txnproto.StepOp {
				}
			}
		}
		for range 100 {
			attempt()
		}
		if n := testing.AllocsPerRun(200, attempt); n != 0 {
			t.Errorf("%s %v: %g allocations a program", c.name, c.given, n)
		}
	}
}

func TestNewErrors(t *testing.T) {
	for _, c := range []struct {
		name    string
		given   map[string]string
		clients int
		want    string
	}{
		{"ycbs", nil, 1, `unknown workload "ycbs": allowed are ycsb, bank, two-transfers, queue`},
		{"ycsb", nil, 0, "clients is 0, allowed are whole numbers from 1"},
		{"ycsb", map[string]string{"kyes": "1"}, 1, `unknown parameter "kyes"`},
		{"ycsb", map[string]string{"keys": "0"}, 1, "keys: 0: want a whole number from 1"},
		{"ycsb", map[string]string{"keys": "5"}, 1, "class all has up to 10 operations, each on a key of its own, and keys is 5"},
		{"ycsb", map[string]string{"distribution": "zipfain"}, 1, `"zipfain" is not one of uniform, zipfian,`},
		{"ycsb", map[string]string{"distribution": "zipfian", "theta": "-1"}, 1, "theta is -1, allowed are numbers in [0, unbounded)"},
		{"ycsb", map[string]string{"mix": "g"}, 1, `"g" is not one of custom, a, b`},
		{"ycsb", map[string]string{"mix": "a", "read": "1"}, 1, "mix is a, which sets the shares"},
		{"ycsb", map[string]string{"read": "0.5"}, 1, "(read=0.5) sum to 0.5, want 1"},
		{"ycsb", map[string]string{"update": "0.7", "rmw": "0.7"}, 1, "sum to 1.4, want 1"},
		{"ycsb", map[string]string{"update": "half"}, 1, `update is "half", allowed are numbers from 0 to 1`},
		{"ycsb", map[string]string{"update": "NaN"}, 1, `update is "NaN"`},
		{"ycsb", map[string]string{"scan-length-min": "9", "scan-length-max": "3"}, 1, "scan-length-min is 9, allowed are 1 to scan-length-max, which is 3"},
		{"ycsb", map[string]string{"op-think": "5"}, 1, `op-think: distribution "5"`},
		{"ycsb", map[string]string{"classes": "short"}, 1, `classes: "short": want NAME:WEIGHT:`},
		{"ycsb", map[string]string{"classes": "a:1:ops=4;a:1"}, 1, `"a" is there twice`},
		{"ycsb", map[string]string{"classes": "a\nb:1:ops=4"}, 1, `name "a\nb": allowed are printable characters`},
		{"ycsb", map[string]string{"classes": "a:0"}, 1, `a: weight "0", allowed are numbers above 0`},
		{"ycsb", map[string]string{"classes": "a:1:ops=0"}, 1, `a: ops is "0", allowed are whole numbers from 1`},
		{"ycsb", map[string]string{"classes": "a:1:ops=8-4"}, 1, `ops is "8-4"`},
		{"ycsb", map[string]string{"classes": "a:1:opps=4"}, 1, `unknown setting "opps": allowed are ops, read,`},
		{"ycsb", map[string]string{"classes": "a:1:read=0.5,read=0.5"}, 1, "read is set twice"},
		{"ycsb", map[string]string{"classes": "a:1;"}, 1, "want NAME:WEIGHT:"},
		{"bank", map[string]string{"keys": "1"}, 1, "keys is 1, allowed are whole numbers from 2"},
		{"bank", map[string]string{"keys": "10000000", "initial": "1000000000000"}, 1, "allowed are 0 to 922337203685"},
		{"bank", map[string]string{"keys": "10", "audit-keys": "11"}, 1, "audit-keys is 11, allowed are 0 to the number of accounts, 10"},
		{"bank", map[string]string{"access": "x"}, 1, `"x" is not one of for-update, read`},
	} {
		if _, err := New(c.name, c.given, c.clients); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: error %v, want %q", c.name, c.given, err, c.want)
		}
	}
}

func BenchmarkProgram(b *testing.B) {
	for name, given := range map[string]map[string]string{
		"ycsb uniform":   nil,
		"ycsb scrambled": {"distribution": "scrambled-zipfian"},
		"bank":           nil,
	} {
		b.Run(name, func(b *testing.B) {
			w := mustNew(b, strings.Fields(name)[0], given, 1)
			g := w.Generator(rng.Seed(1), "client/0", 0)
			var p txnproto.Program
			var a txnproto.Action
			result := &txnproto.Result{Row: txnproto.Row{Value: 1000, Exists: true}}
			b.ReportAllocs()
			for b.Loop() {
				p = g.Next(p)
				p.Start(1, false)
				for p.Next(result, &a) == txnproto.StepOp {
				}
			}
		})
	}
}

// TestProgramsForetell: whatever a program does next is among what it has said may come.
func TestProgramsForetell(t *testing.T) {
	for _, c := range []struct {
		name  string
		given map[string]string
	}{
		{"ycsb", map[string]string{"insert": "0.1", "scan": "0.1", "rmw": "0.2", "delete": "0.1", "undo": "0.3", "rollback": "0.2", "keys": "50"}},
		{"bank", map[string]string{"keys": "20", "audit": "0.3", "audit-keys": "5", "op-think": "exponential:1ms"}},
		{"bank", map[string]string{"keys": "20", "audit": "0.3", "access": "read", "order": "by-key"}},
		{"two-transfers", nil},
		{"queue", map[string]string{"keys": "30"}},
	} {
		w := mustNew(t, c.name, c.given, 2)
		d := newDatabase(w)
		g := w.Generator(3, "client/0", 0)
		for n := range 100 {
			p := g.Next(nil)
			p.Start(1, false)
			var last *txnproto.Result
			var ahead []txnproto.Op
			said := false
			for end := false; !end; {
				var a txnproto.Action
				step := p.Next(last, &a)
				last = nil
				switch step {
				case txnproto.StepOp:
				case txnproto.StepRollbackTo:
					a.Op = txnproto.Op{Kind: txnproto.RollbackTo}
				case txnproto.StepCommit, txnproto.StepRollback:
					end = true
					continue
				default:
					continue
				}
				if said && !slices.ContainsFunc(ahead, func(op txnproto.Op) bool { return op.Kind == a.Op.Kind && op.Key == a.Op.Key }) {
					t.Fatalf("%s %v: program %d does %+v, and has foretold %+v", c.name, c.given, n, a.Op, ahead)
				}
				said = false // after a rollback to a savepoint
				if step == txnproto.StepOp {
					last = d.do(a.Op)
					ahead, said = p.(txnproto.Foreteller).Ahead(nil), true
				}
			}
		}
	}
}

// TestRollbackShare: about as many programs roll back as asked, the same on every retry.
func TestRollbackShare(t *testing.T) {
	w := mustNew(t, "ycsb", map[string]string{"rollback": "0.25"}, 1)
	g := w.Generator(1, "client/0", 0)
	n := 0
	for range 1000 {
		p := g.Next(nil)
		_, first, _ := run(t, p, newDatabase(w), 1, false)
		_, again, _ := run(t, p, newDatabase(w), 2, true)
		if first != again {
			t.Fatal("a retry ends otherwise")
		}
		if first == txnproto.StepRollback {
			n++
		}
	}
	if n < 200 || n > 300 {
		t.Errorf("%d of 1000 roll back, want about 250", n)
	}
}
