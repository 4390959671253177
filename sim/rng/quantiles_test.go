package rng

import (
	"math"
	"testing"
)

// TestQuantilesAreClose compares the tables with the functions they stand for, at
// random words and at the seams of the cells, where a value must not fall either.
func TestQuantilesAreClose(t *testing.T) {
	type dist struct {
		name  string
		table *quantiles
		exact func(uint64) float64
		least float64 // share of the cells that the table must serve
	}
	dists := []dist{{"exponential", unitExponential, exactExponential, 0.9}}
	for _, sigma := range []float64{0, 0.1, 0.3, 0.5, 1, 5} {
		exact := func(u uint64) float64 { return exactLognormal(sigma, u) }
		least := 0.85
		if sigma == 5 {
			least = 0.4
		}
		dists = append(dists, dist{"lognormal", tabulate(exact), exact, least})
	}
	for _, d := range dists {
		served := 0
		value := func(u uint64) float64 {
			if x := d.table.at(u); x >= 0 {
				return x
			}
			return d.exact(u)
		}
		check := func(u uint64) {
			want := d.exact(u)
			if off := math.Abs(value(u) - want); off > 1.2*quantileError*want+1e-12 {
				t.Fatalf("%s: at %#x %v, exactly %v", d.name, u, value(u), want)
			}
		}
		st := Seed(4).Stream("u")
		for range 100_000 {
			check(st.Uint64())
		}
		for i := range d.table.cells {
			first := uint64(i) << (64 - quantileBits)
			if d.table.cells[i][0] >= 0 {
				served++
			}
			check(first)
			if i > 0 && value(first-1) > value(first)*(1+1e-12) {
				t.Errorf("%s: falls from %v to %v at %#x", d.name, value(first-1), value(first), first)
			}
			for k := uint64(0); k < 64; k++ {
				u := first + k<<(64-quantileBits-6)
				if x, y := value(u), value(u+1<<(64-quantileBits-6)-1); x > y {
					t.Errorf("%s: falls from %v to %v after %#x", d.name, x, y, u)
				}
			}
		}
		if share := float64(served) / float64(len(d.table.cells)); share < d.least {
			t.Errorf("%s: the table serves %.2f of the cells, want %v", d.name, share, d.least)
		}
	}
}
