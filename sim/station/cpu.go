package station

import (
	"fmt"
	"time"

	"interleave/sim/event"
)

// CPU is a station of identical servers with one first-in-first-out queue,
// without preemption: the c of M/M/c. A job's service time is known when it
// arrives, and nothing overtakes it, so Submit tells at once when it will start
// and be done; the caller schedules its own event then.
type CPU struct {
	loop *event.Loop

	// idleAt has per server the time from which it is idle; a binary heap, the
	// earliest first. Which server takes a job makes no difference, so they
	// need no names.
	idleAt []event.Time

	// starts has the start times of the jobs that still waited when last looked
	// at, in order: a ring of which n are in use from first on.
	starts   []event.Time
	first, n int

	// Totals since the beginning, of all jobs submitted, the future part of
	// their service and waiting included. See busyAt and queuedAt.
	jobs      uint64
	announced time.Duration // waits, as Submit announced them
	service   time.Duration
	wait      time.Duration // announced, less what Clear cut off
	maxQ      int

	// What the totals were at the start of the window.
	from       event.Time
	fromJobs   uint64
	fromWait   time.Duration // of announced
	fromBusy   time.Duration
	fromQueued time.Duration
}

// NewCPU returns an idle station. It panics unless servers is at least 1.
func NewCPU(loop *event.Loop, servers int) *CPU {
	if servers < 1 {
		panic(fmt.Sprintf("station: a CPU of %d servers, want at least 1", servers))
	}
	return &CPU{loop: loop, idleAt: make([]event.Time, servers), starts: make([]event.Time, 16), from: loop.Now()}
}

// Servers returns the number of servers.
func (c *CPU) Servers() int { return len(c.idleAt) }

// Submit puts a job with the given service time in the queue now, and returns
// when its service starts and ends. It panics if service is negative.
func (c *CPU) Submit(service time.Duration) (start, done event.Time) {
	if service < 0 {
		panic(fmt.Sprintf("station: service of %v at %v, want at least 0", service, c.loop.Now()))
	}
	now := c.loop.Now()
	start = max(now, c.idleAt[0])
	done = start.Add(service)
	c.occupy(done)
	c.jobs++
	c.service += service
	if start > now {
		c.announced += start.Sub(now)
		c.wait += start.Sub(now)
		c.prune(now)
		c.enqueue(start)
		c.maxQ = max(c.maxQ, c.n)
	}
	return start, done
}

// occupy gives the job that ends at done to the server that is idle first.
func (c *CPU) occupy(done event.Time) {
	h := c.idleAt
	i := 0
	for {
		k := 2*i + 1
		if k >= len(h) {
			break
		}
		if k+1 < len(h) && h[k+1] < h[k] {
			k++
		}
		if done <= h[k] {
			break
		}
		h[i] = h[k]
		i = k
	}
	h[i] = done
}

func (c *CPU) enqueue(start event.Time) {
	if c.n == len(c.starts) {
		grown := make([]event.Time, 2*c.n)
		k := copy(grown, c.starts[c.first:])
		copy(grown[k:], c.starts[:c.first])
		c.starts, c.first = grown, 0
	}
	c.starts[(c.first+c.n)&(len(c.starts)-1)] = start
	c.n++
}

// prune forgets the start times up to now.
func (c *CPU) prune(now event.Time) {
	for c.n > 0 && c.starts[c.first] <= now {
		c.first = (c.first + 1) & (len(c.starts) - 1)
		c.n--
	}
}

// QueueLen returns how many jobs wait now, those in service not counted.
func (c *CPU) QueueLen() int {
	c.prune(c.loop.Now())
	return c.n
}

// Backlog returns how long it takes until all jobs that are here are done.
func (c *CPU) Backlog() time.Duration {
	last := c.loop.Now()
	for _, at := range c.idleAt {
		last = max(last, at)
	}
	return last.Sub(c.loop.Now())
}

// Clear forgets all jobs, waiting and in service: the machine crashed. The
// completions that Submit announced for them are void.
func (c *CPU) Clear() {
	now := c.loop.Now()
	// The parts of their service and waiting still ahead will not happen.
	c.service = c.busyAt(now)
	for i := range c.n {
		if start := c.starts[(c.first+i)&(len(c.starts)-1)]; start > now {
			c.wait -= start.Sub(now)
		}
	}
	for i := range c.idleAt {
		c.idleAt[i] = min(c.idleAt[i], now)
	}
	c.first, c.n = 0, 0
}

// busyAt returns the service given up to now. After now a server works without
// a gap until it is idle, so what is ahead is the sum of those spans.
func (c *CPU) busyAt(now event.Time) time.Duration {
	busy := c.service
	for _, at := range c.idleAt {
		if at > now {
			busy -= at.Sub(now)
		}
	}
	return busy
}

// queuedAt returns the waiting done up to now, over all jobs: the integral of
// the queue's length.
func (c *CPU) queuedAt(now event.Time) time.Duration {
	c.prune(now)
	queued := c.wait
	for i := range c.n {
		queued -= c.starts[(c.first+i)&(len(c.starts)-1)].Sub(now)
	}
	return queued
}

// CPUStats is what a CPU did in a window.
type CPUStats struct {
	Window   time.Duration
	Servers  int
	Jobs     uint64        // submitted
	Wait     time.Duration // of those jobs until their service starts, as Submit announced it
	Busy     time.Duration // server time; at most Window x Servers
	Queued   time.Duration // integral of the number waiting
	MaxQueue int           // most jobs that waited at once
}

// Utilization returns the share of the servers' time in which they worked.
func (s CPUStats) Utilization() float64 {
	return ratio(s.Busy, s.Window*time.Duration(s.Servers))
}

// MeanQueue returns the mean number of jobs waiting.
func (s CPUStats) MeanQueue() float64 { return ratio(s.Queued, s.Window) }

// MeanWait returns the mean wait of a job.
func (s CPUStats) MeanWait() time.Duration { return s.Wait / time.Duration(max(1, s.Jobs)) }

func ratio(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// ResetStats starts a new window now.
func (c *CPU) ResetStats() {
	now := c.loop.Now()
	c.from = now
	c.fromJobs, c.fromWait = c.jobs, c.announced
	c.fromBusy, c.fromQueued = c.busyAt(now), c.queuedAt(now)
	c.maxQ = c.n
}

// Stats returns the statistics of the window that ends now.
func (c *CPU) Stats() CPUStats {
	now := c.loop.Now()
	return CPUStats{
		Window:   now.Sub(c.from),
		Servers:  len(c.idleAt),
		Jobs:     c.jobs - c.fromJobs,
		Wait:     c.announced - c.fromWait,
		Busy:     c.busyAt(now) - c.fromBusy,
		Queued:   c.queuedAt(now) - c.fromQueued,
		MaxQueue: c.maxQ,
	}
}
