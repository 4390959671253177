package rng

import (
	"errors"
	"math"
	"testing"
)

func TestDistinct(t *testing.T) {
	s := Seed(41).Stream("distinct")
	var d Distinct
	for _, c := range chooserCases {
		for _, n := range []uint64{1, 3, 30, 64, 1000} {
			ch, err := NewChooser(c.name, n, c.params)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range []int{0, 1, int(n+1) / 2, int(n)} {
				keys, err := d.Draw(nil, ch, s, k)
				if err != nil {
					t.Fatal(err)
				}
				seen := map[uint64]bool{}
				for _, key := range keys {
					if seen[key] || key >= n {
						t.Fatalf("%s: key %d of %d drawn twice, or out of range", c.name, key, n)
					}
					seen[key] = true
				}
				if len(seen) != k {
					t.Fatalf("%s: %d keys, want %d of %d", c.name, len(seen), k, n)
				}
			}
			if _, err := d.Draw(nil, ch, s, int(n)+1); !errors.Is(err, ErrExhausted) {
				t.Errorf("%d keys of %d: error %v", n+1, n, err)
			}
		}
	}
}

// TestDistinctUnderHeavySkew: where all but nothing of the probability is taken,
// draws still end, and in order of rank.
func TestDistinctUnderHeavySkew(t *testing.T) {
	s := Seed(42).Stream("heavy")
	var d Distinct
	for _, theta := range []float64{10, 50, 1000} {
		for _, n := range []uint64{64, 1e10} {
			keys, err := d.Draw(nil, NewZipf(n, theta), s, 64)
			if err != nil {
				t.Fatal(err)
			}
			if theta == 1000 {
				for i, k := range keys[:20] {
					if k != uint64(i) {
						t.Fatalf("theta 1000: key %d drawn at place %d", k, i)
					}
				}
			}
		}
	}
}

// TestDistinctDistribution compares ordered pairs and triples with the exact
// probabilities of drawing without replacement, at a skew at which most draws
// take the way that leaves out the leading ranks.
func TestDistinctDistribution(t *testing.T) {
	const n, draws = 5, 100_000
	for _, theta := range []float64{0, 1.2, 3} {
		z := NewZipf(n, theta)
		s := Seed(43).Stream("triples")
		p := make([]float64, n)
		sum := 0.0
		for k := range p {
			p[k] = math.Pow(float64(k+1), -theta)
			sum += p[k]
		}
		var counts []int
		var expected []float64
		index := map[[3]uint64]int{}
		for a := range uint64(n) {
			for b := range uint64(n) {
				for c := range uint64(n) {
					if a == b || b == c || a == c {
						continue
					}
					index[[3]uint64{a, b, c}] = len(expected)
					expected = append(expected, draws*p[a]/sum*p[b]/(sum-p[a])*p[c]/(sum-p[a]-p[b]))
				}
			}
		}
		counts = make([]int, len(expected))
		var d Distinct
		var keys []uint64
		for range draws {
			var err error
			if keys, err = d.Draw(keys[:0], z, s, 3); err != nil {
				t.Fatal(err)
			}
			counts[index[[3]uint64(keys)]]++
		}
		chiSquare(t, counts, expected)
		if t.Failed() {
			t.Fatalf("theta %g", theta)
		}
	}
}

func BenchmarkDistinct(b *testing.B) {
	for _, c := range []struct {
		name  string
		n     uint64
		theta float64
		k     int
	}{{"10 of 1e6 uniform", 1e6, 0, 10}, {"10 of 1e6 theta 0.99", 1e6, 0.99, 10}, {"64 of 1000 theta 1.2", 1000, 1.2, 64}, {"64 of 1e6 theta 5", 1e6, 5, 64}} {
		b.Run(c.name, func(b *testing.B) {
			z, s := NewZipf(c.n, c.theta), Seed(1).Stream("b")
			var d Distinct
			var keys []uint64
			b.ReportAllocs()
			for b.Loop() {
				keys, _ = d.Draw(keys[:0], z, s, c.k)
			}
		})
	}
}
