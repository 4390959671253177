package rng

import "math"

// Zipf draws rank k of [0, n) in proportion to 1/(k+1)^theta, for any theta >= 0.
//
// The method is rejection-inversion, from Hörmann and Derflinger,
// "Rejection-inversion to generate variates from monotone discrete
// distributions" (ACM TOMACS 6, 1996): the continuous hat x^-theta is inverted
// in closed form and rounded, and the little by which a cell of the hat exceeds
// its rank is rejected, at most one draw in some ten. There is nothing to set
// up, so n costs neither time nor memory. Ours differs in two ways: the integral
// of the hat is computed through expm1 and ln1p, so that theta = 1 is no special
// case and its neighbourhood loses no digits; and it can begin at any rank, the
// coordinates being divided by that rank, so that a far tail is as exact as the
// whole.
type Zipf struct {
	n     uint64
	theta float64
	whole zipfRange
	// safe is the distance below a rank from which on a point belongs to it for
	// certain, so that most draws end without a second integral.
	safe float64
}

// zipfRange is what a draw from the ranks [first, n] needs; ranks count from 1
// here, as in the paper.
type zipfRange struct {
	first, last float64
	lo, hi      float64 // the hat's integral from first to where rank first begins and rank n ends
}

// NewZipf returns the zipfian chooser over n keys, the first the hottest.
// REQUIRES: 1 <= n <= MaxKeys, theta >= 0 and finite.
func NewZipf(n uint64, theta float64) *Zipf {
	mustKeys(n)
	if !(theta >= 0) || math.IsInf(theta, 1) {
		panic("rng: theta out of range")
	}
	z := &Zipf{n: n, theta: theta}
	z.whole = z.newRange(1)
	// Point x belongs to rank k when the hat's integral from x to k+1/2 is at
	// most the rank's weight. That holds from k-safe on for k = 2 and, the hat
	// being convex, for every k above.
	z.safe = 2 - z.inverse(z.integral(2.5)-z.weight(2))
	return z
}

func mustKeys(n uint64) {
	if n == 0 || n > MaxKeys {
		panic("rng: a chooser over no keys, or over more than MaxKeys")
	}
}

func (z *Zipf) newRange(first float64) zipfRange {
	r := zipfRange{first: first, last: float64(z.n)}
	r.lo = z.integral((first+0.5)/first) - 1/first
	r.hi = z.integral((r.last + 0.5) / first)
	return r
}

// weight returns x^-theta.
func (z *Zipf) weight(x float64) float64 { return exp(-float64(z.theta * ln(x))) }

// integral returns the integral of t^-theta from 1 to x:
// (x^(1-theta) - 1)/(1-theta), or ln x where theta is 1.
func (z *Zipf) integral(x float64) float64 {
	l := ln(x)
	return float64(l * expm1Ratio(float64((1-z.theta)*l)))
}

// inverse returns the x whose integral is y.
func (z *Zipf) inverse(y float64) float64 {
	t := float64((1 - z.theta) * y)
	if t <= -1 { // beyond the end of the hat by the last digit
		return math.MaxFloat64
	}
	return exp(float64(y * ln1pRatio(t)))
}

// expm1Ratio returns (e^x - 1)/x, and its limit 1 at 0.
func expm1Ratio(x float64) float64 {
	if math.Abs(x) < 1e-8 {
		return 1 + float64(x/2)
	}
	return expm1(x) / x
}

// ln1pRatio returns ln(1+x)/x, and its limit 1 at 0.
func ln1pRatio(x float64) float64 {
	if math.Abs(x) < 1e-8 {
		return 1 - float64(x/2)
	}
	return ln1p(x) / x
}

// N implements Chooser.
func (z *Zipf) N() uint64 { return z.n }

// Theta returns the skew.
func (z *Zipf) Theta() float64 { return z.theta }

// Next implements Chooser.
func (z *Zipf) Next(s *Stream) uint64 { return z.draw(s, &z.whole) }

// Key implements Chooser.
func (z *Zipf) Key(rank uint64) uint64 { return rank }

// RankFrom implements Chooser.
func (z *Zipf) RankFrom(s *Stream, least uint64) uint64 {
	if least == 0 {
		return z.draw(s, &z.whole)
	}
	r := z.newRange(float64(least + 1))
	return z.draw(s, &r)
}

func (z *Zipf) draw(s *Stream, r *zipfRange) uint64 {
	for {
		u := r.lo + float64(s.Float64()*(r.hi-r.lo))
		x := float64(r.first * z.inverse(u))
		k := min(max(math.Floor(x+0.5), r.first), r.last)
		if k-x <= z.safe {
			return uint64(k) - 1
		}
		v := k / r.first
		if k == r.first || u >= z.integral((k+0.5)/r.first)-z.weight(v)/r.first {
			return uint64(k) - 1
		}
	}
}
