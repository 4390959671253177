package rng

import "math"

// quantiles is the inverse of a distribution function as cubics, one for each of
// equally likely cells: a tenth of what the elementary functions take. Each cubic
// goes through the exact values at the ends and the thirds of its cell. Where
// that is not within quantileError, in the tails, the cell is left to the exact
// function.
type quantiles struct {
	cells [1 << quantileBits]cubic
}

// cubic is c[0] + c[1]·t + c[2]·t² + c[3]·t³ for t from 0 to 1; c[0] < 0 says that
// there is none.
type cubic [4]float64

const (
	quantileBits = 7
	// quantileError bounds the relative error: no number of draws that a run makes
	// can tell.
	quantileError = 1. / (1 << 20)
)

// tabulate returns the table of a quantile function of the random word u, which
// must be positive and rise with u.
func tabulate(exact func(u uint64) float64) *quantiles {
	const width = 1 << (64 - quantileBits)
	q := new(quantiles)
	for i := range q.cells {
		first := uint64(i) * width
		at := func(num, den uint64) float64 { return exact(first + width/den*num) }
		last := exact(first + (width - 1))
		c := through(at(0, 1), at(1, 3), at(2, 3), last)
		for k := uint64(1); k < 12; k++ {
			want := at(k, 12)
			if off := math.Abs(c.at(float64(k)/12) - want); !(off <= float64(quantileError*want)) {
				c[0] = -1
				break
			}
		}
		q.cells[i] = c
	}
	q.cells[len(q.cells)-1][0] = -1 // its end is infinite
	return q
}

// through returns the cubic with the given values at 0, 1/3, 2/3 and 1.
func through(y0, y1, y2, y3 float64) cubic {
	// Sums of three and more terms, each product rounded.
	return cubic{
		y0,
		(float64(18*y1) - float64(11*y0) + (float64(2*y3) - float64(9*y2))) / 2,
		float64(9*(float64(2*y0)-float64(5*y1)+(float64(4*y2)-y3))) / 2,
		float64(9*(y3-y0+float64(3*(y1-y2)))) / 2,
	}
}

func (c *cubic) at(t float64) float64 {
	return c[0] + float64(t*(c[1]+float64(t*(c[2]+float64(t*c[3])))))
}

// at returns the quantile of the random word u, or a negative number where only
// the exact function will do.
func (q *quantiles) at(u uint64) float64 {
	c := &q.cells[u>>(64-quantileBits)]
	if c[0] < 0 {
		return -1
	}
	return c.at(float64(float64(u<<quantileBits>>12) * (1. / (1 << 52))))
}

// unitExponential is the table of the exponential distribution of mean 1.
var unitExponential = tabulate(exactExponential)

func exactExponential(u uint64) float64 { return -ln(unit(^u)) }

func exactLognormal(sigma float64, u uint64) float64 { return exp(float64(sigma * normal(u))) }
