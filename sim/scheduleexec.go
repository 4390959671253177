package sim

import (
	"fmt"
	"slices"

	"interleave/txnproto"
	"interleave/txnproto/schedule"
)

// doneOp is an operation that was carried out, with what it read.
type doneOp struct {
	op    schedule.Op
	index int // in the schedule that was run; -1: none of it
	txn   int // client
	reads []ItemRead
}

// execute finds the schedule with one version of each item that was carried out. Under
// protocols that lock, writes stand where they were granted: nobody else could touch the
// item from there on. Under others they stand at the commits that installed them; and
// the other way round where only that serves. An order serves when every read in it
// returns what was read in fact, and the same writes are last.
func (r *scheduleRun) execute(view txnproto.View) {
	last := make([]int, len(r.workload.items))
	for k := range last {
		last[k] = fromInitial
		if v := view.Get(txnproto.Key(k)).Version; v != 0 {
			last[k] = int(r.owner[r.writers[txnproto.ReadVersion{Key: txnproto.Key(k), Version: v}]].client)
		}
	}
	done := r.done()
	if d, x := r.readTriedAgain(done); x != nil {
		r.out.Notes = append(r.out.Notes, fmt.Sprintf(
			"%v read %s of an attempt of %s that aborted and was tried again: no order of the last attempts' operations explains it, so the classes of schedules do not apply. The isolation is judged from the versions.",
			d.op.Txn, x.Item, x.From))
		return
	}
	orders := []bool{true, false}
	if r.protocol.Family == "two-phase locking" || r.protocol.Sequenced {
		orders = []bool{false, true}
	}
	for _, deferred := range orders {
		ops := done
		if deferred {
			ops = r.deferred(done)
		}
		if !r.explains(ops, last) {
			continue
		}
		plain := make([]schedule.Op, len(ops))
		for i := range ops {
			plain[i] = ops[i].op
		}
		s, err := schedule.New(r.s.Initial, plain)
		if err != nil {
			panic("sim: what was carried out is no schedule: " + err.Error())
		}
		r.out.Executed, r.out.ExecutedText, r.out.Deferred = s, s.String(), deferred
		r.out.Class = schedule.Classify(s, schedule.Options{MaxOrders: 4})
		return
	}
	r.out.Notes = append(r.out.Notes,
		"Reads went to older versions, or writes were placed below younger ones: no order of the operations with one version of each item explains them, so the classes of schedules do not apply. The isolation is judged from the versions.")
}

// readTriedAgain returns a read of what an attempt wrote that was not its transaction's
// last, with the operation that made it, or nil.
func (r *scheduleRun) readTriedAgain(done []doneOp) (*doneOp, *ItemRead) {
	for i := range done {
		for j := range done[i].reads {
			if x := &done[i].reads[j]; x.attempt != 0 && x.attempt != r.owner[x.attempt].id {
				return &done[i], x
			}
		}
	}
	return nil, nil
}

// done is what each transaction's last attempt did, in order.
func (r *scheduleRun) done() []doneOp {
	var out []doneOp
	for i := range r.out.Steps {
		s := &r.out.Steps[i]
		client := slices.IndexFunc(r.programs, func(p *scheduleProgram) bool { return p.txn == s.Txn })
		if s.attempt != r.programs[client].id {
			continue
		}
		d := doneOp{op: schedule.Op{Txn: s.Txn}, index: s.op, txn: client, reads: s.Reads}
		switch s.Event {
		case StepGranted, StepMarked:
			if s.op < 0 || len(s.Reads) > 0 && !slices.ContainsFunc(s.Reads, func(x ItemRead) bool { return x.State != "skipped" }) {
				continue
			}
			d.op = r.s.Ops[s.op]
			d.op.At, d.op.Wait, d.op.Timeout = 0, schedule.Wait, 0
			if d.op.Kind == schedule.Read {
				d.op.Value = nil // what was read in fact may be another
			}
		case StepBegun:
			if s.Number == 0 {
				continue
			}
			d.op.Kind = schedule.Begin
		case StepCommitted:
			d.op.Kind = schedule.Commit
		case StepAborted, StepRolledBack:
			d.op.Kind = schedule.Abort
		case StepWaits, StepPlaced:
			continue
		default:
			panic("sim: unknown event " + string(s.Event))
		}
		out = append(out, d)
	}
	return r.withoutUndone(out)
}

// withoutUndone leaves out what was read under a savepoint that was rolled back to
// later. It is no part of the transaction any more, for the checker as for the protocols:
// they let go of what protects it.
func (r *scheduleRun) withoutUndone(done []doneOp) []doneOp {
	undone := make([]bool, len(done))
	saves := map[int][]int{} // by client: places in done
	some := false
	for i, d := range done {
		switch d.op.Kind {
		case schedule.Savepoint:
			saves[d.txn] = append(saves[d.txn], i)
		case schedule.RollbackTo:
			at := len(saves[d.txn]) - 1
			for done[saves[d.txn][at]].op.Savepoint != d.op.Savepoint {
				at--
			}
			saves[d.txn] = saves[d.txn][:at+1]
			for j := saves[d.txn][at]; j < i; j++ {
				if done[j].txn == d.txn && done[j].op.Kind.Reads() {
					undone[j], some = true, true
				}
			}
		case schedule.Release:
			at := len(saves[d.txn]) - 1
			for done[saves[d.txn][at]].op.Savepoint != d.op.Savepoint {
				at--
			}
			saves[d.txn] = saves[d.txn][:at]
		case schedule.Begin, schedule.Read, schedule.Scan, schedule.Write, schedule.Insert, schedule.Delete, schedule.Commit, schedule.Abort:
		default:
			panic("sim: unknown operation of a schedule: " + d.op.Kind.String())
		}
	}
	if !some {
		return done
	}
	r.out.Notes = append(r.out.Notes, "What was read under a savepoint and rolled back is left out of the executed schedule: nothing protects it any more.")
	var out []doneOp
	for i, d := range done {
		if !undone[i] {
			out = append(out, d)
		}
	}
	return out
}

// deferred puts the writes to the commits that installed them. What a transaction read
// of its own writes, and its savepoints, have no place there.
func (r *scheduleRun) deferred(done []doneOp) []doneOp {
	var out []doneOp
	for i, d := range done {
		switch d.op.Kind {
		case schedule.Write, schedule.Insert, schedule.Delete, schedule.Savepoint, schedule.RollbackTo, schedule.Release:
			continue
		case schedule.Read, schedule.Scan:
			out = append(out, d.withoutOwn()...)
			continue
		case schedule.Commit:
			for _, k := range r.installs[r.programs[d.txn].id] {
				for j := i - 1; j >= 0; j-- {
					if w := done[j]; w.txn == d.txn && w.op.Kind.Writes() && w.op.Item == r.workload.items[k] {
						out = append(out, w)
						break
					}
				}
			}
		case schedule.Begin, schedule.Abort:
		default:
			panic("sim: unknown operation of a schedule: " + d.op.Kind.String())
		}
		out = append(out, d)
	}
	return out
}

// withoutOwn is a read without what its transaction had written itself: nothing of a
// read of one item, and the ranges between of a scan.
func (d doneOp) withoutOwn() []doneOp {
	if !slices.ContainsFunc(d.reads, func(x ItemRead) bool { return x.From == "own" }) {
		return []doneOp{d}
	}
	var out []doneOp
	apart := true
	for _, x := range d.reads { // in the order of ranges
		if x.From == "own" {
			apart = true
			continue
		}
		if apart {
			part := d
			part.op.Item, part.reads = x.Item, nil
			out = append(out, part)
			apart = false
		}
		last := &out[len(out)-1]
		last.op.End = x.Item
		last.reads = append(last.reads, x)
	}
	return out
}

// madeWrite is a write that has not been undone.
type madeWrite struct{ txn, index int }

// explains reports whether ops, with one version of each item, give every read the
// writer that it had, and each item the last writer.
func (r *scheduleRun) explains(ops []doneOp, last []int) bool {
	writes := make([][]madeWrite, len(last)) // by key, oldest first
	saves := map[int][]doneOp{}              // by client
	newest := func(k txnproto.Key) int {
		if n := len(writes[k]); n > 0 {
			return writes[k][n-1].txn
		}
		return fromInitial
	}
	undo := func(txn, from int) {
		for k := range writes {
			writes[k] = slices.DeleteFunc(writes[k], func(w madeWrite) bool { return w.txn == txn && w.index >= from })
		}
	}
	for i := range ops {
		d := &ops[i]
		for _, x := range d.reads {
			if x.State != "skipped" && newest(r.workload.key(x.Item)) != x.writer {
				return false
			}
		}
		switch d.op.Kind {
		case schedule.Write, schedule.Insert, schedule.Delete:
			k := r.workload.key(d.op.Item)
			writes[k] = append(writes[k], madeWrite{d.txn, d.index})
		case schedule.Abort:
			undo(d.txn, -1)
		case schedule.Savepoint:
			saves[d.txn] = append(saves[d.txn], *d)
		case schedule.RollbackTo:
			for j := len(saves[d.txn]) - 1; j >= 0; j-- {
				if s := saves[d.txn][j]; s.op.Savepoint == d.op.Savepoint {
					undo(d.txn, s.index)
					break
				}
			}
		case schedule.Begin, schedule.Read, schedule.Scan, schedule.Release, schedule.Commit:
		default:
			panic("sim: unknown operation of a schedule: " + d.op.Kind.String())
		}
	}
	for txn := range r.programs { // what has not ended is not installed
		if !slices.ContainsFunc(ops, func(d doneOp) bool { return d.txn == txn && d.op.Kind == schedule.Commit }) {
			undo(txn, -1)
		}
	}
	for k := range last {
		if newest(txnproto.Key(k)) != last[k] {
			return false
		}
	}
	return true
}
