package sim

import (
	"maps"
	"math"
	"slices"

	"interleave/sim/event"
	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/txnproto/schedule"
)

// unknownValue is the value of a row of which the schedule does not say what it holds.
const unknownValue = txnproto.Value(math.MinInt64)

// scheduleWorkload is the database and the programs of a schedule. The items are the
// keys from 0 up, in the order of ranges: nothing lies between two that the schedule
// does not name. It implements txnproto.Workload and txnproto.Sparse.
type scheduleWorkload struct {
	r       *scheduleRun
	items   []schedule.Item
	initial []txnproto.Value // by key
	absent  []bool           // by key
}

// newScheduleWorkload places the items. An item whose first change is an insert holds
// no row before, unless it has an initial value; every other does.
func newScheduleWorkload(r *scheduleRun) *scheduleWorkload {
	w := &scheduleWorkload{r: r, items: r.s.Items()}
	for _, it := range w.items {
		value, given := unknownValue, false
		for _, in := range r.s.Initial {
			if in.Item == it {
				value, given = txnproto.Value(in.Value), true
			}
		}
		first := slices.IndexFunc(r.s.Ops, func(op schedule.Op) bool { return op.Kind.Writes() && op.Item == it })
		w.initial = append(w.initial, value)
		w.absent = append(w.absent, !given && first >= 0 && r.s.Ops[first].Kind == schedule.Insert)
	}
	return w
}

// span is the keys of a range of items, lo included, hi not.
func (w *scheduleWorkload) span(from, to schedule.Item) (lo, hi txnproto.Key) {
	i, _ := slices.BinarySearchFunc(w.items, from, schedule.CompareItems)
	j, in := slices.BinarySearchFunc(w.items, to, schedule.CompareItems)
	if in {
		j++
	}
	return txnproto.Key(i), txnproto.Key(j)
}

// key is an item's key. REQUIRES: the schedule names it outside of a range's ends.
func (w *scheduleWorkload) key(it schedule.Item) txnproto.Key {
	k, _ := w.span(it, it)
	return k
}

// name is what a key is called; what lies past the last is the end.
func (w *scheduleWorkload) name(k txnproto.Key) string {
	if uint64(k) < uint64(len(w.items)) {
		return string(w.items[k])
	}
	return "end"
}

func (w *scheduleWorkload) Classes() []string                     { return []string{"schedule"} }
func (w *scheduleWorkload) InitialKeys() uint64                   { return uint64(len(w.items)) }
func (w *scheduleWorkload) Initial(k txnproto.Key) txnproto.Value { return w.initial[k] }
func (w *scheduleWorkload) Absent(k txnproto.Key) bool            { return w.absent[k] }
func (w *scheduleWorkload) ValueBytes() int                       { return 8 }
func (w *scheduleWorkload) Check(txnproto.View) error             { return nil }

// Generator returns the client's one program.
func (w *scheduleWorkload) Generator(_ rng.Seed, _ string, c txnproto.ClientID) txnproto.Generator {
	return scheduleSource{w.r.programs[c]}
}

type scheduleSource struct{ p *scheduleProgram }

func (s scheduleSource) Next(txnproto.Program) txnproto.Program { return s.p }

// scheduleProgram is one transaction of a schedule. It looks at the clock, unlike the
// programs of workloads: an operation is submitted at its time or, when the one before
// it had to wait beyond that, at once.
type scheduleProgram struct {
	r      *scheduleRun
	client txnproto.ClientID
	txn    schedule.Txn
	ops    []int // its operations, as indexes in the schedule

	// The attempt under way.
	id       txnproto.TxnID
	first    txnproto.TxnID // of its first attempt
	puts     []txnproto.Key // what it wrote, as it asked to commit
	attempt  int
	next     int           // in ops
	at       int           // operation under way, as an index in the schedule; -1: none yet
	rest     []txnproto.Op // what is still to be done for it
	seen     map[schedule.Item]seenValue
	saves    []programSave
	numbered int  // the operation whose number a step bears already
	waits    bool // what it asked for has to wait
	waitFrom event.Time
	lock     string // the lock asked for last, of those taken beforehand
	// sequencing: it waits for its place in the global order.
	sequencing bool
}

// seenValue is what a transaction last saw of an item.
type seenValue struct {
	value txnproto.Value
	own   bool // it wrote that itself
}

// programSave is what a savepoint keeps of a program's knowledge.
type programSave struct {
	name   string
	number int // for the session: the savepoint's place in the schedule
	seen   map[schedule.Item]seenValue
}

// Class implements txnproto.Program.
func (p *scheduleProgram) Class() txnproto.ClassID { return 0 }

// Start implements txnproto.Program.
func (p *scheduleProgram) Start(attempt int, _ bool) {
	p.attempt, p.next, p.at = attempt, 0, -1
	p.rest, p.saves = nil, nil
	p.seen = map[schedule.Item]seenValue{}
	p.r.begun(p)
}

// Next implements txnproto.Program.
func (p *scheduleProgram) Next(last *txnproto.Result, a *txnproto.Action) txnproto.Step {
	if last != nil {
		p.found(last)
	}
	for {
		if len(p.rest) > 0 {
			a.Op = p.rest[0]
			p.rest = p.rest[1:]
			return txnproto.StepOp
		}
		i := p.ops[p.next] // the last one ends the transaction
		if now := p.r.loop.Now(); now < p.r.at[i] {
			a.Think = p.r.at[i].Sub(now)
			return txnproto.StepThink
		}
		p.next++
		p.at = i
		if step, ok := p.begin(&p.r.s.Ops[i], a); ok {
			return step
		}
	}
}

// begin starts operation op. It reports false when that is all for now and no step of
// the session follows: p.rest may hold some.
func (p *scheduleProgram) begin(op *schedule.Op, a *txnproto.Action) (txnproto.Step, bool) {
	switch op.Kind {
	case schedule.Begin:
		return 0, false
	case schedule.Read, schedule.Scan, schedule.Write, schedule.Insert, schedule.Delete:
		p.rest = p.r.operations(nil, op)
		if len(p.rest) == 0 {
			p.r.granted(p) // a range without items
		}
		for i := range p.rest {
			if op.Kind.Writes() {
				p.write(op, &p.rest[i])
			}
		}
		return 0, false
	case schedule.Savepoint:
		p.r.mark(p)
		p.saves = append(p.saves, programSave{op.Savepoint, p.at, maps.Clone(p.seen)})
		a.Savepoint = p.at
		return txnproto.StepSavepoint, true
	case schedule.RollbackTo:
		p.r.mark(p)
		s := &p.saves[p.savepoint(op.Savepoint)]
		p.saves = p.saves[:p.savepoint(op.Savepoint)+1]
		for it, v := range p.seen { // order: each on its own
			if before, had := s.seen[it]; v.own && had {
				p.seen[it] = before
			} else if v.own {
				delete(p.seen, it)
			}
		}
		a.Savepoint = s.number
		return txnproto.StepRollbackTo, true
	case schedule.Release:
		p.r.mark(p)
		p.saves = p.saves[:p.savepoint(op.Savepoint)]
		return 0, false
	case schedule.Commit:
		return txnproto.StepCommit, true
	case schedule.Abort:
		return txnproto.StepRollback, true
	default:
		panic("sim: unknown operation of a schedule: " + op.Kind.String())
	}
}

// savepoint is the place of the newest savepoint of that name; the parser has seen to it.
func (p *scheduleProgram) savepoint(name string) int {
	for i := len(p.saves) - 1; i >= 0; i-- {
		if p.saves[i].name == name {
			return i
		}
	}
	panic("sim: no savepoint " + name)
}

// write computes what op writes.
func (p *scheduleProgram) write(op *schedule.Op, o *txnproto.Op) {
	if op.Kind == schedule.Delete {
		return
	}
	o.Value = p.eval(op.Value)
	p.seen[op.Item] = seenValue{o.Value, true}
}

// eval computes a sum from what the transaction last saw, unknownValue when it has not
// seen an item or the sum overflows.
func (p *scheduleProgram) eval(e schedule.Expr) txnproto.Value {
	if e == nil {
		return unknownValue
	}
	sum := txnproto.Value(0)
	for _, t := range e {
		v := txnproto.Value(t.Number)
		if t.Item != "" {
			s, ok := p.seen[t.Item]
			if !ok {
				p.r.unseen(p, t.Item)
				return unknownValue
			}
			if v = s.value; v == unknownValue {
				return unknownValue
			}
		}
		if t.Minus {
			v = -v
		}
		if v > 0 && sum > math.MaxInt64-v || v < 0 && sum <= math.MinInt64-v {
			return unknownValue
		}
		sum += v
	}
	return sum
}

// found takes what the operation under way has read.
func (p *scheduleProgram) found(res *txnproto.Result) {
	if p.at < 0 {
		return // a lock taken beforehand
	}
	op := &p.r.s.Ops[p.at]
	switch {
	case op.Kind == schedule.Scan && op.Lock != schedule.ForUpdate:
		lo, hi := p.r.workload.span(op.Item, op.End)
		for k := lo; k < hi; k++ {
			row := txnproto.Row{Key: k}
			for i := range res.Rows {
				if res.Rows[i].Key == k {
					row = res.Rows[i]
				}
			}
			p.saw(row)
		}
	case op.Kind.Reads():
		p.saw(res.Row)
	}
}

func (p *scheduleProgram) saw(row txnproto.Row) {
	it := p.r.workload.items[row.Key]
	switch {
	case row.Skipped:
	case row.Exists:
		p.seen[it] = seenValue{row.Value, row.Own}
	default:
		delete(p.seen, it)
	}
	p.r.read(p, it, row)
}

// Declare implements txnproto.Declarer: for protocols that lock beforehand.
func (p *scheduleProgram) Declare(ops []txnproto.Op) []txnproto.Op {
	for _, i := range p.ops {
		ops = p.r.operations(ops, &p.r.s.Ops[i])
	}
	return ops
}

// Ahead implements txnproto.Foreteller: for protocols that release early.
func (p *scheduleProgram) Ahead(ops []txnproto.Op) []txnproto.Op {
	ops = append(ops, p.rest...)
	for _, i := range p.ops[p.next:] {
		if p.r.s.Ops[i].Kind == schedule.RollbackTo {
			ops = append(ops, txnproto.Op{Kind: txnproto.RollbackTo})
		}
		ops = p.r.operations(ops, &p.r.s.Ops[i])
	}
	return ops
}

// operations appends what op asks of the database.
func (r *scheduleRun) operations(to []txnproto.Op, op *schedule.Op) []txnproto.Op {
	o := txnproto.Op{}
	switch op.Wait {
	case schedule.Wait:
	case schedule.NoWait:
		o.Wait = txnproto.WaitNot
	case schedule.SkipLocked:
		o.Wait = txnproto.WaitSkip
	case schedule.WaitFor:
		o.Timeout = op.Timeout
	default:
		panic("sim: unknown wait clause")
	}
	switch op.Kind {
	case schedule.Begin, schedule.Savepoint, schedule.RollbackTo, schedule.Release, schedule.Commit, schedule.Abort:
		return to
	case schedule.Scan:
		lo, hi := r.workload.span(op.Item, op.End)
		if op.Lock == schedule.ForUpdate {
			o.Kind = txnproto.ReadForUpdate
			for o.Key = lo; o.Key < hi; o.Key++ {
				to = append(to, o)
			}
			return to
		}
		o.Kind, o.Key, o.End = txnproto.Scan, lo, hi
		if lo == hi {
			return to // nothing is named there
		}
		return append(to, o)
	case schedule.Read:
		o.Kind = txnproto.Read
		if op.Lock == schedule.ForUpdate {
			o.Kind = txnproto.ReadForUpdate
		}
	case schedule.Write:
		o.Kind = txnproto.Write
	case schedule.Insert:
		o.Kind = txnproto.Insert
	case schedule.Delete:
		o.Kind = txnproto.Delete
	default:
		panic("sim: unknown operation of a schedule: " + op.Kind.String())
	}
	o.Key = r.workload.key(op.Item)
	return append(to, o)
}
