package workloads

import (
	"slices"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
)

func mustNew(t testing.TB, name string, given map[string]string, clients int) txnproto.Workload {
	t.Helper()
	w, err := New(name, given, clients)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// database is the simplest storage there is: one transaction at a time.
type database struct {
	w       txnproto.Workload
	changed map[txnproto.Key]txnproto.Row
}

func newDatabase(w txnproto.Workload) *database {
	return &database{w, map[txnproto.Key]txnproto.Row{}}
}

func (d *database) Get(k txnproto.Key) txnproto.Row {
	if r, ok := d.changed[k]; ok {
		return r
	}
	if uint64(k) < d.w.InitialKeys() {
		return txnproto.Row{Key: k, Value: d.w.Initial(k), Exists: true}
	}
	return txnproto.Row{Key: k}
}

func (d *database) Inserted(f func(txnproto.Row)) {
	var keys []txnproto.Key
	for k, r := range d.changed {
		if uint64(k) >= d.w.InitialKeys() && r.Exists {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		f(d.changed[k])
	}
}

func (d *database) Deleted(f func(txnproto.Key)) {
	var keys []txnproto.Key
	for k, r := range d.changed {
		if uint64(k) < d.w.InitialKeys() && !r.Exists {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		f(k)
	}
}

func (d *database) put(k txnproto.Key, v txnproto.Value, exists bool) {
	d.changed[k] = txnproto.Row{Key: k, Value: v, Exists: exists}
}

// do carries out one operation at once.
func (d *database) do(op txnproto.Op) *txnproto.Result {
	r := &txnproto.Result{Row: txnproto.Row{Key: op.Key}}
	switch op.Kind {
	case txnproto.Read, txnproto.ReadForUpdate:
		r.Row = d.Get(op.Key)
	case txnproto.Write, txnproto.Insert:
		d.put(op.Key, op.Value, true)
	case txnproto.Modify:
		r.Row = d.Get(op.Key)
		d.put(op.Key, r.Row.Value+op.Value, true)
	case txnproto.Delete:
		d.put(op.Key, 0, false)
	case txnproto.Scan:
		for k := op.Key; k < op.End; k++ {
			if row := d.Get(k); row.Exists {
				r.Rows = append(r.Rows, row)
			}
		}
	case txnproto.NumOpKinds:
	}
	return r
}

// run drives p through one attempt against d and returns its operations, how it
// ended, and how often it paused.
func run(t testing.TB, p txnproto.Program, d *database, attempt int, fresh bool) (ops []txnproto.Op, end txnproto.Step, pauses int) {
	t.Helper()
	p.Start(attempt, fresh)
	var last *txnproto.Result
	for range 1_000_000 {
		var a txnproto.Action
		switch step := p.Next(last, &a); step {
		case txnproto.StepOp:
			ops = append(ops, a.Op)
			last = d.do(a.Op)
		case txnproto.StepThink:
			if a.Think <= 0 {
				t.Fatalf("a pause of %v", a.Think)
			}
			pauses++
			last = nil
		case txnproto.StepCommit, txnproto.StepRollback:
			return ops, step, pauses
		}
	}
	t.Fatal("the program does not end")
	return nil, 0, 0
}

// programs returns the operations of the first n programs of a generator.
func programs(t testing.TB, w txnproto.Workload, seed rng.Seed, name string, client txnproto.ClientID, n int) [][]txnproto.Op {
	t.Helper()
	g := w.Generator(seed, name, client)
	d := newDatabase(w)
	out := make([][]txnproto.Op, n)
	var p txnproto.Program
	for i := range out {
		p = g.Next(p)
		out[i], _, _ = run(t, p, d, 1, false)
	}
	return out
}
