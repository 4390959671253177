package reports

import (
	"math"

	"interleave/sim/event"
	"interleave/txnproto"
)

// ageFactor times the median latency is the age from which an unfinished
// request counts as starved.
const ageFactor = 10

// Finish returns the result of the window that ends at now, with the requests
// still open. The caller adds what it alone knows: spec, verdict, isolation,
// resources, and the controllers' counters with SetControl.
func (c *Collector) Finish(now event.Time, open []Open) *Result {
	all := newClassStats()
	for i := range c.classes {
		all.add(&c.classes[i])
	}
	r := &Result{
		Digest: c.digest.sum(), Verdict: VerdictOK,
		WindowNS: int64(now.Sub(c.start)), VirtualNS: int64(now),
		Committed: all.endings[txnproto.EndCommitted], RolledBack: all.endings[txnproto.EndRolledBack],
		GivenUp: all.endings[txnproto.EndGivenUp], TurnedAway: c.turnedAway,
		Latency: all.latency.latencySummary(), AttemptLatency: all.last.latencySummary(),
		Breakdown: Breakdown(all.parts), Attempts: all.attempts.attemptsSummary(),
		// An operation that waited and was then aborted is one too, and so is a wait for a place.
		LockWaits: c.lockWaits, LockWaitNS: int64(c.lockWait),
		HottestKeys: c.keys.hottest(hotKeysShown), Confidence: c.batches.confidence(now),
		CycleLengths: []CycleLength{},
	}
	c.unfinished(r, now, open)
	c.starvation(r, &all)
	r.AbortedAttempts = all.aborted()
	r.Aborts = reasons(&all.aborts)
	if r.WindowNS > 0 {
		seconds := float64(r.WindowNS) / 1e9
		r.Throughput = float64(r.Committed) / seconds
		r.AttemptsPerS = float64(all.finished) / seconds
	}
	r.AbortRatio = ratio(r.AbortedAttempts, all.judged())
	r.AbortsPerCommit = ratio(r.AbortedAttempts, r.Committed)
	r.WastedWork = ratio(c.wastedWork, c.wastedWork+c.usefulWork)
	r.AgeRatio = ratio(r.Latency.P99NS, r.Latency.P50NS)
	r.Fairness = c.fairness()
	for i := range c.classes {
		r.Classes = append(r.Classes, c.classes[i].result(c.cfg.Classes[i]))
	}
	for i := range c.groups {
		k := &c.cfg.Groups[i]
		r.ClientGroups = append(r.ClientGroups, ClientGroup{
			AheadFromNS: int64(k.From), AheadToNS: int64(k.To),
			Class: c.groups[i].result(k.name()),
		})
	}
	r.Laws = c.laws(r, &all)
	return r
}

// name is the range in words.
func (k *ClockRange) name() string {
	if k.From == k.To {
		return formatOffset(k.From)
	}
	return formatOffset(k.From) + " to " + formatOffset(k.To)
}

func (s *classStats) add(o *classStats) {
	for i := range s.endings {
		s.endings[i] += o.endings[i]
	}
	for i := range s.aborts {
		s.aborts[i] += o.aborts[i]
	}
	for i := range s.parts {
		s.parts[i] += o.parts[i]
	}
	s.starved += o.starved
	s.finished += o.finished
	s.goodOps += o.goodOps
	s.latency.add(&o.latency)
	s.last.add(&o.last)
	s.attempts.add(&o.attempts)
}

// judged counts the finished attempts that committed or were aborted: what a
// program rolls back itself says nothing of the concurrency control.
func (s *classStats) judged() uint64 { return s.finished - s.endings[txnproto.EndRolledBack] }

func (s *classStats) aborted() uint64 {
	var n uint64
	for _, x := range s.aborts {
		n += x
	}
	return n
}

func (s *classStats) result(name string) Class {
	return Class{
		Name: name, Committed: s.endings[txnproto.EndCommitted], RolledBack: s.endings[txnproto.EndRolledBack],
		GivenUp: s.endings[txnproto.EndGivenUp], Unfinished: s.open, Starved: s.starved,
		AttemptsDone: s.finished, Aborted: s.aborted(), AbortRatio: ratio(s.aborted(), s.judged()),
		Aborts: reasons(&s.aborts), OpsMean: ratio(s.goodOps, s.endings[txnproto.EndCommitted]),
		Attempts: s.attempts.attemptsSummary(), Latency: s.latency.latencySummary(),
		AttemptMean: int64(s.ran) / int64(max(s.finished, 1)), Breakdown: Breakdown(s.parts),
	}
}

func reasons(counts *[txnproto.NumReasons]uint64) map[string]uint64 {
	m := map[string]uint64{}
	for i, n := range counts {
		if n > 0 {
			m[txnproto.AbortReason(i).String()] = n
		}
	}
	return m
}

// unfinished counts the open requests, and the starved among them.
func (c *Collector) unfinished(r *Result, now event.Time, open []Open) {
	r.Unfinished = uint64(len(open))
	for i := range open {
		o := &open[i]
		age := now.Sub(o.Arrival)
		s := &c.classes[o.Class]
		s.open++
		g := c.groupOf(o.Client)
		if g != nil {
			g.open++
		}
		r.OldestNS = max(r.OldestNS, int64(age))
		c.longestOpen = max(c.longestOpen, age)
		c.stillWaits(o, now)
		// Without a commit there is no latency to be much older than.
		old := r.Committed > 0 && int64(age) > ageFactor*r.Latency.P50NS
		if o.Attempts <= c.cfg.StarvationAttempts && !old {
			continue
		}
		s.starved++
		if g != nil {
			g.starved++
		}
		c.worst.offer(sufferer{
			request: o.Request, client: o.Client, class: o.Class, attempts: o.Attempts,
			age: age, ended: "unfinished", reason: o.Reason,
		})
	}
	for i := range c.clients {
		c.longestWait = max(c.longestWait, c.clients[i].waited)
	}
	r.LongestWaitNS = int64(c.longestWait)
}

// stillWaits adds an open request to what its client has waited, if it has one.
func (c *Collector) stillWaits(o *Open, now event.Time) {
	if o.Client < 0 {
		c.longestWait = max(c.longestWait, now.Sub(o.Arrival))
		return
	}
	for int(o.Client) >= len(c.clients) {
		c.clients = append(c.clients, clientStats{})
	}
	cl := &c.clients[o.Client]
	cl.waited += now.Sub(max(o.Arrival, cl.lastEnd))
	cl.lastEnd = now
}

func (c *Collector) starvation(r *Result, all *classStats) {
	for i := range c.classes {
		r.StarvedCount += c.classes[i].starved
	}
	requests := r.Unfinished
	for _, n := range all.endings {
		requests += n
	}
	r.Starved = ratio(r.StarvedCount, requests)
	r.StarvedBy = make([]Starved, c.worst.n)
	for i := range r.StarvedBy {
		s := &c.worst.list[i]
		r.StarvedBy[i] = Starved{
			Request: uint64(s.request), Client: int32(s.client), Class: c.cfg.Classes[s.class],
			Attempts: s.attempts, AgeNS: int64(s.age), Ended: s.ended, Reason: s.reason.String(),
		}
	}
}

func (c *Collector) fairness() Fairness {
	var f Fairness
	if !c.cfg.OpenLoop {
		x := make([]uint64, len(c.clients))
		for i := range c.clients {
			x[i] = c.clients[i].commits
		}
		f.Clients = jain(x)
	}
	if len(c.classes) > 1 {
		x := make([]uint64, len(c.classes))
		for i := range c.classes {
			x[i] = c.classes[i].endings[txnproto.EndCommitted]
		}
		f.Classes = jain(x)
	}
	return f
}

// jain returns (Σx)² / (n·Σx²) (Jain, Chiu, Hawe 1984), nil when nobody has any.
func jain(x []uint64) *float64 {
	var sum, squares float64
	for _, v := range x {
		sum += float64(v)
		squares += float64(float64(v) * float64(v))
	}
	if squares == 0 {
		return nil
	}
	j := float64(sum*sum) / float64(float64(len(x))*squares)
	return &j
}

// laws checks what must hold between the figures of any run.
func (c *Collector) laws(r *Result, all *classStats) []Law {
	ended := r.Committed + r.RolledBack + r.GivenUp
	laws := []Law{
		NewLaw("the parts of every latency sum to it (requests where they do not)", 0, float64(c.partsWrong), 0),
		NewLaw("the parts of all latencies sum to them, in ns", float64(r.Latency.SumNS), float64((*txnproto.Parts)(&r.Breakdown).Sum()), 0),
		// Of the whole run: what a request waited for before the window ends with it, within.
		NewLaw("no latency has more of lock waits than there were, in ns (what is beyond)", 0, float64(max(c.partEver-c.waitedEver, 0)), 0),
		NewLaw("finished attempts = aborted + committed + rolled back", float64(all.finished), float64(r.AbortedAttempts+r.Committed+r.RolledBack), 0),
	}
	if !c.cfg.OpenLoop && !c.cfg.Finite && r.WindowNS > 0 && ended > 0 {
		// Little: clients = rate of completions × (mean response + mean pause). Off
		// by what the window's two edges cut from each client's requests and pauses,
		// at most one of the longest of both, and by the chance in the pauses, of
		// which five deviations are allowed.
		n, window := float64(c.cfg.Clients), float64(r.WindowNS)
		pauses := float64(float64(ended) * float64(c.cfg.Think))
		measured := (float64(c.response) + pauses) / window
		longest := float64(c.longestOpen + max(c.longestGap, 3*c.cfg.Think))
		chance := float64(5*math.Sqrt(float64(ended))) * c.gapDeviation(ended)
		laws = append(laws, NewLaw("clients = throughput × (latency + think time)", n, measured, (float64(n*longest)+float64(chance))/window))
	}
	return laws
}

// gapDeviation is the standard deviation of the pauses before the requests ended.
func (c *Collector) gapDeviation(ended uint64) float64 {
	mean := float64(c.gaps) / float64(ended)
	return math.Sqrt(max(c.gapSquares/float64(ended)-float64(mean*mean), 0))
}

// SetOperations adds how many verdicts the controllers gave; see Metrics.
func (r *Result) SetOperations(n uint64) { r.Operations, r.BlockingRatio = n, ratio(r.LockWaits, n) }

// SetControl adds the controllers' counters, summed over the shards.
func (r *Result) SetControl(s *txnproto.ControlStats) {
	r.QueueMean = ratio(s.QueueSum, s.QueueCount)
	r.QueueMax = s.QueueMax
	r.Deadlocks, r.FalseDeadlocks = s.Deadlocks, s.FalseDeadlocks
	for n, count := range s.CycleLength {
		if count > 0 {
			r.CycleLengths = append(r.CycleLengths, CycleLength{n, count})
		}
	}
	if len(s.Extra) > 0 {
		r.ProtocolExtra = s.Extra
	}
}
