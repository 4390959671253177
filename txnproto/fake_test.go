package txnproto

import (
	"testing"
	"time"

	"interleave/sim/event"
	"interleave/sim/rng"
)

const fakeOneWay = time.Millisecond

// fake is the nodes as clients see them: it answers every message after a
// service time, as a test's answer function says.
type fake struct {
	tb      testing.TB
	loop    *event.Loop
	clients *Clients
	pool    Pool
	leaders []NodeID // by shard; -1: none
	service time.Duration
	// answer turns a message at its node into the client's answer. It reports
	// false when the node keeps the message: then held has it.
	answer func(m *Msg) bool
	held   []*Msg
	hears  func(m *Msg) // of each message sent; nil: nobody
	sent   []sentMsg
	aborts map[TxnID]int // abort messages that have arrived, by attempt

	hArrive, hServed, hClient, hOracle event.HandlerID

	attempts []AttemptRecord
	requests []RequestRecord
	commits  []CommitRecord
}

// sentMsg is what a test looks at of a message that a client has sent.
type sentMsg struct {
	at      event.Time
	kind    MsgKind
	tx      Info
	opSeq   int32
	shard   ShardID
	key     uint64
	nBranch int
	first   ShardID // of the branches
}

func newFake(tb testing.TB, shards int) *fake {
	f := &fake{tb: tb, loop: event.New(), service: 100 * time.Microsecond, aborts: map[TxnID]int{}}
	for s := range shards {
		f.leaders = append(f.leaders, NodeID(s))
	}
	f.answer = func(m *Msg) bool { grant(m); return true }
	f.hArrive = f.loop.Handle("fake.arrive", func(i uint64) { f.loop.After(f.service, f.hServed, i) })
	f.hServed = f.loop.Handle("fake.served", f.served)
	f.hOracle = f.loop.Handle("fake.oracle", func(i uint64) {
		m := f.pool.At(i)
		m.Kind, m.Tx.TS = MsgTimestampReply, f.clients.NewTS()
		f.loop.After(fakeOneWay, f.hClient, i)
	})
	f.hClient = f.loop.Handle("fake.client", func(i uint64) { f.clients.Deliver(f.pool.At(i)) })
	return f
}

// start makes the clients and sets them going.
func (f *fake) start(w Workload, cfg ClientsConfig) {
	cfg.Observer, cfg.Recorder = f, f
	if cfg.RPCTimeout == 0 {
		cfg.RPCTimeout = 50 * time.Millisecond
	}
	f.clients = NewClients(f.loop, 11, w, f, cfg)
	f.clients.Start()
}

func (f *fake) run(d time.Duration) { f.loop.RunUntil(f.loop.Now().Add(d)) }

// finish closes the clients and checks that nothing is left behind.
func (f *fake) finish() {
	f.tb.Helper()
	f.clients.Close()
	f.loop.Run()
	if f.clients.Busy() {
		f.tb.Error("a client is busy for ever")
	}
	if n := f.pool.Live(); n != 0 {
		f.tb.Errorf("%d messages are still in use", n)
	}
	for i := range f.requests {
		r := &f.requests[i]
		if r.Ending == EndGivenUp {
			continue
		}
		if sum, whole := r.Parts.Sum(), r.End.Sub(r.Arrival); sum != whole {
			f.tb.Errorf("request %d: its parts sum to %v, its latency is %v: %v", r.Request, sum, whole, r.Parts)
		}
		for p, d := range r.Parts {
			if d < 0 {
				f.tb.Errorf("request %d: %v of %v", r.Request, d, Part(p))
			}
		}
	}
}

// grant makes m the answer of a node that has nothing against it.
func grant(m *Msg) {
	switch m.Kind {
	case MsgOp:
		m.Kind, m.Slot = MsgReply, 4
		m.Result.Row = Row{Key: m.Op.Key, Version: 3, Value: 5, Exists: true}
	case MsgCommit, MsgStatus:
		m.Kind, m.Outcome = MsgOutcome, Committed
	default:
		panic("nothing to grant: " + m.Kind.String())
	}
}

// refuse makes m an answer that aborts its attempt.
func refuse(m *Msg, r AbortReason) bool {
	if m.Kind == MsgOp {
		m.Kind = MsgReply
	} else {
		m.Kind, m.Outcome = MsgOutcome, Aborted
	}
	m.Reason = r
	return true
}

func (f *fake) served(i uint64) {
	m := f.pool.At(i)
	if m.Kind == MsgRelease {
		f.pool.Free(m)
		return
	}
	if m.Kind == MsgAbort {
		f.aborts[m.Tx.ID]++
		for j, h := range f.held {
			if h.Tx.ID == m.Tx.ID && h.Shard == m.Shard {
				f.pool.Free(h)
				f.held = append(f.held[:j], f.held[j+1:]...)
				break
			}
		}
		f.pool.Free(m)
		return
	}
	m.Parts[PartCPUService] += f.service
	if !f.answer(m) {
		f.held = append(f.held, m)
		return
	}
	f.reply(m)
}

func (f *fake) reply(m *Msg) { f.loop.After(fakeOneWay, f.hClient, m.Index()) }

// letGo answers what is held, granting it.
func (f *fake) letGo() {
	for _, m := range f.held {
		grant(m)
		f.reply(m)
	}
	f.held = nil
}

func (f *fake) ShardOf(k Key) ShardID { return ShardID(int(k) % len(f.leaders)) }
func (f *fake) Shards() int           { return len(f.leaders) }

func (f *fake) Covers(s ShardID, lo, hi Key) bool {
	for k := lo; k < hi; k++ {
		if f.ShardOf(k) == s {
			return true
		}
	}
	return false
}

func (f *fake) Leader(s ShardID) (NodeID, bool) { return f.leaders[s], f.leaders[s] >= 0 }
func (f *fake) Pool() *Pool                     { return &f.pool }

// AskOracle answers with the counter's next, fakeOneWay each way.
func (f *fake) AskOracle(_ ClientID, m *Msg) {
	f.sent = append(f.sent, sentMsg{at: f.loop.Now(), kind: m.Kind, tx: m.Tx, opSeq: m.OpSeq, shard: m.Shard, key: m.Key})
	f.loop.After(fakeOneWay, f.hOracle, m.Index())
}

func (f *fake) FromClient(_ ClientID, m *Msg) event.Time {
	s := sentMsg{at: f.loop.Now(), kind: m.Kind, tx: m.Tx, opSeq: m.OpSeq, shard: m.Shard, key: m.Key, nBranch: len(m.Branches)}
	if s.nBranch > 0 {
		s.first = m.Branches[0].Shard
	}
	f.sent = append(f.sent, s)
	if f.hears != nil {
		f.hears(m)
	}
	at := f.loop.Now().Add(fakeOneWay)
	f.loop.At(at, f.hArrive, m.Index())
	return at
}

func (f *fake) AttemptEnded(a *AttemptRecord) { f.attempts = append(f.attempts, *a) }
func (f *fake) RequestEnded(r *RequestRecord) { f.requests = append(f.requests, *r) }

func (f *fake) Committed(c *CommitRecord) {
	r := *c
	r.Reads = append([]ReadVersion(nil), c.Reads...)
	r.Scans = append([]ScanRecord(nil), c.Scans...)
	f.commits = append(f.commits, r)
}

// kinds returns what has been sent about an attempt.
func (f *fake) kinds(t TxnID) (ks []MsgKind) {
	for i := range f.sent {
		if f.sent[i].tx.ID == t {
			ks = append(ks, f.sent[i].kind)
		}
	}
	return ks
}

// steps is a workload in which every request of a client is the given steps.
type steps func(c ClientID, n int) []step

// step is one step of a program.
type step struct {
	s     Step
	op    Op
	think time.Duration
}

func readKey(k Key) step         { return step{op: Op{Kind: Read, Key: k}} }
func writeKey(k Key) step        { return step{op: Op{Kind: Write, Key: k, Value: 1}} }
func scanKeys(lo, hi Key) step   { return step{op: Op{Kind: Scan, Key: lo, End: hi}} }
func pause(d time.Duration) step { return step{s: StepThink, think: d} }

var (
	toCommit   = step{s: StepCommit}
	toRollback = step{s: StepRollback}
)

// always is the workload of one program.
func always(ss ...step) steps { return func(ClientID, int) []step { return ss } }

func (steps) Classes() []string   { return []string{"only"} }
func (steps) InitialKeys() uint64 { return 100 }
func (steps) Initial(Key) Value   { return 0 }
func (steps) ValueBytes() int     { return 10 }
func (steps) Check(View) error    { return nil }

func (w steps) Generator(_ rng.Seed, _ string, c ClientID) Generator {
	return &stepGen{w: w, client: c}
}

type stepGen struct {
	w      steps
	client ClientID
	n      int
}

func (g *stepGen) Next(Program) Program {
	g.n++
	return &stepProgram{steps: g.w(g.client, g.n)}
}

type stepProgram struct {
	steps []step
	at    int
	fresh []bool // of each start
	last  []Result
}

func (p *stepProgram) Class() ClassID { return 0 }

func (p *stepProgram) Start(_ int, fresh bool) { p.at, p.fresh = 0, append(p.fresh, fresh) }

func (p *stepProgram) Next(last *Result, a *Action) Step {
	if last != nil {
		p.last = append(p.last, *last)
	}
	s := &p.steps[p.at]
	p.at++
	a.Op, a.Think = s.op, s.think
	return s.s
}
