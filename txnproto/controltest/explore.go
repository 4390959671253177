package controltest

import (
	"fmt"

	"interleave/txnproto"
)

// Run is one interleaving that Explore has tried.
type Run struct {
	*Driver
	Attempts []*Attempt // by program; Outcome says how each ended
	Schedule []int      // which program took each step
}

// Explore runs the programs in every interleaving of their steps: operations,
// the prepare on each shard, and the finish. A program that waits takes no step; one that aborts is not
// retried. visit sees each run at its end; its error, or that of a run in which
// programs wait for ever, ends the exploration. It returns the number of runs.
func Explore(c Config, programs [][]txnproto.Op, visit func(Run) error) (int, error) {
	var choices []choice
	for runs := 1; ; runs++ {
		e := &explorer{d: NewDriver(c), programs: programs}
		e.run(&choices)
		r := Run{e.d, e.attempts(), e.schedule}
		err := visit(r)
		if stuck := e.d.Stuck(); err == nil && len(stuck) > 0 {
			err = fmt.Errorf("%v wait for ever", stuck)
		}
		if err == nil && e.d.Open() > 0 {
			err = fmt.Errorf("%d branches were left behind", e.d.Open())
		}
		if err != nil {
			return runs, fmt.Errorf("schedule %v: %w", e.schedule, err)
		}
		// On to the next path: the last choice that has another option takes it.
		for len(choices) > 0 && choices[len(choices)-1].taken == choices[len(choices)-1].of-1 {
			choices = choices[:len(choices)-1]
		}
		if len(choices) == 0 {
			return runs, nil
		}
		choices[len(choices)-1].taken++
	}
}

type choice struct{ taken, of int }

type explorer struct {
	d        *Driver
	programs [][]txnproto.Op
	runners  []*runner
	schedule []int
}

type runner struct {
	e    *explorer
	id   txnproto.RequestID
	a    *Attempt
	ops  []txnproto.Op
	next int
	due  int
	over bool
	// Under protocols that sequence, that is the first step.
	sequenced, sequencing bool
}

func (e *explorer) attempts() []*Attempt {
	as := make([]*Attempt, len(e.runners))
	for i, r := range e.runners {
		as[i] = r.a
	}
	return as
}

func (e *explorer) run(choices *[]choice) {
	for i, ops := range e.programs {
		r := &runner{e: e, id: txnproto.RequestID(i + 1), ops: ops}
		if !e.d.LateBegin {
			r.a = e.d.Begin(r.id, nil)
		}
		e.runners = append(e.runners, r)
	}
	for depth := 0; ; {
		var ready []int
		for i, r := range e.runners {
			if !r.over && r.due == 0 {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			return
		}
		pick := 0
		if len(ready) > 1 {
			if depth == len(*choices) {
				*choices = append(*choices, choice{0, len(ready)})
			}
			pick = (*choices)[depth].taken
			depth++
		}
		e.schedule = append(e.schedule, ready[pick])
		e.runners[ready[pick]].step()
		e.d.Loop.RunUntil(e.d.Loop.Now())
		if e.d.Protocol.Sequenced {
			e.d.Loop.Run() // an epoch comes to its end
		}
	}
}

// step takes the program's next step.
func (r *runner) step() {
	d := r.e.d
	if r.a == nil {
		r.a = d.Begin(r.id, nil)
	}
	switch {
	case !r.sequenced:
		r.sequenced = true
		if !d.claim(r.a, r.ops) {
			r.step()
			return
		}
		r.due, r.sequencing = 1, true
		d.home(r.a, r.ops).Access(r.a, txnproto.Op{Kind: txnproto.Sequence}, r.heard, r.told)
	case r.next < len(r.ops) && r.ops[r.next] == RollBack:
		r.a.Outcome = txnproto.Aborted
		r.heard(txnproto.Abort(txnproto.Constraint))
	case r.next < len(r.ops):
		op := r.ops[r.next]
		shards := []*Shard{d.ShardOf(op.Key)}
		if op.Kind == txnproto.Scan {
			shards = d.Shards
		}
		r.due = len(shards)
		for _, s := range shards {
			if r.over {
				return
			}
			s.Access(r.a, op, r.heard, r.told)
		}
	case r.next < len(r.ops)+len(r.a.participants()):
		id := r.a.participants()[r.next-len(r.ops)]
		r.due = 1
		d.Shards[id].Prepare(r.a, r.heard)
	default:
		r.over = true
		d.decide(r.a)
		for _, id := range r.a.participants() {
			d.Shards[id].Finish(r.a, txnproto.Committed)
		}
	}
}

func (r *runner) told(reason txnproto.AbortReason) { r.heard(txnproto.Abort(reason)) }

func (r *runner) heard(v txnproto.Verdict) {
	if r.over {
		return
	}
	if _, aborted := v.Aborted(); aborted {
		r.over = true
		for _, id := range r.a.participants() {
			r.e.d.Shards[id].Finish(r.a, txnproto.Aborted)
		}
		r.e.d.forgo(r.a)
		return
	}
	if r.due--; r.due > 0 {
		return
	}
	if r.sequencing {
		r.sequencing = false
		return
	}
	r.next++
	if r.next <= len(r.ops) {
		ahead := r.ops[r.next:]
		r.e.d.grown(r.a, &r.ops[r.next-1], ahead, func(s *Shard) { s.Shrink(r.a, withoutRollBack(ahead)) })
	}
	// The last vote decides, as in a coordinator; the finish is a step of its own.
	if n := len(r.a.participants()); n > 0 && r.next == len(r.ops)+n {
		d := r.e.d
		if reason := d.judge(r.a); reason != txnproto.NoReason {
			r.a.Outcome, r.a.Reason = txnproto.Aborted, reason
			r.heard(txnproto.Abort(reason))
			return
		}
		d.decide(r.a)
	}
}

// SerialOrder looks by brute force for a serial order of the committed programs
// in which each reads from the same transactions and the last writer of every key
// is the same, and returns an error when there is none: view serializability,
// judged without versions' order or dependencies.
func (r Run) SerialOrder(programs [][]txnproto.Op) error {
	var committed []int
	writer := map[ReadOf]int{}
	last := map[txnproto.Key]ReadOf{}
	for i, a := range r.Attempts {
		if a.Outcome != txnproto.Committed {
			continue
		}
		committed = append(committed, i)
		for _, w := range a.Writes {
			writer[w] = i + 1
			if w.Version > last[w.Key].Version {
				last[w.Key] = w
			}
		}
	}
	seen := func(order []int) bool {
		m := newModel(r.Config)
		for _, i := range order {
			if !m.run(i+1, programs[i], r.Attempts[i].Reads, writer) {
				return false
			}
		}
		for k, w := range m.writer { // order: all must agree
			if writer[last[k]] != w {
				return false
			}
		}
		return true
	}
	if !anyPermutation(committed, 0, seen) {
		return fmt.Errorf("no serial order of programs %v has the same reads and result", committed)
	}
	return nil
}

func anyPermutation(xs []int, from int, ok func([]int) bool) bool {
	if from == len(xs) {
		return ok(xs)
	}
	for i := from; i < len(xs); i++ {
		xs[from], xs[i] = xs[i], xs[from]
		found := anyPermutation(xs, from+1, ok)
		xs[from], xs[i] = xs[i], xs[from]
		if found {
			return true
		}
	}
	return false
}

// model is a database with one transaction at a time; it knows each key's last
// writer, 0 for none.
type model struct {
	keys    txnproto.Key
	present map[txnproto.Key]bool
	writer  map[txnproto.Key]int
}

func newModel(c Config) *model {
	m := &model{c.Keys, map[txnproto.Key]bool{}, map[txnproto.Key]int{}}
	for _, k := range c.Present {
		m.present[k] = true
	}
	return m
}

// run executes a program and reports whether it commits and reads what reads say.
func (m *model) run(self int, ops []txnproto.Op, reads []ReadOf, writer map[ReadOf]int) bool {
	for _, op := range ops {
		keys, end := op.Key, op.Key
		switch op.Kind {
		case txnproto.Read, txnproto.ReadForUpdate, txnproto.Modify, txnproto.Insert:
			end = keys + 1
			if op.Kind == txnproto.Insert && m.present[op.Key] {
				return false
			}
		case txnproto.Scan:
			end = min(op.End, m.keys)
		case txnproto.Write, txnproto.Delete:
		default:
			panic("controltest: unknown operation")
		}
		n := 0
		for k := keys; k < end; k++ {
			if m.writer[k] != self {
				n++
			}
		}
		if len(reads) < n {
			return false
		}
		for _, r := range reads[:n] { // a scan's in any order of its shards
			if r.Key < keys || r.Key >= end || writer[r] != m.writer[r.Key] {
				return false
			}
		}
		reads = reads[n:]
		if op.Kind.Writes() {
			m.writer[op.Key] = self
			m.present[op.Key] = op.Kind != txnproto.Delete
		}
	}
	return len(reads) == 0
}
