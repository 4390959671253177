package txnproto

import (
	"sort"
	"time"

	"interleave/sim/event"
	"interleave/sim/rng"
)

// ReadVersion is a row as a committed attempt read it.
type ReadVersion struct {
	Key     Key
	Version Version
}

// ScanRecord is one shard's part of a scan: of the shard's keys in [Lo, Hi),
// those Seen had the given versions and every other one version 0.
type ScanRecord struct {
	Lo, Hi Key
	Shard  ShardID
	Seen   []ReadVersion
}

// CommitRecord is what a committed attempt read. What it wrote is known where
// the versions are installed.
type CommitRecord struct {
	Txn        TxnID
	Request    RequestID
	Client     ClientID
	Class      ClassID
	Begin, End event.Time
	Wrote      int // rows written on all shards; -1: not known
	Reads      []ReadVersion
	Scans      []ScanRecord
}

// Recorder keeps the history that isolation is judged by. The record is valid during the call.
type Recorder interface {
	Committed(c *CommitRecord)
}

// Cluster is what the clients need of the nodes.
type Cluster interface {
	// ShardOf is the shard that holds k; Shards how many there are.
	ShardOf(k Key) ShardID
	Shards() int
	// Covers reports whether shard may hold keys of [lo, hi).
	Covers(shard ShardID, lo, hi Key) bool
	// Leader is the node that leads shard, as a client would find out.
	Leader(shard ShardID) (NodeID, bool)
	// Pool is where messages come from.
	Pool() *Pool
	// FromClient sends m to m.Node and returns when it arrives. When the node is
	// down or goes down before it answers, Clients.NodeDown tells.
	FromClient(c ClientID, m *Msg) event.Time
	// AskOracle sends m to the timestamp oracle, which answers with Tx.TS set.
	AskOracle(c ClientID, m *Msg)
}

// ClientsConfig is how the clients behave.
type ClientsConfig struct {
	Clients    int      // closed loop: how many clients; open loop: how many requests at once
	Think      rng.Dist // closed loop: between a client's requests
	Rate       float64  // open loop: arrivals per second; 0: closed loop
	MaxOpen    int      // open loop: requests open or queued beyond which arrivals are turned away; 0: no limit
	MPL        int      // requests that may be executing at once; 0: no limit
	Retry      Retry
	RPCTimeout time.Duration // how long a client waits for a node that is down
	PerClient  int           // requests after which a client stops; 0: none
	Declares   bool          // lock what programs declare before they run; see Protocol.Declares
	Sequenced  bool          // take a place in a global order before that; see Protocol.Sequenced
	ReadOnly   bool          // find out which programs only read; see Protocol.TellReadOnly
	Foretell   bool          // ask programs what may still come, and tell of lock points; see Protocol.Exposes
	Stamping   Stamping
	Observer   Observer
	Recorder   Recorder // nil: none
}

// Clients are the clients of a run: a closed loop of clients with think time,
// or an open loop of Poisson arrivals served by sessions.
type Clients struct {
	loop       *event.Loop
	cluster    Cluster
	pool       *Pool // the cluster's
	cfg        ClientsConfig
	seed       rng.Seed
	sessions   []*session
	backoffKey uint64

	hThought, hRetry, hStart, hArrive, hNoLeader, hSendLate, hTimeout event.HandlerID

	requests   uint64    // opened so far
	txns       uint64    // attempts begun so far, and timestamps drawn from the counter beside
	newest     Timestamp // drawn from a clock
	ended      uint64    // requests ended so far
	open       int
	running    int        // admitted requests
	admission  []*session // FIFO, by admissionHead
	admHead    int
	thinkKey   uint64
	arrivals   *rng.Stream
	gap        rng.Dist
	backlog    []event.Time // open loop: arrivals that no session is free for, by backHead
	backHead   int
	idle       []ClientID // open loop: sessions without a request, last in first out
	turnedAway uint64
	closing    bool
	latencySum time.Duration
	latencyN   int64

	// OnRequestEnd, when set, is called after each request's end.
	OnRequestEnd func(ended uint64)
	// OnTurnedAway, when set, is called for each arrival that is refused.
	OnTurnedAway func()

	scratch Result
	attempt AttemptRecord
	request RequestRecord
	commit  CommitRecord

	declared []Op // scratch
}

// NewClients makes the clients of workload w. Call Start to set them going.
func NewClients(loop *event.Loop, seed rng.Seed, w Workload, cluster Cluster, cfg ClientsConfig) *Clients {
	c := &Clients{loop: loop, cluster: cluster, pool: cluster.Pool(), cfg: cfg, seed: seed}
	c.backoffKey = seed.Key("clients/backoff")
	c.thinkKey = seed.Key("clients/think")
	c.hThought = loop.Handle("client.thought", func(i uint64) { c.sessions[i].advance(nil) })
	c.hRetry = loop.Handle("client.retry", func(i uint64) {
		if !c.closing {
			c.sessions[i].startAttempt()
		}
	})
	c.hStart = loop.Handle("client.start", c.start)
	c.hArrive = loop.Handle("client.arrive", c.arrive)
	c.hNoLeader = loop.Handle("client.no-leader", func(i uint64) { c.sessions[i].noLeader() })
	c.hSendLate = loop.Handle("client.send-late", func(i uint64) {
		m := c.pool.At(i)
		cluster.FromClient(m.Tx.Client, m)
	})
	c.hTimeout = loop.Handle("client.timeout", c.timedOut)
	c.sessions = make([]*session, cfg.Clients)
	backing := make([]session, cfg.Clients)
	open := cfg.Rate > 0
	var shared Generator
	if open {
		c.arrivals = seed.Stream("arrivals/times")
		c.gap = rng.Exponential(time.Duration(1e9 / cfg.Rate))
		shared = w.Generator(seed, "arrivals", 0)
	}
	for i := range c.sessions {
		s := &backing[i]
		s.c, s.id, s.waitNode = c, ClientID(i), -1
		if open {
			s.gen = shared
		} else {
			s.gen = w.Generator(seed, "client/"+itoa(i), ClientID(i))
		}
		c.sessions[i] = s
	}
	return c
}

// Len is how many sessions there are.
func (c *Clients) Len() int { return len(c.sessions) }

// startSpread is over how long a closed loop's clients begin, so that they do
// not march in step from the first nanosecond.
const startSpread = time.Millisecond

// Start sets the clients going.
func (c *Clients) Start() {
	if c.cfg.Rate > 0 {
		for i := len(c.sessions) - 1; i >= 0; i-- {
			c.idle = append(c.idle, ClientID(i))
		}
		c.loop.After(c.gap.Draw(c.arrivals), c.hArrive, 0)
		return
	}
	key := c.seed.Key("clients/start")
	for i := range c.sessions {
		at := time.Duration(rng.Hash(key, uint64(i)) % uint64(startSpread))
		// A client begins by thinking, or all of them would have a request open at once.
		at += c.cfg.Think.At(rng.Hash(c.thinkKey, uint64(i)<<40))
		c.loop.After(at, c.hStart, uint64(i))
	}
}

// StartClient sets one client of a closed loop going now. It is for whoever decides
// the order of arrivals, instead of Start.
func (c *Clients) StartClient(id ClientID) { c.start(uint64(id)) }

func (c *Clients) start(i uint64) {
	done := c.cfg.PerClient > 0 && c.sessions[i].reqSeq >= uint64(c.cfg.PerClient)
	if !c.closing && !done {
		c.sessions[i].startRequest(c.loop.Now())
	}
}

// arrive is one arrival of the open loop.
func (c *Clients) arrive(uint64) {
	if c.closing {
		return
	}
	now := c.loop.Now()
	c.loop.After(c.gap.Draw(c.arrivals), c.hArrive, 0)
	if c.cfg.MaxOpen > 0 && c.open+len(c.backlog)-c.backHead >= c.cfg.MaxOpen {
		c.turnedAway++
		if c.OnTurnedAway != nil {
			c.OnTurnedAway()
		}
		return
	}
	if n := len(c.idle); n > 0 {
		i := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.sessions[i].startRequest(now)
		return
	}
	c.backlog = append(c.backlog, now)
}

// admit lets s execute, now or when the multiprogramming limit allows.
func (c *Clients) admit(s *session) {
	if c.cfg.MPL > 0 && c.running >= c.cfg.MPL {
		c.admission = append(c.admission, s)
		return
	}
	c.running++
	s.startAttempt()
}

// leave is called when s has ended a request.
func (c *Clients) leave(s *session) {
	c.running--
	if c.admHead < len(c.admission) && !c.closing {
		next := c.admission[c.admHead]
		c.admHead++
		if c.admHead > 1024 && 2*c.admHead > len(c.admission) {
			c.admission = append(c.admission[:0], c.admission[c.admHead:]...)
			c.admHead = 0
		}
		c.running++
		// As an event of its own: requests that end without any event would nest.
		c.loop.After(0, c.hRetry, uint64(next.id))
	}
	if c.closing {
		return
	}
	if c.cfg.Rate == 0 {
		u := rng.Hash(c.thinkKey, uint64(s.id)<<40|s.reqSeq)
		c.loop.After(c.cfg.Think.At(u), c.hStart, uint64(s.id))
		return
	}
	if c.backHead < len(c.backlog) {
		at := c.backlog[c.backHead]
		c.backHead++
		if c.backHead > 1024 && 2*c.backHead > len(c.backlog) {
			c.backlog = append(c.backlog[:0], c.backlog[c.backHead:]...)
			c.backHead = 0
		}
		s.startRequest(at)
		return
	}
	c.idle = append(c.idle, s.id)
}

func (c *Clients) requestEnded(r *RequestRecord) {
	c.ended++
	if r.Ending == EndCommitted {
		c.latencySum += r.End.Sub(r.Arrival)
		c.latencyN++
	}
	c.cfg.Observer.RequestEnded(r)
	if c.OnRequestEnd != nil {
		c.OnRequestEnd(c.ended)
	}
}

func (c *Clients) meanLatency() time.Duration {
	if c.latencyN == 0 {
		return 0
	}
	return c.latencySum / time.Duration(c.latencyN)
}

// Deliver takes a message that has reached its client, and frees it.
func (c *Clients) Deliver(m *Msg) {
	s := c.sessions[m.Tx.Client]
	switch m.Kind {
	case MsgReply:
		s.reply(m)
	case MsgOutcome:
		s.outcome(m)
	case MsgKilled:
		s.killed(m)
	case MsgTimestampReply:
		s.stamped(m)
	default:
		panic("txnproto: message to a client of kind " + m.Kind.String())
	}
	c.pool.Free(m)
}

// NodeDown says that node answers nothing that has been asked of it so far.
func (c *Clients) NodeDown(node NodeID) {
	for _, s := range c.sessions {
		if s.waitNode == node {
			s.expectTimeout()
		}
	}
}

// Unanswered says that m, a client's question or the answer to it, does not
// arrive. If the client still waits for that, it waits for its timeout and then
// goes on without. The caller keeps m.
func (c *Clients) Unanswered(m *Msg) {
	s := c.sessions[m.Tx.Client]
	if s.waitNode >= 0 && s.tx.ID == m.Tx.ID && s.opSeq == m.OpSeq {
		s.expectTimeout()
	}
}

// expectTimeout lets what the session waits for time out.
func (s *session) expectTimeout() {
	c := s.c
	at := max(s.sentAt.Add(c.cfg.RPCTimeout), c.loop.Now())
	c.loop.At(at, c.hTimeout, uint64(s.id)<<32|uint64(uint32(s.opSeq))&0xffff<<16|s.tx16())
}

// tx16 marks the attempt in a timeout's argument.
func (s *session) tx16() uint64 { return uint64(s.tx.ID) & 0xffff }

func (c *Clients) timedOut(arg uint64) {
	s := c.sessions[arg>>32]
	if s.waitNode < 0 || s.tx16() != arg&0xffff || uint64(uint32(s.opSeq))&0xffff != arg>>16&0xffff {
		return
	}
	s.unanswered()
}

// Requests is how many requests have been opened; Ended how many have ended.
func (c *Clients) Requests() uint64 { return c.requests }

// Ended is how many requests have ended.
func (c *Clients) Ended() uint64 { return c.ended }

// Txns is the newest TxnID.
func (c *Clients) Txns() uint64 { return c.txns }

// TurnedAway is how many arrivals the open loop refused.
func (c *Clients) TurnedAway() uint64 { return c.turnedAway }

// OpenRequest is a request that is open: it arrived and has not ended.
type OpenRequest struct {
	Request RequestID // 0: it waits for a session
	Client  ClientID
	Class   ClassID
	Arrival event.Time
	Attempt int
	Reason  AbortReason // of its last aborted attempt
	Doing   string      // what it is at
}

// Open returns the open requests in order of arrival.
func (c *Clients) Open() []OpenRequest {
	var open []OpenRequest
	for _, s := range c.sessions {
		if s.state == stateIdle {
			continue
		}
		open = append(open, OpenRequest{
			Request: s.tx.Request, Client: s.id, Class: s.tx.Class, Arrival: s.arrival,
			Attempt: s.tx.Attempt, Reason: s.reason, Doing: s.doing(),
		})
	}
	for _, at := range c.backlog[c.backHead:] {
		open = append(open, OpenRequest{Client: -1, Arrival: at, Doing: "queued"})
	}
	sort.SliceStable(open, func(i, j int) bool { return open[i].Arrival < open[j].Arrival })
	return open
}

// DoingTimestamp is OpenRequest.Doing of an attempt that has asked the oracle.
const DoingTimestamp = "waiting for a timestamp"

func (s *session) doing() string {
	switch s.state {
	case stateIdle:
		return "idle"
	case stateAdmission:
		return "waiting for admission"
	case stateTimestamp:
		return DoingTimestamp
	case stateOp:
		return s.op.Kind.String()
	case stateThink:
		return "thinking"
	case stateCommit:
		return "committing"
	case stateBackoff:
		return "backing off"
	default:
		panic("txnproto: unknown session state")
	}
}

// Close ends the run for the clients: no request and no attempt begins any
// more, attempts that have not asked to commit are cut off. Those that have
// asked hear their outcome, and those past their lock point, whose writes others may
// have seen, go on to it; Busy reports whether any is still under way.
func (c *Clients) Close() {
	c.closing = true
	for _, s := range c.sessions {
		if s.goesOn() {
			continue
		}
		switch s.state {
		case stateTimestamp, stateOp, stateThink, stateBackoff:
			c.loop.Cancel(s.timer)
			s.abortBranches(NoReason)
			s.state = stateIdle
			s.waitNode = -1
		case stateAdmission:
			s.state = stateIdle
		case stateIdle, stateCommit:
		default:
			panic("txnproto: unknown session state")
		}
	}
}

// Busy reports whether a client still waits for the outcome of a commit, or is on its
// way there although the run has ended.
func (c *Clients) Busy() bool {
	for _, s := range c.sessions {
		if s.state == stateCommit || s.goesOn() {
			return true
		}
	}
	return false
}

// goesOn reports whether the attempt is not cut off by the end of the run.
func (s *session) goesOn() bool {
	return s.past && (s.state == stateOp || s.state == stateThink)
}

func sortRows(rows []Row) {
	sort.Slice(rows, func(i, j int) bool { return rows[i].Key < rows[j].Key })
}

func itoa(i int) string {
	var b [20]byte
	n := len(b)
	for {
		n--
		b[n] = byte('0' + i%10)
		i /= 10
		if i == 0 {
			return string(b[n:])
		}
	}
}

// Pausing reports whether a program pauses inside its transaction, for at least d.
func (c *Clients) Pausing(d time.Duration) bool {
	for _, s := range c.sessions {
		if s.state == stateThink && s.act.Think >= d {
			return true
		}
	}
	return false
}

// Furthest is how many operations the attempt has completed that has completed most of
// those under way.
func (c *Clients) Furthest() int {
	most := 0
	for _, s := range c.sessions {
		switch s.state {
		case stateTimestamp, stateOp, stateThink, stateCommit:
			most = max(most, s.opsDone)
		case stateIdle, stateAdmission, stateBackoff:
		default:
			panic("txnproto: unknown session state")
		}
	}
	return most
}

// AnyOpen reports whether a request is open.
func (c *Clients) AnyOpen() bool { return c.open > 0 || c.backHead < len(c.backlog) }
