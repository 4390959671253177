package rng

import (
	"math"
	"testing"
)

// ulps returns the distance of got from want in units of want's last place.
func ulps(got, want float64) float64 {
	if got == want {
		return 0
	}
	return math.Abs(got-want) / (math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want))
}

func TestElementaryAgainstMath(t *testing.T) {
	s := Seed(11).Stream("x")
	// span draws from lo to hi, evenly in the logarithm.
	span := func(lo, hi float64) float64 { return lo * math.Pow(hi/lo, s.Float64()) }
	for _, c := range []struct {
		name      string
		got, want func(float64) float64
		arg       func() float64
		ulps      float64
	}{
		{"ln", ln, math.Log, func() float64 { return span(1e-150, 1e150) }, 2},
		{"ln near 1", ln, math.Log, func() float64 { return 0.9 + 0.2*s.Float64() }, 2},
		{"ln1p small", ln1p, math.Log1p, func() float64 { return span(1e-18, 0.5) }, 3},
		{"ln1p below 0", ln1p, math.Log1p, func() float64 { return -span(1e-18, 0.999999) }, 3},
		{"ln1p large", ln1p, math.Log1p, func() float64 { return span(0.5, 1e12) }, 3},
		{"exp", exp, math.Exp, func() float64 { return -700 + 1409*s.Float64() }, 2},
		{"expm1 small", expm1, math.Expm1, func() float64 { return span(1e-18, 0.5) }, 5},
		{"expm1 below 0", expm1, math.Expm1, func() float64 { return -span(1e-18, 30) }, 5},
	} {
		worst, at := 0.0, 0.0
		for range 50_000 {
			x := c.arg()
			if d := ulps(c.got(x), c.want(x)); d > worst {
				worst, at = d, x
			}
		}
		t.Logf("%s: at most %.1f units in the last place, at %g", c.name, worst, at)
		if !(worst <= c.ulps) {
			t.Errorf("%s(%g) = %g, math has %g: %.1f units in the last place, allowed are %g",
				c.name, at, c.got(at), c.want(at), worst, c.ulps)
		}
	}
	if exp(-800) != 0 || !math.IsInf(exp(800), 1) || exp(0) != 1 || ln(1) != 0 {
		t.Error("exp or ln is wrong at a special point")
	}
}

func TestNormalAgainstErfcinv(t *testing.T) {
	s := Seed(12).Stream("u")
	for i := range 50_000 {
		u := s.Uint64()
		if i%2 == 0 {
			u >>= s.Uint64n(53) // into the tails
		}
		p := unit(u)
		want := -math.Sqrt2 * math.Erfcinv(2*p)
		got := normal(u)
		// Near the centre the value itself is small: absolute there.
		if math.Abs(got-want) > 4e-15*math.Max(1, math.Abs(want)) {
			t.Fatalf("normal quantile of %g is %v, want %v", p, got, want)
		}
		if normal(^u) != -got {
			t.Fatalf("normal quantile of %g is not minus that of its complement", p)
		}
	}
}

// TestElementaryGolden holds the exact bits, to be the same on every processor.
func TestElementaryGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		got  float64
		want uint64
	}{
		{"ln(0.3)", ln(0.3), goldenLn},
		{"ln1p(1e-5)", ln1p(1e-5), goldenLn1p},
		{"exp(-3.7)", exp(-3.7), goldenExp},
		{"expm1(0.01)", expm1(0.01), goldenExpm1},
		{"normal(2^62)", normal(1 << 62), goldenNormalMid},
		{"normal(2^55)", normal(1 << 55), goldenNormalTail},
		{"normal(2^13)", normal(1 << 13), goldenNormalFar},
	} {
		if b := math.Float64bits(c.got); b != c.want {
			t.Errorf("%s = %v has bits %#x, want %#x", c.name, c.got, b, c.want)
		}
	}
}
