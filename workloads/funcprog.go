package workloads

import (
	"errors"
	"iter"
	"time"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// FuncWorkload is a workload whose programs are a plain Go function over Tx:
//
//	w := &workloads.FuncWorkload{
//		Keys: 2, Bytes: 100,
//		Body: func(tx *workloads.Tx) error {
//			stock := tx.Read(0).Value
//			if stock == 0 {
//				return workloads.ErrRollback
//			}
//			tx.Write(0, stock-1)
//			return nil
//		},
//	}
//	defer w.Close()
//
// It is a convenience. Each operation switches between two coroutines (iter.Pull),
// at some 0.3 to 0.8 µs and a few kilobytes for each open transaction, and each
// attempt makes a coroutine anew; the built-in workloads are state machines.
//
// The function is called once for each attempt, and in the middle of one that
// aborts it is unwound by a panic that passes through it: its defers run, a
// recover of its own must panic again with what it caught. It must look at
// nothing but its Tx.
type FuncWorkload struct {
	// Body is the program. A nil error commits, any other rolls back.
	Body func(tx *Tx) error
	// Names are the transaction classes; none is one called "all".
	Names []string
	// Class picks the class of a request, from the request's shape stream. Nil is class 0.
	Class func(client txnproto.ClientID, n uint64, s *rng.Stream) txnproto.ClassID
	Keys  uint64                            // rows at the start, keys 0 to Keys-1
	Value func(txnproto.Key) txnproto.Value // their values; nil is 0
	Bytes int                               // what a row weighs, in bytes
	Holds func(final txnproto.View) error   // the invariant; nil is none
	open  map[*funcProgram]struct{}
	draws draws
}

// ErrRollback is what a program returns when its own logic says no.
var ErrRollback = errors.New("rolled back by the program")

// Classes implements txnproto.Workload.
func (w *FuncWorkload) Classes() []string {
	if len(w.Names) == 0 {
		return []string{"all"}
	}
	return w.Names
}

// InitialKeys implements txnproto.Workload.
func (w *FuncWorkload) InitialKeys() uint64 { return w.Keys }

// Initial implements txnproto.Workload.
func (w *FuncWorkload) Initial(k txnproto.Key) txnproto.Value {
	if w.Value == nil {
		return 0
	}
	return w.Value(k)
}

// ValueBytes implements txnproto.Workload.
func (w *FuncWorkload) ValueBytes() int { return w.Bytes }

// Check implements txnproto.Workload.
func (w *FuncWorkload) Check(final txnproto.View) error {
	if w.Holds == nil {
		return nil
	}
	return w.Holds(final)
}

// Generator implements txnproto.Workload.
func (w *FuncWorkload) Generator(seed rng.Seed, name string, client txnproto.ClientID) txnproto.Generator {
	return &funcGenerator{w: w, streams: newStreams(seed, name), client: client}
}

// Close unwinds the programs that were left open when the run ended, so that no
// coroutine stays behind. The workload can be used again.
func (w *FuncWorkload) Close() {
	for p := range w.open { // order: each is only unwound
		p.abandon()
	}
}

// funcGenerator makes one client's programs.
type funcGenerator struct {
	w       *FuncWorkload
	streams streams
	client  txnproto.ClientID
	next    uint64
}

// Next implements txnproto.Generator.
func (g *funcGenerator) Next(recycled txnproto.Program) txnproto.Program {
	p, ok := recycled.(*funcProgram)
	if ok {
		p.abandon()
	} else {
		p = &funcProgram{}
	}
	p.gen, p.n, p.class = g, g.next, 0
	if g.w.Class != nil {
		p.class = g.w.Class(g.client, p.n, g.w.draws.shapeOf(&g.streams, p.n))
	}
	g.next++
	return p
}

// funcProgram drives one function as a program.
type funcProgram struct {
	gen   *funcGenerator
	n     uint64
	class txnproto.ClassID
	tx    Tx
	next  func() (txnproto.Step, bool)
	stop  func()
}

// Class implements txnproto.Program.
func (p *funcProgram) Class() txnproto.ClassID { return p.class }

// Start implements txnproto.Program.
func (p *funcProgram) Start(attempt int, fresh bool) {
	p.abandon()
	keysOf := 0
	if fresh && attempt > 1 {
		keysOf = attempt
	}
	p.tx = Tx{program: p, rand: *p.gen.w.draws.keysOf(&p.gen.streams, p.n, keysOf)}
	p.next, p.stop = iter.Pull(p.run)
	if p.gen.w.open == nil {
		p.gen.w.open = map[*funcProgram]struct{}{}
	}
	p.gen.w.open[p] = struct{}{}
}

// Next implements txnproto.Program.
func (p *funcProgram) Next(last *txnproto.Result, a *txnproto.Action) txnproto.Step {
	p.tx.last = last
	step, ok := p.next()
	if !ok {
		panic("workloads: a program that has ended was asked for more")
	}
	*a = p.tx.action
	if step == txnproto.StepCommit || step == txnproto.StepRollback {
		p.abandon()
	}
	return step
}

// abandon ends the coroutine, unwinding the function if it is in the middle.
func (p *funcProgram) abandon() {
	if p.stop != nil {
		p.stop()
		p.next, p.stop = nil, nil
		delete(p.gen.w.open, p)
	}
}

// abandoned is the panic that unwinds a function.
type abandoned struct{}

// run is the coroutine: the function, then its end.
func (p *funcProgram) run(yield func(txnproto.Step) bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(abandoned); !ok {
				panic(r)
			}
		}
	}()
	p.tx.yield = yield
	if err := p.gen.w.Body(&p.tx); err != nil {
		yield(txnproto.StepRollback)
		return
	}
	yield(txnproto.StepCommit)
}

// Tx is a transaction as its function sees it. Each operation returns when it is
// granted.
type Tx struct {
	program *funcProgram
	rand    rng.Stream
	yield   func(txnproto.Step) bool
	last    *txnproto.Result
	action  txnproto.Action
	dead    bool
}

// Class returns the request's class.
func (tx *Tx) Class() txnproto.ClassID { return tx.program.class }

// Client returns the client whose request it is.
func (tx *Tx) Client() txnproto.ClientID { return tx.program.gen.client }

// Number returns the request's number among those of its client, from 0.
func (tx *Tx) Number() uint64 { return tx.program.n }

// Rand returns the stream to draw keys and values from. It begins anew with each
// attempt: with the same draws, or with others where retries take fresh keys.
func (tx *Tx) Rand() *rng.Stream { return &tx.rand }

func (tx *Tx) step(s txnproto.Step, a txnproto.Action) *txnproto.Result {
	tx.action = a
	if tx.dead || !tx.yield(s) {
		tx.dead = true
		panic(abandoned{})
	}
	return tx.last
}

func (tx *Tx) op(op txnproto.Op) txnproto.Row {
	return tx.step(txnproto.StepOp, txnproto.Action{Op: op}).Row
}

// Read returns the row of k; Exists tells whether there is one.
func (tx *Tx) Read(k txnproto.Key) txnproto.Row {
	return tx.op(txnproto.Op{Kind: txnproto.Read, Key: k})
}

// ReadForUpdate is Read with the intention to write.
func (tx *Tx) ReadForUpdate(k txnproto.Key) txnproto.Row {
	return tx.op(txnproto.Op{Kind: txnproto.ReadForUpdate, Key: k})
}

// Write sets the row of k to v.
func (tx *Tx) Write(k txnproto.Key, v txnproto.Value) {
	tx.op(txnproto.Op{Kind: txnproto.Write, Key: k, Value: v})
}

// Add adds v to the row of k in one operation and returns the row as it was.
func (tx *Tx) Add(k txnproto.Key, v txnproto.Value) txnproto.Row {
	return tx.op(txnproto.Op{Kind: txnproto.Modify, Key: k, Value: v})
}

// Insert adds a row; where k has one, the attempt aborts.
func (tx *Tx) Insert(k txnproto.Key, v txnproto.Value) {
	tx.op(txnproto.Op{Kind: txnproto.Insert, Key: k, Value: v})
}

// Delete removes the row of k.
func (tx *Tx) Delete(k txnproto.Key) {
	tx.op(txnproto.Op{Kind: txnproto.Delete, Key: k})
}

// Scan returns the rows with first <= key < end, in key order, those known to be
// absent among them (Exists tells). They are valid until the next operation.
func (tx *Tx) Scan(first, end txnproto.Key) []txnproto.Row {
	return tx.step(txnproto.StepOp, txnproto.Action{Op: txnproto.Op{Kind: txnproto.Scan, Key: first, End: end}}).Rows
}

// Think pauses inside the transaction.
func (tx *Tx) Think(d time.Duration) {
	tx.step(txnproto.StepThink, txnproto.Action{Think: d})
}
