package nodes

import (
	"fmt"
	"testing"
	"time"

	"interleave/sim/event"
	"interleave/sim/netsim"
	"interleave/sim/rng"
	"interleave/sim/station"
	"interleave/txnproto"
)

// world is a whole run in a test: clients, network, nodes and replication.
type world struct {
	tb      testing.TB
	loop    *event.Loop
	net     *netsim.Net
	cluster *Cluster
	clients *txnproto.Clients
	repl    Replication
	script  *scripted // the replication, when it is the scripted one
	bank    *bank
	seen    *ledger
}

// setup is what a world is made of. The zero value of a field takes a default.
type setup struct {
	seed     uint64
	shards   int
	replicas int
	machines int
	accounts int
	audits   uint64 // one request in this many is an audit
	scripted bool
	protocol *txnproto.Protocol
	workload txnproto.Workload
	clients  txnproto.ClientsConfig
	sync     rng.Dist
	latency  time.Duration // 0: the preset lan
	noCPU    bool          // processors take no time
	cpu      time.Duration // > 0: they take this for each operation and commit
}

const testRPCTimeout = 50 * time.Millisecond

func newWorld(tb testing.TB, s setup) *world {
	tb.Helper()
	s.defaults()
	w := &world{tb: tb, loop: event.New(), seen: newLedger(tb)}
	if s.workload == nil {
		w.bank = &bank{accounts: uint64(s.accounts), audits: s.audits, sums: map[txnproto.ClientID]txnproto.Value{}}
		w.seen.bank = w.bank
		s.workload = w.bank
	}
	seed := rng.Seed(s.seed)
	nc, err := netsim.Preset("lan", s.machines)
	if err != nil {
		tb.Fatal(err)
	}
	if s.latency > 0 {
		nc.Latency[0][0], nc.Loopback, nc.BytesPerSecond = rng.Constant(s.latency), rng.Constant(s.latency), 0
	}
	nc.Kinds = txnproto.MsgKindNames[:]
	if w.net, err = netsim.New(w.loop, seed, nc); err != nil {
		tb.Fatal(err)
	}
	place, err := NewPlacement(PlacementNames[0], s.shards, s.workload.InitialKeys())
	if err != nil {
		tb.Fatal(err)
	}
	service := rng.Exponential(20 * time.Microsecond)
	if s.noCPU || s.cpu > 0 {
		service = rng.Constant(s.cpu)
	}
	w.cluster = NewCluster(Config{
		Loop: w.loop, Net: w.net, Seed: seed, Workload: s.workload, Placement: place,
		Shards: s.shards, Replicas: s.replicas, Machines: s.machines, Protocol: s.protocol, OneTable: !s.scripted,
		CPUs: 4, CPUOp: service, CPURow: time.Microsecond, CPUCommit: service, Disk: station.DiskConfig{Sync: s.sync},
		ClientSite: func(txnproto.ClientID) netsim.Site { return nc.Client(0) },
		RPCTimeout: testRPCTimeout, Installs: w.seen,
		NewestTS: func() txnproto.Timestamp { return txnproto.Timestamp(w.clients.Txns()) },
	})
	if s.scripted {
		w.script = newScripted(w.loop, w.cluster, s.shards, s.machines, seed)
		w.repl = w.script
	} else {
		w.repl = NewQuorum(QuorumConfig{
			Loop: w.loop, Net: w.net, Seed: seed, Shards: s.shards, Replicas: s.replicas, Machines: s.machines,
			ValueBytes: s.workload.ValueBytes(), Disk: w.cluster.Disk, Host: w.cluster, Release: w.cluster.Release,
		})
	}
	w.cluster.SetReplication(w.repl)
	s.clients.Observer, s.clients.Recorder = w.seen, w.seen
	s.clients.RPCTimeout = testRPCTimeout
	w.clients = txnproto.NewClients(w.loop, seed, s.workload, w.cluster, s.clients)
	w.cluster.SetClients(w.clients)
	if err := w.repl.Start(); err != nil {
		tb.Fatal(err)
	}
	return w
}

func (s *setup) defaults() {
	if s.shards == 0 {
		s.shards = 3
	}
	if s.machines == 0 {
		s.machines = 3
	}
	if s.replicas == 0 {
		s.replicas = 3
	}
	if s.accounts == 0 {
		s.accounts = 60
	}
	if s.protocol == nil {
		s.protocol = &txnproto.Protocol{Name: "test-2pl", New: newTestLocks}
	}
	if s.clients.Clients == 0 {
		s.clients.Clients = 12
	}
	if s.sync.IsZero() {
		s.sync = rng.Constant(100 * time.Microsecond)
	}
	if s.clients.Retry == (txnproto.Retry{}) {
		s.clients.Retry = txnproto.Retry{
			Policy: txnproto.RetryExponential, Base: time.Millisecond, Max: 20 * time.Millisecond, Jitter: 0.5,
		}
	}
}

// finish closes the clients, lets what is under way end, settles the replicas
// and checks what must hold of every run.
func (w *world) finish() {
	w.tb.Helper()
	w.clients.Close()
	w.loop.RunUntil(w.loop.Now().Add(5 * time.Second))
	if w.clients.Busy() {
		w.tb.Fatal("a client still waits for the outcome of its commit")
	}
	if !w.cluster.Quiet() {
		w.tb.Fatalf("not quiet: %s", w.cluster.Unrest())
	}
	settled := false
	w.repl.Settle(func() { settled = true })
	w.loop.Run()
	if !settled {
		w.tb.Fatal("the replicas have not settled")
	}
	if n := w.cluster.Pool().Live(); n != 0 {
		w.tb.Errorf("%d messages are still in use", n)
	}
	if n := w.loop.Len(); n != 0 {
		w.tb.Errorf("%d events are still pending", n)
	}
	if err := w.cluster.CompareReplicas(); err != nil {
		w.tb.Error(err)
	}
	if w.bank != nil {
		if err := w.bank.Check(w.cluster.View()); err != nil {
			w.tb.Error(err)
		}
	}
	w.seen.check()
}

// ledger is an observer, a recorder of commits and of installs, and the judge of both.
type ledger struct {
	tb        testing.TB
	committed map[txnproto.TxnID]int // rows written, -1: not known
	requests  map[txnproto.RequestID]txnproto.Ending
	byRequest map[txnproto.RequestID]txnproto.TxnID // committed
	installed map[txnproto.TxnID]int
	writers   map[txnproto.Key][]txnproto.TxnID // by version - 1
	reasons   [txnproto.NumReasons]int
	attempts  int
	audits    int   // committed
	bank      *bank // whose audits are checked; nil: no bank
	light     bool  // count only: for measuring
	onAttempt func(*txnproto.AttemptRecord)
	onRequest func(*txnproto.RequestRecord)
	ended     int
}

func newLedger(tb testing.TB) *ledger {
	return &ledger{
		tb: tb, committed: map[txnproto.TxnID]int{}, requests: map[txnproto.RequestID]txnproto.Ending{},
		byRequest: map[txnproto.RequestID]txnproto.TxnID{}, installed: map[txnproto.TxnID]int{},
		writers: map[txnproto.Key][]txnproto.TxnID{},
	}
}

func (l *ledger) AttemptEnded(a *txnproto.AttemptRecord) {
	l.attempts++
	if a.Outcome == txnproto.Aborted {
		l.reasons[a.Reason]++
	}
	if l.onAttempt != nil {
		l.onAttempt(a)
	}
}

func (l *ledger) RequestEnded(r *txnproto.RequestRecord) {
	l.ended++
	if l.light {
		return
	}
	if _, ok := l.requests[r.Request]; ok {
		l.tb.Errorf("request %d ended twice", r.Request)
	}
	l.requests[r.Request] = r.Ending
	if r.Ending != txnproto.EndGivenUp {
		if sum, whole := r.Parts.Sum(), r.End.Sub(r.Arrival); sum != whole {
			l.tb.Errorf("request %d: parts sum to %v, its latency is %v: %v", r.Request, sum, whole, r.Parts)
		}
	}
	for p, d := range r.Parts {
		if d < 0 {
			l.tb.Errorf("request %d: %v of %v", r.Request, d, txnproto.Part(p))
		}
	}
	if l.onRequest != nil {
		l.onRequest(r)
	}
}

func (l *ledger) Committed(c *txnproto.CommitRecord) {
	if l.light {
		return
	}
	if other, ok := l.byRequest[c.Request]; ok {
		l.tb.Errorf("request %d committed as %v and as %v", c.Request, other, c.Txn)
	}
	l.byRequest[c.Request] = c.Txn
	if l.bank != nil && c.Class == classAudit {
		l.audits++
		if sum := l.bank.sums[c.Client]; sum != l.bank.total() {
			l.tb.Errorf("the audit %v has read balances that sum to %d, want %d", c.Txn, sum, l.bank.total())
		}
	}
	l.committed[c.Txn] = c.Wrote
}

// TakenBack is not called: nothing here exposes writes.
func (l *ledger) TakenBack(txnproto.ShardID, txnproto.TxnID, []txnproto.Put) {
	panic("nodes: writes were taken back")
}

func (l *ledger) Installed(_ txnproto.ShardID, _ uint64, txn txnproto.TxnID, puts []txnproto.Put) {
	if l.light {
		return
	}
	l.installed[txn] += len(puts)
	for i := range puts {
		p := &puts[i]
		l.writers[p.Key] = append(l.writers[p.Key], txn)
		if n := len(l.writers[p.Key]); txnproto.Version(n) != p.Version {
			l.tb.Errorf("%v installs version %d of key %d as its %dth", txn, p.Version, p.Key, n)
		}
	}
}

// check compares what clients heard with what was installed: every commit that
// a client heard of is there whole, and nothing is there that no client asked to
// commit. Both sides must have come to rest.
func (l *ledger) check() {
	l.tb.Helper()
	for txn, wrote := range l.committed {
		if n := l.installed[txn]; wrote >= 0 && n != wrote {
			l.tb.Errorf("%v committed %d writes, %d are installed", txn, wrote, n)
		}
	}
	for txn, n := range l.installed {
		if _, ok := l.committed[txn]; !ok {
			l.tb.Errorf("%v installed %d writes, its client has not heard of its commit", txn, n)
		}
	}
}

// bank is transfers between accounts of 1000 each and, now and then, an audit
// that reads them all.
type bank struct {
	accounts uint64
	think    time.Duration
	audits   uint64                               // one request in this many is an audit; 0: none
	sums     map[txnproto.ClientID]txnproto.Value // what a client's audit has read, when it asks to commit
}

const (
	classTransfer txnproto.ClassID = iota
	classAudit
)

func (b *bank) Classes() []string                   { return []string{"transfer", "audit"} }
func (b *bank) InitialKeys() uint64                 { return b.accounts }
func (b *bank) Initial(txnproto.Key) txnproto.Value { return 1000 }
func (b *bank) ValueBytes() int                     { return 100 }
func (b *bank) total() txnproto.Value               { return txnproto.Value(1000 * b.accounts) }

func (b *bank) Generator(seed rng.Seed, name string, c txnproto.ClientID) txnproto.Generator {
	return &bankGen{b, c, seed.Stream(name)}
}

func (b *bank) Check(v txnproto.View) error {
	var sum txnproto.Value
	for k := range b.accounts {
		sum += v.Get(txnproto.Key(k)).Value
	}
	if sum != b.total() {
		return fmt.Errorf("the balances sum to %d, want %d", sum, b.total())
	}
	return nil
}

type bankGen struct {
	b      *bank
	client txnproto.ClientID
	s      *rng.Stream
}

func (g *bankGen) Next(old txnproto.Program) txnproto.Program {
	p, _ := old.(*transfer)
	if p == nil {
		p = &transfer{b: g.b, client: g.client}
	}
	n := g.b.accounts
	p.from = txnproto.Key(g.s.Uint64n(n))
	p.to = txnproto.Key((uint64(p.from) + 1 + g.s.Uint64n(n-1)) % n)
	p.amount = txnproto.Value(1 + g.s.Uint64n(50))
	p.class = classTransfer
	if g.b.audits > 0 && g.s.Uint64n(g.b.audits) == 0 {
		p.class = classAudit
	}
	return p
}

// transfer moves an amount from one account to another by two Modify steps, or
// reads all accounts.
type transfer struct {
	b        *bank
	client   txnproto.ClientID
	class    txnproto.ClassID
	from, to txnproto.Key
	amount   txnproto.Value
	step     int
	sum      txnproto.Value
}

func (t *transfer) Class() txnproto.ClassID { return t.class }

func (t *transfer) Start(int, bool) { t.step, t.sum = 0, 0 }

func (t *transfer) Next(last *txnproto.Result, a *txnproto.Action) txnproto.Step {
	t.step++
	if t.class == classAudit {
		return t.audit(last, a)
	}
	switch t.step {
	case 1:
		a.Op = txnproto.Op{Kind: txnproto.Modify, Key: t.from, Value: -t.amount}
		return txnproto.StepOp
	case 2:
		if t.b.think > 0 {
			a.Think = t.b.think
			return txnproto.StepThink
		}
		t.step++
		fallthrough
	case 3:
		a.Op = txnproto.Op{Kind: txnproto.Modify, Key: t.to, Value: t.amount}
		return txnproto.StepOp
	default:
		return txnproto.StepCommit
	}
}

func (t *transfer) audit(last *txnproto.Result, a *txnproto.Action) txnproto.Step {
	if last != nil {
		t.sum += last.Row.Value
	}
	if uint64(t.step) > t.b.accounts {
		t.b.sums[t.client] = t.sum
		return txnproto.StepCommit
	}
	a.Op = txnproto.Op{Kind: txnproto.Read, Key: txnproto.Key(t.step - 1)}
	return txnproto.StepOp
}
