package rng

import (
	"math"
	"math/bits"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// significance is the probability with which a right generator fails one of the
// statistical tests of this package. The seeds are fixed, so none of them is
// flaky: each passed once and will pass for ever, on every processor.
const significance = 1e-4

// chiSquare fails the test when the counts are too far from what is expected.
// Cells expecting fewer than ten are pooled with their neighbours.
func chiSquare(t *testing.T, counts []int, expected []float64) {
	t.Helper()
	sum, cells := 0.0, 0
	c, e := 0.0, 0.0
	flush := func() {
		sum += (c - e) * (c - e) / e
		cells++
		c, e = 0, 0
	}
	left := 0.0
	for _, x := range expected {
		left += x
	}
	for i := range counts {
		c += float64(counts[i])
		e += expected[i]
		left -= expected[i]
		if e >= 10 && left >= 10 {
			flush()
		}
	}
	if e > 0 {
		flush()
	} else if c > 0 {
		t.Errorf("%g draws where none is possible", c)
	}
	if cells < 2 {
		return
	}
	if p := (distuv.ChiSquared{K: float64(cells - 1)}).Survival(sum); p < significance {
		t.Errorf("chi-square is %.1f over %d cells: probability %.2g", sum, cells, p)
	}
}

func TestStreamsAreIndependentOfEachOther(t *testing.T) {
	a, b := Seed(1).Stream("client/1"), Seed(1).Stream("client/2")
	again := Seed(1).Stream("client/1")
	other := Seed(2).Stream("client/1")
	ones := 0
	for range 4096 {
		x, y := a.Uint64(), b.Uint64()
		if z := again.Uint64(); z != x {
			t.Fatalf("the same seed and name gave %x and %x", x, z)
		}
		if z := other.Uint64(); z == x {
			t.Fatalf("another seed gave the same word %x", z)
		}
		ones += bits.OnesCount64(x ^ y)
	}
	// 4096·64 fair coins: five standard deviations.
	if n := 4096.0 * 64; math.Abs(float64(ones)-n/2) > 5*math.Sqrt(n)/2 {
		t.Errorf("streams of neighbouring names differ in %d bits of %g", ones, n)
	}
}

func TestStreamBits(t *testing.T) {
	// Each byte of the words of one long stream, and the first words of many
	// streams of consecutive numbers, are uniform.
	long := Seed(7).Stream("long")
	key := Seed(7).Key("family")
	const draws = 1 << 16
	for _, c := range []struct {
		name string
		word func(i uint64) uint64
	}{
		{"one stream", func(uint64) uint64 { return long.Uint64() }},
		{"first words", func(i uint64) uint64 { s := StreamOf(key, i); return s.Uint64() }},
		{"hash", func(i uint64) uint64 { return Hash(key, i) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var counts [8][256]int
			for i := range uint64(draws) {
				w := c.word(i)
				for b := range counts {
					counts[b][byte(w>>(8*b))]++
				}
			}
			expected := make([]float64, 256)
			for i := range expected {
				expected[i] = draws / 256
			}
			for b := range counts {
				chiSquare(t, counts[b][:], expected)
			}
		})
	}
}

func TestUint64n(t *testing.T) {
	s := Seed(3).Stream("n")
	for _, n := range []uint64{1, 2, 3, 10, 1000} {
		const draws = 100_000
		counts, expected := make([]int, n), make([]float64, n)
		for range draws {
			counts[s.Uint64n(n)]++
		}
		for i := range expected {
			expected[i] = draws / float64(n)
		}
		chiSquare(t, counts, expected)
	}
	// A bound of 3·2^62 would show the bias of a plain product: with it the
	// residues modulo 3 are as likely only if a quarter of the words is redrawn.
	counts := make([]int, 3)
	for range 90_000 {
		counts[s.Uint64n(3<<62)>>62]++
	}
	chiSquare(t, counts, []float64{30_000, 30_000, 30_000})
}

func TestStreamGolden(t *testing.T) {
	s := Seed(42).Stream("client/17/keys")
	want := []uint64{goldenStream0, goldenStream1, goldenStream2}
	for i, w := range want {
		if g := s.Uint64(); g != w {
			t.Errorf("word %d is %#x, want %#x", i, g, w)
		}
	}
}
