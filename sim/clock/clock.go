// Package clock is clocks that are only loosely synchronized: each differs from
// virtual time by an offset that never exceeds a bound.
//
// An offset is drawn from the clock's own place in a named stream, uniform within
// the bound, so that it is the same in every run of a seed and grows in proportion
// with the bound. Without drift it stays. With drift each clock has a rate of its
// own, uniform from 0 to the largest, at which it gains or loses; the
// synchronization turns it round where it reaches the bound:
//
//	+bound      /\
//	           /  \      /
//	0         /    \    /      offset over time
//	               \  /
//	-bound          \/
//
// This is the assumption of Lamport ("Time, Clocks, and the Ordering of Events in a
// Distributed System", CACM 1978, condition PC2) with a periodic synchronization under
// it. Its messages are not modelled.
package clock

import (
	"fmt"
	"math/bits"
	"time"

	"interleave/sim/event"
	"interleave/sim/rng"
)

// Config describes a set of clocks.
type Config struct {
	// Bound is the largest difference from virtual time, ahead or behind.
	Bound time.Duration
	// Drift is the largest rate of gain or loss, in parts per million.
	Drift float64
}

// MaxDrift is the largest Drift: a clock never runs backwards.
const MaxDrift = 1e5

// Clocks is a set of clocks.
type Clocks struct {
	bound  time.Duration
	clocks []clock
}

// clock is one of them.
type clock struct {
	phase int64         // where in its zigzag it is at time 0: from 0, at -bound and gaining, to 4 bound
	rate  float64       // of gain and loss, nanoseconds per nanosecond
	ahead time.Duration // what MoveOn has added
}

// New returns n clocks that are drawn from the stream named name. It panics on a
// negative bound and on a drift that is not between 0 and MaxDrift.
func New(seed rng.Seed, name string, n int, cfg Config) *Clocks {
	if cfg.Bound < 0 || cfg.Bound > rng.LongestParam || !(cfg.Drift >= 0 && cfg.Drift <= MaxDrift) {
		panic(fmt.Sprintf("clock: bound %v and drift %v ppm, want at most %v and %v", cfg.Bound, cfg.Drift, rng.LongestParam, MaxDrift))
	}
	c := &Clocks{bound: cfg.Bound, clocks: make([]clock, n)}
	phases, rates := seed.Key(name+"/offset"), seed.Key(name+"/rate")
	for i := range c.clocks {
		hi, _ := bits.Mul64(rng.Hash(phases, uint64(i)), uint64(4*cfg.Bound))
		c.clocks[i].phase = int64(hi)
		share := float64(rng.Hash(rates, uint64(i))>>11) / (1 << 53)
		c.clocks[i].rate = float64(cfg.Drift*share) / 1e6
	}
	return c
}

// Bound is the largest difference from virtual time.
func (c *Clocks) Bound() time.Duration { return c.bound }

// Len is how many clocks there are.
func (c *Clocks) Len() int { return len(c.clocks) }

// Offset is by how much clock i is ahead of virtual time at the instant at, or
// behind where it is negative. It is at most Bound either way.
func (c *Clocks) Offset(i int, at event.Time) time.Duration {
	k := &c.clocks[i]
	return min(k.own(c.bound, at)+k.ahead, c.bound)
}

// own is the clock's offset without what was added to it.
func (k *clock) own(bound time.Duration, at event.Time) time.Duration {
	if bound == 0 {
		return 0
	}
	turn := 4 * int64(bound)
	x := (k.phase + int64(k.rate*float64(at))) % turn
	if x < turn/2 {
		return time.Duration(x) - bound
	}
	return 3*bound - time.Duration(x)
}

// Read is what clock i shows at the instant at. It never decreases, and may be
// negative before virtual time reaches Bound.
func (c *Clocks) Read(i int, at event.Time) event.Time { return at.Add(c.Offset(i, at)) }

// MoveOn sets clock i forward so that it shows at least reading at the instant at, or as
// much as the bound allows: a clock that has heard from another, which it is behind, takes
// that one's time (Lamport's rule IR2). It runs on from there.
func (c *Clocks) MoveOn(i int, at, reading event.Time) {
	k := &c.clocks[i]
	if d := reading.Sub(c.Read(i, at)); d > 0 {
		k.ahead = min(k.ahead+d, c.bound-k.own(c.bound, at))
	}
}
