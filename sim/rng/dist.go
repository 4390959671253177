package rng

import (
	"math"
	"math/bits"
	"slices"
	"sort"
	"time"
)

// Shape is the family a Dist belongs to.
type Shape uint8

// The families of Dist.
const (
	ShapeConstant Shape = iota
	ShapeExponential
	ShapeLognormal
	ShapeUniform
	ShapeEmpirical
)

// LongestDraw bounds every value of a Dist, so that a far tail added to a
// point in virtual time cannot overflow: about 36 years.
const LongestDraw = time.Duration(1) << 60

// LongestParam bounds the durations a Dist is made of: 1000 h.
const LongestParam = 1000 * time.Hour

// MaxSigma bounds the sigma of Lognormal.
const MaxSigma = 5.0

// Dist is a distribution of durations. It is a small value to be copied; its
// tables, where it has any, are built once and never change. The zero Dist is
// the constant 0.
type Dist struct {
	shape Shape
	a     time.Duration // constant: value; exponential: mean; lognormal: median; uniform: least
	b     uint64        // lognormal: bits of sigma; uniform: greatest - least
	table *empirical
	quick *quantiles // of the exponential or lognormal distribution of mean or median 1; nil: another
}

// empirical is a list of values, ascending and distinct, with their weights.
type empirical struct {
	values  []time.Duration
	weights []uint64
	// upto[i] is the share of values 0..i in 2^-64: u falls to the first value
	// whose upto is above u. The last is the whole, and not stored.
	upto []uint64
	mean time.Duration
}

// Weighted is one value of an empirical distribution.
type Weighted struct {
	Value  time.Duration
	Weight uint64 // 0 counts as 1
}

// Constant returns the distribution that is always d. REQUIRES: d >= 0.
func Constant(d time.Duration) Dist {
	mustParam("value", d)
	return Dist{a: d}
}

// Exponential returns the exponential distribution of the given mean.
// REQUIRES: 0 <= mean <= LongestParam, as for every duration below.
func Exponential(mean time.Duration) Dist {
	mustParam("mean", mean)
	return Dist{shape: ShapeExponential, a: mean, quick: unitExponential}
}

// Lognormal returns the distribution of median·e^(sigma·Z), Z standard normal.
// Its mean is median·e^(sigma²/2). REQUIRES: 0 <= sigma <= MaxSigma.
func Lognormal(median time.Duration, sigma float64) Dist {
	mustParam("median", median)
	if !(sigma >= 0 && sigma <= MaxSigma) {
		panic("rng: sigma out of range")
	}
	return Dist{
		shape: ShapeLognormal, a: median, b: math.Float64bits(sigma),
		quick: tabulate(func(u uint64) float64 { return exactLognormal(sigma, u) }),
	}
}

// Uniform returns the uniform distribution over the whole nanoseconds from
// least to greatest, both included. REQUIRES: least <= greatest.
func Uniform(least, greatest time.Duration) Dist {
	mustParam("least", least)
	mustParam("greatest", greatest)
	if least > greatest {
		panic("rng: uniform from " + least.String() + " to " + greatest.String())
	}
	return Dist{shape: ShapeUniform, a: least, b: uint64(greatest - least)}
}

// Empirical returns the distribution that takes each value in proportion to
// its weight. Equal values are merged. REQUIRES: at least one value; the
// weights sum to less than 2^62.
func Empirical(values ...Weighted) Dist {
	if len(values) == 0 {
		panic("rng: empirical distribution of no values")
	}
	sorted := slices.Clone(values)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].Value < sorted[j].Value })
	t := new(empirical)
	var total uint64
	for _, v := range sorted {
		mustParam("value", v.Value)
		w := max(v.Weight, 1)
		total += w
		if w >= 1<<62 || total >= 1<<62 {
			panic("rng: weights of an empirical distribution sum to 2^62 or more")
		}
		if n := len(t.values); n > 0 && t.values[n-1] == v.Value {
			t.weights[n-1] += w
			continue
		}
		t.values = append(t.values, v.Value)
		t.weights = append(t.weights, w)
	}
	t.build(total)
	return Dist{shape: ShapeEmpirical, table: t}
}

func (t *empirical) build(total uint64) {
	var sum, hi, lo uint64
	for i, w := range t.weights {
		sum += w
		if i < len(t.weights)-1 {
			q, _ := bits.Div64(sum, 0, total)
			t.upto = append(t.upto, q)
		}
		h, l := bits.Mul64(uint64(t.values[i]), w)
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi, _ = bits.Add64(hi, h, carry)
	}
	q, _ := bits.Div64(hi, lo, total)
	t.mean = time.Duration(q)
}

func mustParam(what string, d time.Duration) {
	if d < 0 || d > LongestParam {
		panic("rng: " + what + " of a distribution is " + d.String() + ", allowed are 0 to " + LongestParam.String())
	}
}

// Shape returns the family of d.
func (d Dist) Shape() Shape { return d.shape }

// IsZero reports whether d is the constant 0.
func (d *Dist) IsZero() bool { return d.shape == ShapeConstant && d.a == 0 }

// Equal reports whether d and e are the same distribution.
func (d Dist) Equal(e Dist) bool {
	if d.shape != e.shape || d.a != e.a || d.b != e.b {
		return false
	}
	if d.table == nil || e.table == nil {
		return d.table == e.table
	}
	return slices.Equal(d.table.values, e.table.values) && slices.Equal(d.table.weights, e.table.weights)
}

// Mean returns the mean of d, not counting that draws stop at LongestDraw.
func (d Dist) Mean() time.Duration {
	switch d.shape {
	case ShapeConstant, ShapeExponential:
		return d.a
	case ShapeLognormal:
		sigma := math.Float64frombits(d.b)
		return nanoseconds(float64(float64(d.a) * exp(float64(sigma*sigma)/2)))
	case ShapeUniform:
		return d.a + time.Duration(d.b/2)
	case ShapeEmpirical:
		return d.table.mean
	default:
		panic("rng: unknown shape of a distribution")
	}
}

// At returns the value of d for the 64 random bits u, by inversion: a draw
// costs one word, be it of a stream (Draw) or of a hash of what it is for, and
// a greater word never gives a lesser value. It allocates nothing.
//
// Exponential and lognormal values are within a millionth of the exact ones.
func (d *Dist) At(u uint64) time.Duration {
	if d.quick != nil {
		x := d.quick.at(u)
		if x < 0 {
			x = d.exact(u)
		}
		return nanoseconds(float64(float64(d.a) * x))
	}
	switch d.shape {
	case ShapeConstant:
		return d.a
	case ShapeUniform:
		hi, _ := bits.Mul64(u, d.b+1)
		return d.a + time.Duration(hi)
	case ShapeEmpirical:
		return d.table.at(u)
	case ShapeExponential, ShapeLognormal: // have a table
		fallthrough
	default:
		panic("rng: unknown shape of a distribution")
	}
}

// exact returns the value for u of an exponential or lognormal distribution whose
// mean or median is 1.
func (d *Dist) exact(u uint64) float64 {
	if d.shape == ShapeExponential {
		return exactExponential(u)
	}
	return exactLognormal(math.Float64frombits(d.b), u)
}

// Draw returns the next value of d from s.
func (d *Dist) Draw(s *Stream) time.Duration { return d.At(s.Uint64()) }

func (t *empirical) at(u uint64) time.Duration {
	lo, hi := 0, len(t.upto)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if u < t.upto[mid] {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return t.values[lo]
}

// nanoseconds rounds x to a duration, at most LongestDraw. REQUIRES: x >= 0.
func nanoseconds(x float64) time.Duration {
	if x >= float64(LongestDraw) {
		return LongestDraw
	}
	return time.Duration(x + 0.5) // towards zero, which for these is down
}
