package workloads

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// maxAccounts bounds a bank: all of it is added up in the end.
const maxAccounts = 10_000_000

const (
	accessForUpdate = "for-update"
	accessRead      = "read"
	orderDrawn      = "drawn"
	orderByKey      = "by-key"
)

var accessParam = txnproto.Param{
	Name: "access", Kind: txnproto.ParamChoice, Default: accessForUpdate, Choices: []string{accessForUpdate, accessRead},
	Help: "how a transfer reads the balances it will write: for-update says so at once, read leaves it to the write",
}

var bankInfo = Info{
	Name: "bank",
	Help: "transfers between accounts; the sum of all balances never changes and no balance is below 0",
	Params: slices.Concat(
		[]txnproto.Param{
			keysParam(1000, maxAccounts),
			{Name: "initial", Kind: txnproto.ParamInt, Default: "1000", Min: 0, Max: 1e12, Help: "balance of every account at the start"},
			{Name: "amount-max", Kind: txnproto.ParamInt, Default: "100", Min: 1, Max: 1e12, Help: "greatest amount of a transfer; the least is 1"},
			accessParam,
			{
				Name: "order", Kind: txnproto.ParamChoice, Default: orderDrawn, Choices: []string{orderDrawn, orderByKey},
				Help: "order in which a transfer touches its accounts: drawn is payer first, by-key prevents deadlocks",
			},
			{Name: "audit", Kind: txnproto.ParamFloat, Default: "0", Min: 0, Max: 1, Help: "share of the transactions that read many balances instead"},
			{Name: "audit-keys", Kind: txnproto.ParamInt, Default: "0", Min: 0, Max: maxOps, Help: "accounts that an audit reads one by one; 0 scans all"},
		},
		keyParams("uniform"),
		[]txnproto.Param{valueBytesParam(100), opThinkParam("0s")},
	),
	make: newBank,
}

var twoTransfersInfo = Info{
	Name: "two-transfers",
	Help: "two clients, two accounts of 5,000 and 3,000: one transfers 500 from the first to the second, the other 300 back; a deadlock by the book",
	Params: []txnproto.Param{
		accessParam,
		{
			Name: "order", Kind: txnproto.ParamChoice, Default: orderDrawn, Choices: []string{orderDrawn, orderByKey},
			Help: "order in which a transfer touches its accounts: drawn is payer first, by-key prevents the deadlock",
		},
		valueBytesParam(100), opThinkParam("2ms"),
	},
	Clients: 2, Requests: 2,
	make: newTwoTransfers,
}

const (
	classTransfer txnproto.ClassID = iota
	classAudit
)

// A transfer's accounts, by their place in its keys, and its operations: two balances
// read, two written.
const (
	payer, payee  = 0, 1
	transferSteps = 4
)

// bank is the workload of transfers. A transfer reads the balances of two
// different accounts, rolls back when the payer has too little, and writes both.
type bank struct {
	accounts   []txnproto.Value // initial balances, if they differ
	keys       uint64
	initial    txnproto.Value
	amountMax  uint64
	readKind   txnproto.OpKind
	byKey      bool
	audit      float64
	auditKeys  int
	chooser    rng.Chooser
	stepper    rng.Stepper
	valueBytes int
	think      rng.Dist
	draws      draws
}

func newBank(p txnproto.Params, _ int) (txnproto.Workload, error) {
	w := &bank{
		keys: uint64(p.Int("keys")), initial: txnproto.Value(p.Int("initial")), amountMax: uint64(p.Int("amount-max")),
		audit: p.Float("audit"), auditKeys: p.Int("audit-keys"),
	}
	if hi, lo := bits.Mul64(w.keys, uint64(w.initial)); hi != 0 || lo > math.MaxInt64 {
		return nil, fmt.Errorf("initial is %d for each of %d accounts: allowed are 0 to %d", w.initial, w.keys, math.MaxInt64/w.keys)
	}
	if w.keys < 2 {
		return nil, fmt.Errorf("keys is %d, allowed are whole numbers from 2: a transfer needs two accounts", w.keys)
	}
	if uint64(w.auditKeys) > w.keys {
		return nil, fmt.Errorf("audit-keys is %d, allowed are 0 to the number of accounts, %d", w.auditKeys, w.keys)
	}
	var err error
	if w.chooser, err = newChooser(p, w.keys); err != nil {
		return nil, err
	}
	w.stepper, _ = w.chooser.(rng.Stepper)
	return w, w.common(p)
}

func newTwoTransfers(p txnproto.Params, _ int) (txnproto.Workload, error) {
	w := &bank{accounts: []txnproto.Value{5000, 3000}, keys: 2}
	return w, w.common(p)
}

// common takes the parameters that the banks share.
func (w *bank) common(p txnproto.Params) (err error) {
	w.readKind = txnproto.ReadForUpdate
	if p.Choice("access") == accessRead {
		w.readKind = txnproto.Read
	}
	w.byKey = p.Choice("order") == orderByKey
	w.valueBytes = p.Int("value-bytes")
	w.think, err = opThink(p)
	return err
}

// Classes implements txnproto.Workload.
func (w *bank) Classes() []string {
	if w.audit == 0 {
		return []string{"transfer"}
	}
	return []string{"transfer", "audit"}
}

// InitialKeys implements txnproto.Workload.
func (w *bank) InitialKeys() uint64 { return w.keys }

// Initial implements txnproto.Workload.
func (w *bank) Initial(k txnproto.Key) txnproto.Value {
	if w.accounts != nil {
		return w.accounts[k]
	}
	return w.initial
}

// ValueBytes implements txnproto.Workload.
func (w *bank) ValueBytes() int { return w.valueBytes }

// Check implements txnproto.Workload: every account is there, none is below 0,
// the balances sum to what they summed to at the start, and there is no other row.
func (w *bank) Check(final txnproto.View) error {
	var sum, want txnproto.Value
	for k := range txnproto.Key(w.keys) {
		row := final.Get(k)
		switch {
		case !row.Exists:
			return fmt.Errorf("conserved total: account %d is missing", k)
		case row.Value < 0:
			return fmt.Errorf("no balance below 0: account %d has %d", k, row.Value)
		}
		sum += row.Value
		want += w.Initial(k)
	}
	if sum != want {
		return fmt.Errorf("conserved total: the balances sum to %d, at the start to %d", sum, want)
	}
	var extra error
	final.Inserted(func(r txnproto.Row) {
		extra = errors.New("conserved total: account " + strconv.FormatUint(uint64(r.Key), 10) + " was opened, and no transaction opens one")
	})
	return extra
}

// Generator implements txnproto.Workload.
func (w *bank) Generator(seed rng.Seed, name string, client txnproto.ClientID) txnproto.Generator {
	return &bankGenerator{w: w, streams: newStreams(seed, name), client: client}
}

// bankGenerator makes one client's programs.
type bankGenerator struct {
	w       *bank
	streams streams
	client  txnproto.ClientID
	next    uint64
}

// Next implements txnproto.Generator.
func (g *bankGenerator) Next(recycled txnproto.Program) txnproto.Program {
	p, ok := recycled.(*bankProgram)
	if !ok {
		p = &bankProgram{}
	}
	p.gen, p.n = g, g.next
	p.fresh = 0
	p.draw()
	g.next++
	return p
}

// bankProgram is one transfer or audit.
type bankProgram struct {
	gen    *bankGenerator
	n      uint64
	fresh  int // the attempt whose accounts these are; 0: those of the first
	class  txnproto.ClassID
	amount txnproto.Value
	// keys are the accounts: of a transfer payer and payee, of an audit all it
	// reads one by one.
	keys []txnproto.Key
	// balance is what a transfer found, by place in keys.
	balance [2]txnproto.Value
	at      int
	asked   int // place in keys of the account just asked for, or -1
	pacer   pacer
}

// draw makes the program anew.
func (p *bankProgram) draw() {
	w := p.gen.w
	if w.accounts != nil { // two transfers: nothing is left to chance
		p.class, p.amount = classTransfer, 500
		p.keys = append(p.keys[:0], 0, 1)
		if p.gen.client%2 == 1 {
			p.amount = 300
			p.keys = append(p.keys[:0], 1, 0)
		}
		return
	}
	s := w.draws.shapeOf(&p.gen.streams, p.n)
	p.class = classTransfer
	if w.audit > 0 && s.Float64() < w.audit {
		p.class = classAudit
	}
	p.amount = 1 + txnproto.Value(s.Uint64n(w.amountMax))
	p.drawKeys()
}

func (p *bankProgram) drawKeys() {
	w := p.gen.w
	if w.stepper != nil {
		w.stepper.Step(p.n)
	}
	n := 2
	if p.class == classAudit {
		n = w.auditKeys
	}
	s := w.draws.keysOf(&p.gen.streams, p.n, p.fresh)
	p.keys = p.keys[:0]
	for range n {
		k, err := w.draws.distinct.Next(w.chooser, s)
		if err != nil {
			panic("workloads: more accounts than the bank has: " + err.Error())
		}
		p.keys = append(p.keys, txnproto.Key(k))
	}
}

// Class implements txnproto.Program.
func (p *bankProgram) Class() txnproto.ClassID { return p.class }

// Start implements txnproto.Program.
func (p *bankProgram) Start(attempt int, fresh bool) {
	keysOf := 0
	if fresh && attempt > 1 {
		keysOf = attempt
	}
	if keysOf != p.fresh && p.gen.w.accounts == nil {
		p.fresh = keysOf
		p.drawKeys()
	}
	p.at, p.asked = 0, -1
	p.balance = [2]txnproto.Value{}
	p.pacer.start(p.gen.w.think, &p.gen.streams, p.n)
}

// Declare implements txnproto.Declarer.
func (p *bankProgram) Declare(ops []txnproto.Op) []txnproto.Op {
	if p.class == classAudit && len(p.keys) == 0 {
		return append(ops, txnproto.Op{Kind: txnproto.Scan, End: txnproto.Key(p.gen.w.keys)})
	}
	kind := txnproto.Write
	if p.class == classAudit {
		kind = txnproto.Read
	}
	for _, k := range p.keys {
		ops = append(ops, txnproto.Op{Kind: kind, Key: k})
	}
	return ops
}

// Ahead implements txnproto.Foreteller.
func (p *bankProgram) Ahead(ops []txnproto.Op) []txnproto.Op {
	if p.class == classTransfer {
		for i := p.at; i < transferSteps; i++ {
			op, _ := p.step(i)
			ops = append(ops, op)
		}
		return ops
	}
	for i := p.at; i < len(p.keys); i++ {
		ops = append(ops, txnproto.Op{Kind: txnproto.Read, Key: p.keys[i]})
	}
	return ops
}

// Next implements txnproto.Program.
func (p *bankProgram) Next(last *txnproto.Result, a *txnproto.Action) txnproto.Step {
	if p.asked >= 0 && last != nil {
		p.balance[p.asked] = last.Row.Value // of an absent row 0
		p.asked = -1
	}
	switch p.class {
	case classTransfer:
		return p.transfer(a)
	case classAudit:
		return p.audit(a)
	default:
		panic("workloads: unknown class of a bank")
	}
}

// transfer reads both accounts, then writes both, in one and the same order.
func (p *bankProgram) transfer(a *txnproto.Action) txnproto.Step {
	switch {
	case p.at == transferSteps:
		return txnproto.StepCommit
	case p.at == 2 && p.balance[payer] < p.amount:
		return txnproto.StepRollback
	case p.pacer.pause(p.at, a):
		return txnproto.StepThink
	}
	op, account := p.step(p.at)
	a.Op = op
	if p.at < 2 {
		p.asked = account
	}
	p.at++
	return txnproto.StepOp
}

// step is operation i of a transfer, and the place in keys of its account. What it writes
// is right once both balances are known.
func (p *bankProgram) step(i int) (op txnproto.Op, account int) {
	account = i % 2
	if p.gen.w.byKey && p.keys[payer] > p.keys[payee] {
		account = 1 - account
	}
	if i < 2 {
		return txnproto.Op{Kind: p.gen.w.readKind, Key: p.keys[account]}, account
	}
	change := p.amount
	if account == payer {
		change = -change
	}
	return txnproto.Op{Kind: txnproto.Write, Key: p.keys[account], Value: p.balance[account] + change}, account
}

// audit scans the whole bank, or reads the accounts drawn.
func (p *bankProgram) audit(a *txnproto.Action) txnproto.Step {
	ops := max(len(p.keys), 1)
	switch {
	case p.at == ops:
		return txnproto.StepCommit
	case p.pacer.pause(p.at, a):
		return txnproto.StepThink
	case len(p.keys) == 0:
		a.Op = txnproto.Op{Kind: txnproto.Scan, Key: 0, End: txnproto.Key(p.gen.w.keys)}
	default:
		a.Op = txnproto.Op{Kind: txnproto.Read, Key: p.keys[p.at]}
	}
	p.at++
	return txnproto.StepOp
}
