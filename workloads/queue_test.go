package workloads

import (
	"strings"
	"testing"

	"interleave/txnproto"
)

// Each takes the first job that is open; who finds one locked goes on to the next,
// and who finds none rolls back.
func TestQueue(t *testing.T) {
	w := mustNew(t, "queue", map[string]string{"keys": "3"}, 2)
	d := newDatabase(w)
	g := w.Generator(1, "client/0", 0)
	for i := range 3 {
		ops, end, _ := run(t, g.Next(nil), d, 1, false)
		if len(ops) != i+2 || end != txnproto.StepCommit || ops[i+1].Kind != txnproto.Modify || ops[i+1].Key != txnproto.Key(i) {
			t.Fatalf("worker %d: %v, %v", i, ops, end)
		}
	}
	if ops, end, _ := run(t, g.Next(nil), d, 1, false); len(ops) != 3 || end != txnproto.StepRollback {
		t.Fatalf("of an empty queue: %v, %v", ops, end)
	}
	if err := w.Check(d); err != nil {
		t.Fatal(err)
	}
	d.put(1, 2, true)
	if err := w.Check(d); err == nil || !strings.Contains(err.Error(), "job 1 was done 2 times") {
		t.Fatalf("error %v", err)
	}
}

func TestQueueSkips(t *testing.T) {
	w := mustNew(t, "queue", map[string]string{"keys": "3"}, 2)
	p := w.Generator(1, "client/0", 0).Next(nil)
	p.Start(1, false)
	var a txnproto.Action
	p.Next(nil, &a)
	if a.Op.Wait != txnproto.WaitSkip {
		t.Fatalf("asks with %v", a.Op.Wait)
	}
	p.Next(&txnproto.Result{Row: txnproto.Row{Skipped: true}}, &a)
	if a.Op.Kind != txnproto.ReadForUpdate || a.Op.Key != 1 {
		t.Fatalf("after a locked job: %v", a.Op)
	}
	p.Next(&txnproto.Result{Row: txnproto.Row{Key: 1, Exists: true}}, &a)
	if a.Op.Kind != txnproto.Modify || a.Op.Key != 1 {
		t.Fatalf("after an open job: %v", a.Op)
	}
}

// A transaction that goes back does its second half twice, between a savepoint and the end.
func TestYCSBGoesBack(t *testing.T) {
	w := mustNew(t, "ycsb", map[string]string{"ops": "4", "undo": "1", "wait": "nowait"}, 1)
	p := w.Generator(1, "client/0", 0).Next(nil)
	for range 2 {
		p.Start(1, false)
		var steps []string
		var keys []txnproto.Key
		var a txnproto.Action
		for step := txnproto.StepOp; step != txnproto.StepCommit; {
			step = p.Next(nil, &a)
			switch step {
			case txnproto.StepOp:
				steps = append(steps, "op")
				keys = append(keys, a.Op.Key)
				if a.Op.Wait != txnproto.WaitNot {
					t.Fatalf("operation waits with %v", a.Op.Wait)
				}
			case txnproto.StepSavepoint:
				steps = append(steps, "save")
			case txnproto.StepRollbackTo:
				steps = append(steps, "back")
			case txnproto.StepCommit, txnproto.StepThink, txnproto.StepRollback:
			}
		}
		if got := strings.Join(steps, " "); got != "op op save op op back op op" {
			t.Fatalf("steps %s", got)
		}
		if keys[2] != keys[4] || keys[3] != keys[5] {
			t.Fatalf("keys %v", keys)
		}
	}
}
