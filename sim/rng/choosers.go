package rng

import (
	"math"
	"math/bits"
)

// UniformKeys draws every key as often.
type UniformKeys struct{ n uint64 }

// NewUniform returns the uniform chooser. REQUIRES: 1 <= n <= MaxKeys.
func NewUniform(n uint64) *UniformKeys {
	mustKeys(n)
	return &UniformKeys{n}
}

// N implements Chooser.
func (c *UniformKeys) N() uint64 { return c.n }

// Next implements Chooser.
func (c *UniformKeys) Next(s *Stream) uint64 { return s.Uint64n(c.n) }

// RankFrom implements Chooser.
func (c *UniformKeys) RankFrom(s *Stream, least uint64) uint64 { return least + s.Uint64n(c.n-least) }

// Key implements Chooser.
func (c *UniformKeys) Key(rank uint64) uint64 { return rank }

// Scrambled spreads another chooser's ranks over all keys by a permutation, so
// that no two ranks meet on one key, as they do when a rank is hashed modulo n.
//
// The permutation works on the smallest power of two that holds n, by
// multiplications with odd numbers and shifts, and is applied again until it
// falls below n (cycle walking, Black and Rogaway 2002), twice at most on average.
type Scrambled struct {
	ranks    Chooser
	n        uint64
	mask     uint64
	shift    uint8
	mul, add [3]uint64
}

// NewScrambled returns ranks with its keys permuted; salt says which way.
func NewScrambled(ranks Chooser, salt uint64) *Scrambled {
	n := ranks.N()
	width := bits.Len64(n - 1)
	c := &Scrambled{ranks: ranks, n: n, mask: 1<<width - 1, shift: uint8(width+1) / 2}
	s := StreamOf(salt, 0x5c4a3b1ed)
	for i := range c.mul {
		c.mul[i], c.add[i] = s.Uint64()|1, s.Uint64()
	}
	return c
}

// N implements Chooser.
func (c *Scrambled) N() uint64 { return c.n }

// Next implements Chooser.
func (c *Scrambled) Next(s *Stream) uint64 { return c.Key(c.ranks.Next(s)) }

// RankFrom implements Chooser.
func (c *Scrambled) RankFrom(s *Stream, least uint64) uint64 { return c.ranks.RankFrom(s, least) }

// Key implements Chooser.
func (c *Scrambled) Key(rank uint64) uint64 {
	x := rank
	for {
		for i := range c.mul {
			x = (x*c.mul[i] + c.add[i]) & c.mask
			x ^= x >> c.shift
		}
		if x < c.n {
			return x
		}
	}
}

// Hotspot sends a share of the accesses to the first keys, the hot ones, and
// the others to the cold ones, uniformly in both.
type Hotspot struct {
	n, hot uint64
	ops    float64 // share of the accesses that are hot
	// The ranks of the denser of the two sets come first, which is the hot one
	// unless the parameters say that hot is cold.
	dense      uint64  // ranks in the denser set
	denseOps   float64 // its share of the accesses
	denseStart uint64  // its first key
	offset     uint64  // by which a moving hotspot has moved
}

// NewHotspot returns the chooser that sends the share ops of the accesses to the
// share data of n keys, at least one. REQUIRES: data in (0, 1], ops in [0, 1].
func NewHotspot(n uint64, data, ops float64) *Hotspot {
	mustKeys(n)
	if !(data > 0 && data <= 1 && ops >= 0 && ops <= 1) {
		panic("rng: share of a hotspot out of range")
	}
	hot := min(max(uint64(math.Ceil(float64(data*float64(n)))), 1), n)
	c := &Hotspot{n: n, hot: hot, ops: ops, dense: hot, denseOps: ops}
	switch {
	case hot == n:
		c.denseOps = 1
	case float64(ops*float64(n-hot)) < float64((1-ops)*float64(hot)):
		c.dense, c.denseOps, c.denseStart = n-hot, 1-ops, hot
	}
	return c
}

// N implements Chooser.
func (c *Hotspot) N() uint64 { return c.n }

// Next implements Chooser.
func (c *Hotspot) Next(s *Stream) uint64 { return c.Key(c.RankFrom(s, 0)) }

// RankFrom implements Chooser.
func (c *Hotspot) RankFrom(s *Stream, least uint64) uint64 {
	if least >= c.dense {
		return least + s.Uint64n(c.n-least)
	}
	dense, sparse := c.denseOps, 1-c.denseOps
	if least > 0 {
		dense = float64(dense*float64(c.dense-least)) / float64(c.dense)
	}
	if float64(s.Float64()*(dense+sparse)) < dense {
		return least + s.Uint64n(c.dense-least)
	}
	return c.dense + s.Uint64n(c.n-c.dense)
}

// Key implements Chooser.
func (c *Hotspot) Key(rank uint64) uint64 {
	return (rank + c.denseStart + c.offset) % c.n
}

// MovingHotspot is a Hotspot whose hot keys are others after a number of steps:
// the next ones, all round the keys.
type MovingHotspot struct {
	Hotspot
	every uint64
}

// NewMovingHotspot returns a hotspot that moves on by its own width each every
// steps. REQUIRES: as NewHotspot, and every > 0.
func NewMovingHotspot(n uint64, data, ops float64, every uint64) *MovingHotspot {
	if every == 0 {
		panic("rng: a hotspot that moves every 0 steps")
	}
	return &MovingHotspot{*NewHotspot(n, data, ops), every}
}

// Step implements Stepper.
func (c *MovingHotspot) Step(step uint64) {
	moves := step / c.every
	hi, lo := bits.Mul64(moves, c.hot)
	_, c.offset = bits.Div64(hi%c.n, lo, c.n)
}

// Latest is zipfian by recency: the last of a growing set of keys is the
// hottest, key n-1-k having rank k.
type Latest struct{ Zipf }

// NewLatest returns the chooser over n keys to begin with.
func NewLatest(n uint64, theta float64) *Latest { return &Latest{*NewZipf(n, theta)} }

// SetN implements Grower. REQUIRES: 1 <= n <= MaxKeys.
func (c *Latest) SetN(n uint64) {
	if n == c.n {
		return
	}
	mustKeys(n)
	c.n = n
	c.whole.last = float64(n)
	c.whole.hi = c.integral(float64(n) + 0.5)
}

// Next implements Chooser.
func (c *Latest) Next(s *Stream) uint64 { return c.Key(c.Zipf.Next(s)) }

// Key implements Chooser.
func (c *Latest) Key(rank uint64) uint64 { return c.n - 1 - rank }

// Geometric draws keys exponentially less often by key: the exponential
// distribution, cut to whole numbers and at n. Drawing is by inversion of what
// lies below n, which is the same as drawing again whatever lies beyond.
type Geometric struct {
	n uint64
	// rate is the fall of the logarithm of the probability from key to key.
	rate float64
	// below is minus the probability of falling below n, in the uncut distribution.
	below float64
}

// NewGeometric returns the chooser whose uncut distribution has the share ops of
// the accesses in the share data of n keys, and the rest beyond.
// REQUIRES: ops in (0, 1), data in (0, 1], 1 <= n <= MaxKeys.
func NewGeometric(n uint64, ops, data float64) *Geometric {
	mustKeys(n)
	if !(ops > 0 && ops < 1 && data > 0 && data <= 1) {
		panic("rng: share of an exponential chooser out of range")
	}
	rate := -ln1p(-ops) / float64(data*float64(n))
	return &Geometric{n: n, rate: rate, below: expm1(-float64(rate * float64(n)))}
}

// N implements Chooser.
func (c *Geometric) N() uint64 { return c.n }

// Next implements Chooser.
func (c *Geometric) Next(s *Stream) uint64 { return c.draw(s, c.n, c.below) }

// RankFrom implements Chooser. The distribution has no memory: what follows a
// rank is again exponential, cut at fewer keys.
func (c *Geometric) RankFrom(s *Stream, least uint64) uint64 {
	if least == 0 {
		return c.draw(s, c.n, c.below)
	}
	left := c.n - least
	return least + c.draw(s, left, expm1(-float64(c.rate*float64(left))))
}

func (c *Geometric) draw(s *Stream, n uint64, below float64) uint64 {
	k := -ln1p(float64(s.Float64()*below)) / c.rate
	return min(uint64(k), n-1)
}

// Key implements Chooser.
func (c *Geometric) Key(rank uint64) uint64 { return rank }
