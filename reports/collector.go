package reports

import (
	"time"

	"interleave/sim/event"
	"interleave/txnproto"
)

// Config says what a Collector measures.
type Config struct {
	Classes            []string // names by ClassID; at least one
	Clients            int
	OpenLoop           bool          // clients are not a closed population
	Finite             bool          // clients end after some requests, and are fewer then
	Think              time.Duration // closed loop: mean pause between a client's requests
	StarvationAttempts int           // a request with more attempts counts as starved
	// Groups are clients that are reported apart, by how far their clocks are off, and
	// GroupOf says by client which group it is in; both may be empty.
	Groups  []ClockRange
	GroupOf []uint8
	// Trace, when set, is given a line for everything that enters the digest. The
	// line is valid during the call.
	Trace func(line []byte)
}

// ClockRange is by how much clocks are ahead of time: behind it below 0.
type ClockRange struct{ From, To time.Duration }

// Open is a request that has not ended when the run does.
type Open struct {
	Request  txnproto.RequestID
	Client   txnproto.ClientID // below 0: an arrival that no client is free for
	Class    txnproto.ClassID
	Attempts int // begun
	Arrival  event.Time
	Reason   txnproto.AbortReason // of its last abort
}

// Collector turns what happens in a run into a Result. It is fed from the event
// loop in order of virtual time:
//
//	c := NewCollector(cfg)
//	c.AttemptEnded, c.RequestEnded, c.Waited, c.Installed, c.Work …
//	c.ResetWindow(now) // when the warm-up is over
//	…
//	r := c.Finish(now, open)
//
// It implements txnproto.Observer and txnproto.WaitObserver. Feeding it
// allocates nothing; its memory is proportional to clients and classes.
type Collector struct {
	cfg     Config
	digest  digest
	classes []classStats
	groups  []classStats // by group of clients
	clients []clientStats
	keys    *hotKeys
	batches batches
	worst   worstList
	start   event.Time // of the window

	lockWaits, turnedAway   uint64
	lockWait                time.Duration
	usefulWork, wastedWork  time.Duration
	longestWait             time.Duration
	response, gaps          time.Duration // of the requests ended, and before them
	longestOpen, longestGap time.Duration
	gapSquares              float64 // of the gaps, in ns²
	partsWrong              uint64
	waitedEver, partEver    time.Duration               // waits of the whole run, and what latencies have of them
	barren                  [txnproto.NumReasons]uint64 // aborts since a request ended
}

// clientStats is what the collector keeps of a client.
type clientStats struct {
	commits uint64
	lastEnd event.Time    // of the client's last request
	waited  time.Duration // with a request open, since the last commit
}

// classStats counts what befell one class, or one group of clients, in the window.
type classStats struct {
	endings  [txnproto.NumEndings]uint64
	starved  uint64
	finished uint64        // attempts
	ran      time.Duration // of these together
	aborts   [txnproto.NumReasons]uint64
	goodOps  uint64 // of the committing attempts
	latency  histogram
	last     histogram // the committing attempts alone
	attempts histogram
	parts    txnproto.Parts
	open     uint64 // unfinished at the end
}

func newClassStats() classStats {
	return classStats{latency: newHistogram(longestLatency), last: newHistogram(longestLatency), attempts: newHistogram(mostAttempts)}
}

// NewCollector returns a collector whose window has begun at time 0.
func NewCollector(cfg Config) *Collector {
	if len(cfg.Classes) == 0 {
		panic("reports: a workload has at least one class")
	}
	c := &Collector{cfg: cfg, keys: newHotKeys(hotKeysTracked)}
	c.digest.init(cfg.Trace)
	c.classes = make([]classStats, len(cfg.Classes))
	for i := range c.classes {
		c.classes[i] = newClassStats()
	}
	for range cfg.Groups {
		c.groups = append(c.groups, newClassStats())
	}
	c.clients = make([]clientStats, cfg.Clients)
	c.batches.init(0)
	return c
}

// ResetWindow starts measuring anew at now: what came before counts no more,
// but for the digest, which covers the whole run.
func (c *Collector) ResetWindow(now event.Time) {
	c.start = now
	for i := range c.classes {
		c.classes[i].reset()
	}
	for i := range c.groups {
		c.groups[i].reset()
	}
	for i := range c.clients {
		c.clients[i].commits, c.clients[i].waited = 0, 0
	}
	c.keys.reset()
	c.batches.init(now)
	c.worst = worstList{}
	c.lockWaits, c.turnedAway = 0, 0
	c.lockWait, c.usefulWork, c.wastedWork, c.longestWait = 0, 0, 0, 0
	c.response, c.gaps, c.longestOpen, c.longestGap = 0, 0, 0, 0
	c.partsWrong, c.gapSquares = 0, 0
}

// AttemptEnded implements txnproto.Observer.
func (c *Collector) AttemptEnded(a *txnproto.AttemptRecord) {
	c.classes[a.Class].attemptEnded(a)
	if g := c.groupOf(a.Client); g != nil {
		g.attemptEnded(a)
	}
	aborted := a.Outcome == txnproto.Aborted && a.Reason != txnproto.NoReason
	if aborted {
		c.barren[a.Reason]++
		if a.KeyKnown {
			c.keys.aborted(a.Key)
		}
	}
	if aborted || a.Outcome == txnproto.Committed {
		c.batches.attempt(a.End, aborted)
	}
}

// Barren returns how many attempts were aborted since a request ended last,
// whatever the window, and what most of them were aborted for.
func (c *Collector) Barren() (n uint64, most txnproto.AbortReason) {
	for i, of := range c.barren {
		n += of
		if of > c.barren[most] {
			most = txnproto.AbortReason(i)
		}
	}
	return n, most
}

// RequestEnded implements txnproto.Observer.
func (c *Collector) RequestEnded(r *txnproto.RequestRecord) {
	c.digest.request(r)
	c.barren = [txnproto.NumReasons]uint64{}
	latency := r.End.Sub(r.Arrival)
	if r.Parts.Sum() != latency {
		c.partsWrong++
	}
	c.partEver += r.Parts[txnproto.PartLockWait]
	c.clientServed(r, latency)
	starved := r.Attempts > c.cfg.StarvationAttempts || r.Ending == txnproto.EndGivenUp
	c.classes[r.Class].requestEnded(r, starved)
	if g := c.groupOf(r.Client); g != nil {
		g.requestEnded(r, starved)
	}
	if r.Ending == txnproto.EndCommitted {
		c.batches.commit(r.End, latency)
	}
	if starved {
		c.worst.offer(sufferer{
			request: r.Request, client: r.Client, class: r.Class, attempts: r.Attempts,
			age: latency, ended: r.Ending.String(), reason: r.Reason,
		})
	}
}

// groupOf returns the client's group, nil when it is in none.
func (c *Collector) groupOf(client txnproto.ClientID) *classStats {
	if client < 0 || int(client) >= len(c.cfg.GroupOf) {
		return nil
	}
	return &c.groups[c.cfg.GroupOf[client]]
}

func (s *classStats) reset() {
	s.latency.reset()
	s.last.reset()
	s.attempts.reset()
	*s = classStats{latency: s.latency, last: s.last, attempts: s.attempts}
}

func (s *classStats) attemptEnded(a *txnproto.AttemptRecord) {
	s.finished++
	s.ran += a.End.Sub(a.Begin)
	if a.Outcome == txnproto.Aborted && a.Reason != txnproto.NoReason {
		s.aborts[a.Reason]++
	}
}

func (s *classStats) requestEnded(r *txnproto.RequestRecord, starved bool) {
	s.endings[r.Ending]++
	if starved {
		s.starved++
	}
	switch r.Ending {
	case txnproto.EndCommitted:
		s.latency.record(int64(r.End.Sub(r.Arrival)))
		s.last.record(int64(r.End.Sub(r.LastTry)))
		s.attempts.record(int64(r.Attempts))
		s.goodOps += uint64(r.Ops)
		for p, d := range r.Parts {
			s.parts[p] += d
		}
	case txnproto.EndRolledBack, txnproto.EndGivenUp:
	default:
		panic("reports: unknown ending")
	}
}

// clientServed keeps what fairness and the laws need of the request's client.
func (c *Collector) clientServed(r *txnproto.RequestRecord, latency time.Duration) {
	for int(r.Client) >= len(c.clients) {
		c.clients = append(c.clients, clientStats{})
	}
	cl := &c.clients[r.Client]
	gap := r.Arrival.Sub(cl.lastEnd)
	c.response += latency
	c.gaps += gap
	c.gapSquares += float64(float64(gap) * float64(gap))
	c.longestOpen = max(c.longestOpen, latency)
	c.longestGap = max(c.longestGap, gap)
	cl.waited += r.End.Sub(max(r.Arrival, cl.lastEnd))
	cl.lastEnd = r.End
	if r.Ending == txnproto.EndCommitted {
		cl.commits++
		c.longestWait = max(c.longestWait, cl.waited)
		cl.waited = 0
	}
}

// Waited implements txnproto.WaitObserver.
func (c *Collector) Waited(_ txnproto.ShardID, key txnproto.Key, d time.Duration) {
	c.waited(d)
	c.keys.waited(key, d)
}

// WaitedForPlace implements txnproto.WaitObserver.
func (c *Collector) WaitedForPlace(_ txnproto.ShardID, d time.Duration) { c.waited(d) }

func (c *Collector) waited(d time.Duration) {
	c.lockWaits++
	c.lockWait += d
	c.waitedEver += d
}

// Installed adds an installed version to the digest: the write of txn to key
// was applied at index of shard's log.
func (c *Collector) Installed(shard txnproto.ShardID, index uint64, txn txnproto.TxnID, key txnproto.Key, v txnproto.Version) {
	c.digest.install(shard, index, txn, key, v)
}

// Work adds processor and disk time spent on attempts: useful unless they were
// aborted. What a program rolled back itself is no waste.
func (c *Collector) Work(useful bool, d time.Duration) {
	if useful {
		c.usefulWork += d
	} else {
		c.wastedWork += d
	}
}

// TurnedAway counts an arrival beyond the admission limit.
func (c *Collector) TurnedAway() { c.turnedAway++ }

// Ended returns how many requests have ended in the window.
func (c *Collector) Ended() uint64 {
	var n uint64
	for i := range c.classes {
		for _, e := range c.classes[i].endings {
			n += e
		}
	}
	return n
}
