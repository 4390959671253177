package workloads

import (
	"fmt"
	"slices"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// maxOps bounds the operations of one transaction.
const maxOps = 1_000_000

const customMix = "custom"

var ycsbInfo = Info{
	Name: "ycsb",
	Help: "operations on single rows in chosen shares: YCSB's core mixes a to f, or a free one, of one or several transaction classes",
	Params: slices.Concat(
		[]txnproto.Param{
			keysParam(10_000, rng.MaxKeys),
			{
				Name: "ops", Kind: txnproto.ParamInt, Default: "10", Min: 1, Max: maxOps,
				Help: "operations of one transaction, each on a key of its own (YCSB itself has one)",
			},
			{
				Name: "mix", Kind: txnproto.ParamChoice, Default: customMix, Choices: []string{customMix, "a", "b", "c", "d", "e", "f"},
				Help: "shares of the operations as in a core mix of YCSB's, or custom: as given, half reads and half updates if none is",
			},
		},
		shareParams(),
		[]txnproto.Param{{
			Name: "classes", Kind: txnproto.ParamString, Default: "",
			Help: "transaction classes NAME:WEIGHT:SETTINGS, separated by semicolons: short:9:ops=4; long:1:ops=40,read=1",
		}},
		keyParams("uniform"),
		[]txnproto.Param{
			{Name: "scan-length-min", Kind: txnproto.ParamInt, Default: "1", Min: 1, Max: 1e6, Help: "least number of keys that a scan covers"},
			{Name: "scan-length-max", Kind: txnproto.ParamInt, Default: "100", Min: 1, Max: 1e6, Help: "greatest number of keys that a scan covers"},
			{Name: "scan-lengths", Kind: txnproto.ParamChoice, Default: "uniform", Choices: []string{"uniform", "zipfian"}, Help: "how scan lengths are distributed; zipfian has the short ones more often"},
			valueBytesParam(1000),
			opThinkParam("0s"),
			waitParam("block"),
			{Name: "undo", Kind: txnproto.ParamFloat, Default: "0", Min: 0, Max: 1, Help: "share of transactions that go back to a savepoint once and do their second half again"},
			{Name: "rollback", Kind: txnproto.ParamFloat, Default: "0", Min: 0, Max: 1, Help: "share of transactions that roll back by their own logic when all is done, instead of committing"},
		},
	),
	make: newYCSB,
}

func shareParams() []txnproto.Param {
	out := make([]txnproto.Param, len(shareKinds))
	for i, k := range shareKinds {
		out[i] = txnproto.Param{
			Name: k.String(), Kind: txnproto.ParamString, Default: "",
			Help: "share of operations, 0 to 1, that " + shareHelp[k],
		}
	}
	return out
}

// ycsb is the workload of independent operations. Rows are numbers: an update
// writes a new random one, a read-modify-write adds 1. A key that is not there
// (deleted, or under `latest` not inserted yet) is read as absent.
//
// A new row's key follows from who inserts it: client c of C inserts the keys
// n+c, n+c+C, n+c+2C, … So no two insert one key, whatever becomes of their
// transactions, and an insert keeps its key over retries.
type ycsb struct {
	mix        mix
	keys       uint64
	clients    uint64
	chooser    rng.Chooser
	stepper    rng.Stepper // the chooser, if its hot keys move
	grower     rng.Grower  // the chooser, if it follows the inserts
	scanMin    uint64
	scans      rng.Chooser
	valueBytes int
	think      rng.Dist
	wait       txnproto.WaitMode
	undo       float64
	rollback   float64
	draws      draws
}

func newYCSB(p txnproto.Params, clients int) (txnproto.Workload, error) {
	w := &ycsb{keys: uint64(p.Int("keys")), clients: uint64(clients), valueBytes: p.Int("value-bytes")}
	w.wait, w.undo, w.rollback = waitMode(p), p.Float("undo"), p.Float("rollback")
	var err error
	if w.mix, err = ycsbMix(p); err != nil {
		return nil, err
	}
	for i := range w.mix.classes {
		if c := &w.mix.classes[i]; uint64(c.opsMax) > w.keys {
			return nil, fmt.Errorf("class %s has up to %d operations, each on a key of its own, and keys is %d: allowed are at least as many keys",
				c.name, c.opsMax, w.keys)
		}
	}
	if w.chooser, err = newChooser(p, w.keys); err != nil {
		return nil, err
	}
	w.stepper, _ = w.chooser.(rng.Stepper)
	w.grower, _ = w.chooser.(rng.Grower)
	if w.think, err = opThink(p); err != nil {
		return nil, err
	}
	least, most := p.Int("scan-length-min"), p.Int("scan-length-max")
	if least > most {
		return nil, fmt.Errorf("scan-length-min is %d, allowed are 1 to scan-length-max, which is %d", least, most)
	}
	w.scanMin = uint64(least)
	theta := map[string]float64{"uniform": 0, "zipfian": 0.99}[p.Choice("scan-lengths")]
	w.scans = rng.NewZipf(uint64(most-least+1), theta)
	return w, nil
}

// ycsbMix makes the classes from the parameters mix, ops, the shares and classes.
func ycsbMix(p txnproto.Params) (mix, error) {
	given := map[string]string{}
	for _, k := range shareKinds {
		if text := p.String(k.String()); text != "" {
			given[k.String()] = text
		}
	}
	letter := p.Choice("mix")
	base := class{name: "all", opsMin: p.Int("ops"), opsMax: p.Int("ops")}
	var err error
	switch {
	case letter != customMix && len(given) > 0:
		return mix{}, fmt.Errorf("mix is %s, which sets the shares of the operations: allowed with them is %s", letter, customMix)
	case letter != customMix:
		base, err = parseSettings(coreMixes[letter].shares, base)
	case len(given) == 0:
		base, err = parseSettings("read=0.5,update=0.5", base)
	default:
		var s shares
		s, err = newShares(given)
		base = newClass(base.name, base.opsMin, base.opsMax, s)
	}
	if err != nil {
		return mix{}, err
	}
	if text := p.String("classes"); text != "" {
		return parseClasses(text, base)
	}
	m := mix{}
	m.add(base, 1)
	return m, nil
}

// CoreDistribution returns the distribution with which YCSB defines its core
// mix of that letter, or "" for another mix.
func CoreDistribution(letter string) string { return coreMixes[letter].distribution }

// Classes implements txnproto.Workload.
func (w *ycsb) Classes() []string {
	names := make([]string, len(w.mix.classes))
	for i := range w.mix.classes {
		names[i] = w.mix.classes[i].name
	}
	return names
}

// InitialKeys implements txnproto.Workload.
func (w *ycsb) InitialKeys() uint64 { return w.keys }

// Initial implements txnproto.Workload: every row begins as 0.
func (w *ycsb) Initial(txnproto.Key) txnproto.Value { return 0 }

// ValueBytes implements txnproto.Workload.
func (w *ycsb) ValueBytes() int { return w.valueBytes }

// Check implements txnproto.Workload. Independent operations keep no invariant
// over rows; what can be held of one is that its key was the workload's to write,
// and that without deletes no initial row is missing. The latter is looked at
// where the database is small.
func (w *ycsb) Check(final txnproto.View) error {
	var bad error
	final.Inserted(func(r txnproto.Row) {
		if bad == nil && !w.mix.has(txnproto.Insert) {
			bad = fmt.Errorf("key %d is there, and no transaction inserts", r.Key)
		}
	})
	final.Deleted(func(k txnproto.Key) {
		if bad == nil && !w.mix.has(txnproto.Delete) {
			bad = fmt.Errorf("key %d is missing, and no transaction deletes", k)
		}
	})
	return bad
}

// Generator implements txnproto.Workload.
func (w *ycsb) Generator(seed rng.Seed, name string, client txnproto.ClientID) txnproto.Generator {
	return &ycsbGenerator{w: w, streams: newStreams(seed, name), client: uint64(client)}
}

// ycsbGenerator makes one client's programs.
type ycsbGenerator struct {
	w        *ycsb
	streams  streams
	client   uint64
	next     uint64 // number of the coming program
	inserted uint64 // rows inserted by the programs before it
}

// Next implements txnproto.Generator.
func (g *ycsbGenerator) Next(recycled txnproto.Program) txnproto.Program {
	p, ok := recycled.(*ycsbProgram)
	if !ok {
		p = &ycsbProgram{}
	}
	p.gen, p.n, p.inserted = g, g.next, g.inserted
	g.inserted += p.draw()
	g.next++
	return p
}

// ycsbProgram is one request: its operations, drawn beforehand.
type ycsbProgram struct {
	gen       *ycsbGenerator
	n         uint64
	inserted  uint64 // rows that the generator's programs before this one insert
	fresh     int    // the attempt whose keys these are; 0: those of the first
	at        int
	class     txnproto.ClassID
	ops       []txnproto.Op
	undoes    bool  // goes back to its middle once
	rollsBack bool  // in the end, instead of committing
	stage     uint8 // of going back: how many of its two steps are done
	pacer     pacer
}

// draw makes the program's operations anew and returns how many are inserts.
func (p *ycsbProgram) draw() (inserts uint64) {
	w := p.gen.w
	s := w.draws.shapeOf(&p.gen.streams, p.n)
	p.class = w.mix.pick(s)
	c := &w.mix.classes[p.class]
	n := c.length(s)
	p.ops = slices.Grow(p.ops[:0], n)[:n]
	for i := range p.ops {
		op := &p.ops[i]
		*op = txnproto.Op{Kind: c.kind(s.Uint64()), Wait: w.wait}
		switch op.Kind {
		case txnproto.Read, txnproto.ReadForUpdate, txnproto.Delete:
		case txnproto.Write:
			op.Value = txnproto.Value(s.Uint64() >> 1)
		case txnproto.Modify:
			op.Value = 1
		case txnproto.Insert:
			op.Value = txnproto.Value(s.Uint64() >> 1)
			op.Key = txnproto.Key(w.keys + (p.inserted+inserts)*w.clients + p.gen.client)
			inserts++
		case txnproto.Scan:
			op.End = txnproto.Key(w.scanMin + w.scans.Next(s)) // the length, until the key is drawn
		case txnproto.NumOpKinds:
			panic("workloads: no such operation")
		default:
			panic("workloads: unknown operation")
		}
	}
	p.undoes = w.undo > 0 && s.Float64() < w.undo
	p.rollsBack = w.rollback > 0 && s.Float64() < w.rollback
	p.fresh = 0
	p.drawKeys()
	return inserts
}

// drawKeys draws the keys of all operations but the inserts, which keep theirs.
func (p *ycsbProgram) drawKeys() {
	w := p.gen.w
	if w.stepper != nil {
		w.stepper.Step(p.n)
	}
	if w.grower != nil {
		// The newest row is the last that clients as fast as this one have
		// inserted. What others really have would depend on the protocol.
		w.grower.SetN(min(w.keys+p.inserted*w.clients, rng.MaxKeys))
	}
	s := w.draws.keysOf(&p.gen.streams, p.n, p.fresh)
	for i := range p.ops {
		op := &p.ops[i]
		if op.Kind == txnproto.Insert {
			continue
		}
		k, err := w.draws.distinct.Next(w.chooser, s)
		if err != nil {
			panic("workloads: a transaction longer than the database has keys: " + err.Error())
		}
		if op.Kind == txnproto.Scan {
			op.End = op.End - op.Key + txnproto.Key(k)
		}
		op.Key = txnproto.Key(k)
	}
}

// Class implements txnproto.Program.
func (p *ycsbProgram) Class() txnproto.ClassID { return p.class }

// Start implements txnproto.Program. A retry with fresh keys keeps its class,
// its length and what it does to the keys.
func (p *ycsbProgram) Start(attempt int, fresh bool) {
	keysOf := 0
	if fresh && attempt > 1 {
		keysOf = attempt
	}
	if keysOf != p.fresh {
		p.fresh = keysOf
		p.drawKeys()
	}
	p.at, p.stage = 0, 0
	p.pacer.start(p.gen.w.think, &p.gen.streams, p.n)
}

// Declare implements txnproto.Declarer.
func (p *ycsbProgram) Declare(ops []txnproto.Op) []txnproto.Op { return append(ops, p.ops...) }

// Ahead implements txnproto.Foreteller.
func (p *ycsbProgram) Ahead(ops []txnproto.Op) []txnproto.Op {
	ops = append(ops, p.ops[p.at:]...)
	if p.undoes && p.stage < 2 {
		ops = append(ops, txnproto.Op{Kind: txnproto.RollbackTo})
	}
	return ops
}

// Next implements txnproto.Program.
func (p *ycsbProgram) Next(_ *txnproto.Result, a *txnproto.Action) txnproto.Step {
	const middle = 1 // the savepoint
	switch {
	case p.undoes && p.stage == 0 && p.at == len(p.ops)/2:
		p.stage = 1
		a.Savepoint = middle
		return txnproto.StepSavepoint
	case p.undoes && p.stage == 1 && p.at == len(p.ops):
		p.stage, p.at = 2, len(p.ops)/2
		a.Savepoint = middle
		return txnproto.StepRollbackTo
	case p.at == len(p.ops) && p.rollsBack:
		return txnproto.StepRollback
	case p.at == len(p.ops):
		return txnproto.StepCommit
	case p.pacer.pause(p.at, a):
		return txnproto.StepThink
	}
	a.Op = p.ops[p.at]
	p.at++
	return txnproto.StepOp
}
