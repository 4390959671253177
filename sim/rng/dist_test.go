package rng

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

var sampleDists = []string{
	"0s", "2ms", "exp:1ms", "lognormal:1ms,0.5", "lognormal:250µs,0", "uniform:1ms,3ms",
	"uniform:5ns,5ns", "empirical:1ms", "empirical:1ms*2,2ms,9ms*7",
}

func mustDist(t testing.TB, s string) Dist {
	t.Helper()
	d, err := ParseDist(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDistRoundTrip(t *testing.T) {
	for _, s := range sampleDists {
		d := mustDist(t, s)
		if d.String() != s {
			t.Errorf("%q is written back as %q", s, d)
		}
		for name, codec := range map[string]struct {
			write func(any) ([]byte, error)
			read  func([]byte, any) error
		}{
			"json": {json.Marshal, json.Unmarshal},
			"yaml": {yaml.Marshal, func(b []byte, v any) error { return yaml.Unmarshal(b, v) }},
		} {
			text, err := codec.write(map[string]Dist{"d": d})
			if err != nil {
				t.Fatal(err)
			}
			var back map[string]Dist
			if err := codec.read(text, &back); err != nil {
				t.Fatalf("%s %s: %v", name, text, err)
			}
			if !back["d"].Equal(d) {
				t.Errorf("%s: %s came back from %s as %s", name, d, text, back["d"])
			}
		}
	}
	for s, want := range map[string]string{
		" constant:2ms ":             "2ms",
		"0":                          "0s",
		"exponential:1s":             "exp:1s",
		"empirical:9ms, 1ms,9ms*3":   "empirical:1ms,9ms*4",
		"lognormal: 1ms , -0":        "lognormal:1ms,0",
		"uniform:1ms,1500us":         "uniform:1ms,1.5ms",
		"empirical:3ms*4294967296,0": "empirical:0s,3ms*4294967296",
	} {
		if got := mustDist(t, s).String(); got != want {
			t.Errorf("%q is written back as %q, want %q", s, got, want)
		}
	}
}

func TestParseDistErrors(t *testing.T) {
	for s, want := range map[string]string{
		"":                     "want DURATION",
		"fast":                 "want DURATION",
		"5":                    `"5" is no duration`,
		"-1ms":                 "out of range: allowed are 0s to 1000h",
		"2000h":                "out of range",
		"exp:":                 "is no duration",
		"exp:1ms,2ms":          "2 arguments, want 1",
		"gamma:1ms":            `unknown family "gamma"`,
		"lognormal:1ms":        "want lognormal:MEDIAN,SIGMA",
		"lognormal:1ms,-1":     `sigma "-1": allowed are numbers from 0 to 5`,
		"lognormal:1ms,NaN":    "sigma",
		"uniform:3ms,1ms":      "the least, 3ms, is above the greatest, 1ms",
		"empirical:":           "is no duration",
		"empirical:1ms*0":      `weight "0"`,
		"empirical:1ms*x":      `weight "x"`,
		"empirical:1ms*1.5":    `weight "1.5"`,
		"empirical:1ms*-1,2ms": "weight",
		"empirical:1ms*4611686018427387903,2ms*1": "sum to 2^62",
	} {
		_, err := ParseDist(s)
		if err == nil {
			t.Errorf("%q was accepted", s)
			continue
		}
		if !strings.Contains(err.Error(), want) || s != "" && !strings.Contains(err.Error(), s) {
			t.Errorf("%q: message %q does not say %q", s, err, want)
		}
	}
	d := Constant(time.Second)
	if err := d.UnmarshalText([]byte("nonsense")); err == nil || d != Constant(time.Second) {
		t.Errorf("a failed UnmarshalText returned %v and left %v", err, d)
	}
}

// TestDistFollowsItsCDF compares draws with the exact distribution in bins of
// equal probability, and the mean with Mean.
func TestDistFollowsItsCDF(t *testing.T) {
	const draws, bins = 200_000, 64
	phi := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	for s, c := range map[string]struct {
		cdf       func(x float64) float64 // x in ns
		deviation float64                 // standard, ns
	}{
		"exp:1ms":           {func(x float64) float64 { return -math.Expm1(-x / 1e6) }, 1e6},
		"lognormal:1ms,0.5": {func(x float64) float64 { return phi(math.Log(x/1e6) / 0.5) }, 1e6 * math.Sqrt(math.Expm1(0.25)*math.Exp(0.25))},
		"uniform:1ms,3ms":   {func(x float64) float64 { return (x - 1e6) / 2e6 }, 2e6 / math.Sqrt(12)},
	} {
		t.Run(s, func(t *testing.T) {
			d := mustDist(t, s)
			st := Seed(5).Stream(s)
			counts, expected := make([]int, bins), make([]float64, bins)
			sum := 0.0
			for range draws {
				x := float64(d.Draw(st))
				sum += x
				counts[min(max(int(c.cdf(x)*bins), 0), bins-1)]++
			}
			for i := range expected {
				expected[i] = draws / bins
			}
			chiSquare(t, counts, expected)
			mean := float64(d.Mean())
			if off := math.Abs(sum/draws-mean) / (c.deviation / math.Sqrt(draws)); off > 4 {
				t.Errorf("mean of the draws is %g, Mean is %g: %.1f standard errors", sum/draws, mean, off)
			}
		})
	}
}

func TestEmpiricalWeights(t *testing.T) {
	d := mustDist(t, "empirical:1ms*2,2ms,9ms*7")
	st := Seed(6).Stream("e")
	counts := make([]int, 3)
	for range 100_000 {
		counts[map[time.Duration]int{1e6: 0, 2e6: 1, 9e6: 2}[d.Draw(st)]]++
	}
	chiSquare(t, counts, []float64{20_000, 10_000, 70_000})
	if want := 6700 * time.Microsecond; d.Mean() != want {
		t.Errorf("mean is %v, want %v", d.Mean(), want)
	}
}

func TestDistIsMonotoneAndBounded(t *testing.T) {
	st := Seed(8).Stream("u")
	for _, s := range append([]string{"exp:1000h", "lognormal:1000h,5"}, sampleDists...) {
		d := mustDist(t, s)
		for range 20_000 {
			u, v := st.Uint64()>>st.Uint64n(64), ^(st.Uint64() >> st.Uint64n(64))
			if u > v {
				u, v = v, u
			}
			x, y := d.At(u), d.At(v)
			if x > y || x < 0 || y > LongestDraw {
				t.Fatalf("%s: At(%#x) = %v, At(%#x) = %v", s, u, x, v, y)
			}
		}
		if d.At(0) > d.At(math.MaxUint64) {
			t.Errorf("%s: falls", s)
		}
	}
	u := mustDist(t, "uniform:1ms,3ms")
	if u.At(0) != 1e6 || u.At(math.MaxUint64) != 3e6 {
		t.Errorf("uniform ends at %v and %v", u.At(0), u.At(math.MaxUint64))
	}
	long := mustDist(t, "lognormal:1000h,5")
	if got := long.At(math.MaxUint64); got != LongestDraw {
		t.Errorf("the farthest draw is %v, want %v", got, LongestDraw)
	}
}

func TestDistGolden(t *testing.T) {
	for s, want := range goldenDists {
		d := mustDist(t, s)
		for i, w := range want {
			if got := d.At(Hash(9, uint64(i))); got != w {
				t.Errorf("%s: draw %d is %d, want %d", s, i, got, w)
			}
		}
	}
}

func TestDistAllocatesNothing(t *testing.T) {
	st := Seed(1).Stream("a")
	for _, s := range sampleDists {
		d := mustDist(t, s)
		if n := testing.AllocsPerRun(100, func() { d.Draw(st) }); n != 0 {
			t.Errorf("%s: %g allocations a draw", s, n)
		}
	}
}

func BenchmarkDist(b *testing.B) {
	for _, s := range []string{"2ms", "exp:1ms", "lognormal:1ms,0.5", "uniform:1ms,3ms", "empirical:1ms*2,2ms,9ms*7"} {
		b.Run(s, func(b *testing.B) {
			d, st := mustDist(b, s), Seed(1).Stream("b")
			b.ReportAllocs()
			for b.Loop() {
				d.Draw(st)
			}
		})
	}
}
