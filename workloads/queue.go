package workloads

import (
	"errors"
	"fmt"
	"slices"

	"interleave/sim/rng"
	"interleave/txnproto"
)

var waitNames = []string{"block", "nowait", "skip-locked"}

// WaitParam is the name of the parameter for what operations do about a locked row. The
// first of its choices is to wait.
const WaitParam = "wait"

// waitParam is what operations do about a row that is locked.
func waitParam(def string) txnproto.Param {
	return txnproto.Param{
		Name: WaitParam, Kind: txnproto.ParamChoice, Default: def, Choices: waitNames,
		Help: "what an operation does about a locked row: block, nowait (the attempt aborts) or skip-locked (it goes on without); protocols that are not listed with wait clauses know only the first",
	}
}

// waitMode is waitParam's value.
func waitMode(p txnproto.Params) txnproto.WaitMode {
	return txnproto.WaitMode(slices.Index(waitNames, p.Choice("wait")))
}

var queueInfo = Info{
	Name: "queue",
	Help: "workers take jobs from a queue, each the first that is open and, with wait=skip-locked, that no other holds; no job is done twice",
	Params: []txnproto.Param{
		keysParam(100, maxOps),
		waitParam("skip-locked"),
		valueBytesParam(100), opThinkParam("0s"),
	},
	Requests: queueRequests,
	make:     newQueue,
}

// queueRequests is enough to take the jobs there are by default, and to find none
// left. A warm-up would take them before they are counted.
const queueRequests = 120

// queue is the workload of jobs: row k is job k, 0 while it is open and then how often
// it was done. A transaction reads jobs for update from the first on until it finds
// one that is open, and does it. One that finds none rolls back.
type queue struct {
	jobs       uint64
	wait       txnproto.WaitMode
	valueBytes int
	think      rng.Dist
}

func newQueue(p txnproto.Params, _ int) (txnproto.Workload, error) {
	w := &queue{jobs: uint64(p.Int("keys")), wait: waitMode(p), valueBytes: p.Int("value-bytes")}
	var err error
	w.think, err = opThink(p)
	return w, err
}

// Classes implements txnproto.Workload.
func (w *queue) Classes() []string { return []string{"take"} }

// InitialKeys implements txnproto.Workload.
func (w *queue) InitialKeys() uint64 { return w.jobs }

// Initial implements txnproto.Workload: every job is open.
func (w *queue) Initial(txnproto.Key) txnproto.Value { return 0 }

// ValueBytes implements txnproto.Workload.
func (w *queue) ValueBytes() int { return w.valueBytes }

// Check implements txnproto.Workload: every job is there and none was done twice.
func (w *queue) Check(final txnproto.View) error {
	for k := range txnproto.Key(w.jobs) {
		switch row := final.Get(k); {
		case !row.Exists:
			return fmt.Errorf("done once: job %d is missing", k)
		case row.Value < 0 || row.Value > 1:
			return fmt.Errorf("done once: job %d was done %d times", k, row.Value)
		}
	}
	var extra error
	final.Inserted(func(txnproto.Row) { extra = errors.New("done once: there is a job that nobody has put there") })
	return extra
}

// Generator implements txnproto.Workload.
func (w *queue) Generator(seed rng.Seed, name string, _ txnproto.ClientID) txnproto.Generator {
	return &queueGenerator{w: w, streams: newStreams(seed, name)}
}

// queueGenerator makes one worker's programs: all alike but for their pauses.
type queueGenerator struct {
	w       *queue
	streams streams
	next    uint64
}

// Next implements txnproto.Generator.
func (g *queueGenerator) Next(recycled txnproto.Program) txnproto.Program {
	p, ok := recycled.(*queueProgram)
	if !ok {
		p = &queueProgram{}
	}
	p.gen, p.n = g, g.next
	g.next++
	return p
}

// queueProgram takes one job.
type queueProgram struct {
	gen   *queueGenerator
	n     uint64
	ops   int
	job   txnproto.Key // asked for
	asked bool
	found bool
	done  bool
	pacer pacer
}

// Class implements txnproto.Program.
func (p *queueProgram) Class() txnproto.ClassID { return 0 }

// Start implements txnproto.Program.
func (p *queueProgram) Start(int, bool) {
	p.ops, p.job, p.asked, p.found, p.done = 0, 0, false, false, false
	p.pacer.start(p.gen.w.think, &p.gen.streams, p.n)
}

// Declare implements txnproto.Declarer: which job it will be is not known, so all.
func (p *queueProgram) Declare(ops []txnproto.Op) []txnproto.Op {
	for k := range txnproto.Key(p.gen.w.jobs) {
		ops = append(ops, txnproto.Op{Kind: txnproto.Write, Key: k})
	}
	return ops
}

// Ahead implements txnproto.Foreteller.
func (p *queueProgram) Ahead(ops []txnproto.Op) []txnproto.Op {
	if p.done {
		return ops
	}
	ops = append(ops, txnproto.Op{Kind: txnproto.Modify, Key: p.job})
	if next := p.job + 1; uint64(next) < p.gen.w.jobs {
		ops = append(ops, txnproto.Op{Kind: txnproto.ReadForUpdate, Key: next})
	}
	return ops
}

// Next implements txnproto.Program.
func (p *queueProgram) Next(last *txnproto.Result, a *txnproto.Action) txnproto.Step {
	w := p.gen.w
	if p.asked && last != nil {
		p.asked = false
		p.found = !last.Row.Skipped && last.Row.Value == 0
		if !p.found {
			p.job++
		}
	}
	switch {
	case p.done:
		return txnproto.StepCommit
	case !p.found && uint64(p.job) == w.jobs:
		return txnproto.StepRollback
	case p.pacer.pause(p.ops, a):
		return txnproto.StepThink
	}
	if p.found {
		a.Op = txnproto.Op{Kind: txnproto.Modify, Key: p.job, Value: 1}
		p.done = true
	} else {
		a.Op = txnproto.Op{Kind: txnproto.ReadForUpdate, Key: p.job, Wait: w.wait}
		p.asked = true
	}
	p.ops++
	return txnproto.StepOp
}
