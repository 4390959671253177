package rng

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// zipfBins returns bin edges over ranks 0..n (each rank of the first ones its
// own bin, then growing) and the exact probability of each bin.
func zipfBins(n uint64, theta float64) (edges []uint64, p []float64) {
	for e := uint64(0); e < n; {
		edges = append(edges, e)
		e += max(1, e/6)
	}
	edges = append(edges, n)
	total := 0.0
	for i := range len(edges) - 1 {
		p = append(p, powerSum(edges[i]+1, edges[i+1], theta))
		total += p[i]
	}
	for i := range p {
		p[i] /= total
	}
	return edges, p
}

// powerSum returns the sum of k^-theta for k from a to b: term by term for the
// first thousand, by Euler-Maclaurin to the third derivative beyond.
func powerSum(a, b uint64, theta float64) float64 {
	f := func(x float64) float64 { return math.Pow(x, -theta) }
	sum := 0.0
	for ; a <= min(b, 1000); a++ {
		sum += f(float64(a))
	}
	if a > b {
		return sum
	}
	x, y := float64(a), float64(b)
	integral := math.Log(y / x)
	if theta != 1 {
		integral = math.Pow(x, 1-theta) * math.Expm1((1-theta)*math.Log(y/x)) / (1 - theta)
	}
	d1 := func(x float64) float64 { return -theta * math.Pow(x, -theta-1) }
	d3 := func(x float64) float64 { return -theta * (theta + 1) * (theta + 2) * math.Pow(x, -theta-3) }
	return sum + integral + (f(x)+f(y))/2 + (d1(y)-d1(x))/12 - (d3(y)-d3(x))/720
}

// count sorts draws into bins by rank.
func count(t *testing.T, edges []uint64, draws int, next func() uint64) []int {
	t.Helper()
	counts := make([]int, len(edges)-1)
	for range draws {
		r := next()
		i, exact := slices.BinarySearch(edges, r)
		if !exact {
			i--
		}
		if i >= len(counts) {
			t.Fatalf("rank %d of %d", r, edges[len(edges)-1])
		}
		counts[i]++
	}
	return counts
}

func scaled(p []float64, draws int) []float64 {
	out := make([]float64, len(p))
	for i := range p {
		out[i] = p[i] * float64(draws)
	}
	return out
}

func TestZipfProbabilities(t *testing.T) {
	const draws = 60_000
	for _, theta := range []float64{0, 0.2, 0.5, 0.99, 1 - 1e-9, 1, 1 + 1e-9, 1.2, 2, 5} {
		for _, n := range []uint64{1, 2, 3, 10, 1000, 1_000_000, 10_000_000_000, MaxKeys} {
			z := NewZipf(n, theta)
			s := Seed(21).Stream("zipf")
			edges, p := zipfBins(n, theta)
			chiSquare(t, count(t, edges, draws, func() uint64 { return z.Next(s) }), scaled(p, draws))
			if t.Failed() {
				t.Fatalf("theta %g, %d keys", theta, n)
			}
		}
	}
	for _, theta := range []float64{50, 1000} { // all but 2^-50 in rank 0
		z, s := NewZipf(1_000_000, theta), Seed(1).Stream("z")
		for range 1000 {
			if k := z.Next(s); k != 0 {
				t.Fatalf("theta %g: drew rank %d", theta, k)
			}
		}
	}
}

// TestZipfTail: drawing from a rank on is drawing as ever, given that rank.
func TestZipfTail(t *testing.T) {
	const draws = 60_000
	for _, theta := range []float64{0, 0.5, 1, 2, 10} {
		for _, least := range []uint64{1, 2, 63, 1000} {
			const n = 5000
			z, s := NewZipf(n, theta), Seed(22).Stream("tail")
			var edges []uint64
			var p []float64
			total := powerSum(least+1, n, theta)
			for k := least; k < n; k++ {
				edges = append(edges, k)
				p = append(p, powerSum(k+1, k+1, theta)/total)
			}
			edges = append(edges, n)
			chiSquare(t, count(t, edges, draws, func() uint64 { return z.RankFrom(s, least) }), scaled(p, draws))
			if t.Failed() {
				t.Fatalf("theta %g from rank %d", theta, least)
			}
		}
	}
}

// weights returns the exact probability of each rank of c, for small n.
func weights(t *testing.T, name string, n uint64, params map[string]float64) []float64 {
	t.Helper()
	p := make([]float64, n)
	for k := range p {
		switch name {
		case "uniform":
			p[k] = 1
		case "zipfian", "scrambled-zipfian", "latest":
			p[k] = math.Pow(float64(k+1), -params["theta"])
		case "hotspot", "moving-hotspot":
			hot := math.Ceil(params["hot-data"] * float64(n))
			if float64(k) < hot {
				p[k] = params["hot-ops"] / hot
			} else {
				p[k] = (1 - params["hot-ops"]) / (float64(n) - hot)
			}
		case "exponential":
			rate := -math.Log1p(-params["percentile"]/100) / (params["fraction"] * float64(n))
			p[k] = math.Exp(-rate*float64(k)) - math.Exp(-rate*float64(k+1))
		default:
			t.Fatalf("no exact probabilities of %q: write them", name)
		}
	}
	if strings.HasSuffix(name, "hotspot") { // the denser set has the first ranks
		slices.SortFunc(p, func(a, b float64) int { return int(math.Copysign(1, b-a)) })
	}
	sum := 0.0
	for _, x := range p {
		sum += x
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

var chooserCases = []struct {
	name   string
	params map[string]float64
}{
	{"uniform", nil},
	{"zipfian", map[string]float64{"theta": 0.99}},
	{"zipfian", map[string]float64{"theta": 1.2}},
	{"scrambled-zipfian", map[string]float64{"theta": 0.8, "salt": 3}},
	{"hotspot", map[string]float64{"hot-data": 0.2, "hot-ops": 0.8}},
	{"hotspot", map[string]float64{"hot-data": 0.4, "hot-ops": 0.1}},
	{"hotspot", map[string]float64{"hot-data": 0.01, "hot-ops": 1}},
	{"moving-hotspot", map[string]float64{"hot-data": 0.1, "hot-ops": 0.9, "every": 10}},
	{"latest", map[string]float64{"theta": 0.99}},
	{"exponential", map[string]float64{"percentile": 95, "fraction": 0.25}},
}

// TestChoosers checks each registered chooser's keys against exact
// probabilities, its ranks from some rank on, and that Key is a bijection.
func TestChoosers(t *testing.T) {
	const draws = 60_000
	seen := map[string]bool{}
	for _, c := range chooserCases {
		seen[c.name] = true
		for _, n := range []uint64{1, 2, 7, 64, 1000} {
			ch, err := NewChooser(c.name, n, c.params)
			if err != nil {
				t.Fatal(err)
			}
			if st, ok := ch.(Stepper); ok {
				st.Step(25)
			}
			p := weights(t, c.name, n, c.params)
			rank := map[uint64]uint64{}
			for r := range n {
				rank[ch.Key(r)] = r
			}
			if uint64(len(rank)) != n {
				t.Fatalf("%s: %d keys at %d ranks", c.name, len(rank), n)
			}
			edges := make([]uint64, n+1)
			for i := range edges {
				edges[i] = uint64(i)
			}
			s := Seed(23).Stream(c.name)
			next := func() uint64 {
				r, ok := rank[ch.Next(s)]
				if !ok {
					t.Fatalf("%s: a key that has no rank below %d", c.name, n)
				}
				return r
			}
			chiSquare(t, count(t, edges, draws, next), scaled(p, draws))
			least := n / 3
			tail := slices.Clone(p)
			sum := 0.0
			for k := range tail {
				if uint64(k) < least {
					tail[k] = 0
				}
				sum += tail[k]
			}
			if sum > 0 {
				for k := range tail {
					tail[k] /= sum
				}
				counts := count(t, edges, draws, func() uint64 { return ch.RankFrom(s, least) })
				if slices.Max(append(counts[:least:least], 0)) > 0 {
					t.Errorf("%s: a rank below %d", c.name, least)
				}
				chiSquare(t, counts[least:], scaled(tail[least:], draws))
			}
			if t.Failed() {
				t.Fatalf("%s %v over %d keys", c.name, c.params, n)
			}
		}
	}
	for _, info := range Choosers() {
		if !seen[info.Name] {
			t.Errorf("chooser %q has no test", info.Name)
		}
	}
}

func TestChooserKeysOfInterest(t *testing.T) {
	hot := NewMovingHotspot(100, 0.1, 1, 10)
	s := Seed(1).Stream("hot")
	for _, c := range []struct{ step, first uint64 }{{0, 0}, {9, 0}, {10, 10}, {95, 90}, {100, 0}, {math.MaxUint64, (math.MaxUint64 / 10 % 10) * 10}} {
		hot.Step(c.step)
		for range 100 {
			if k := hot.Next(s); k < c.first || k >= c.first+10 {
				t.Fatalf("at step %d key %d is hot, want %d to %d", c.step, k, c.first, c.first+9)
			}
		}
	}
	latest := NewLatest(10, 50)
	for _, n := range []uint64{10, 11, 500, 1 << 40} {
		latest.SetN(n)
		if k := latest.Next(s); k != n-1 || latest.N() != n {
			t.Errorf("of %d keys the latest is %d", latest.N(), k)
		}
	}
	cold := NewHotspot(10, 0.5, 0)
	for range 100 {
		if k := cold.Next(s); k < 5 {
			t.Fatalf("key %d is hot and has no accesses", k)
		}
	}
	// The scramble spreads: neighbours in rank are no neighbours in key, and
	// another salt spreads otherwise.
	a, b := NewScrambled(NewZipf(1e10, 0.99), 0), NewScrambled(NewZipf(1e10, 0.99), 1)
	near, same := 0, 0
	for r := range uint64(1000) {
		if d := int64(a.Key(r+1) - a.Key(r)); d > -1e7 && d < 1e7 {
			near++
		}
		if a.Key(r) == b.Key(r) {
			same++
		}
	}
	if near > 20 || same > 0 { // two in a thousand by chance
		t.Errorf("%d of 1000 neighbours stay near, %d keys stay the same under another salt", near, same)
	}
}

func TestNewChooserErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      uint64
		params map[string]float64
		want   string
	}{
		{"zipfain", 10, nil, `unknown distribution "zipfain", did you mean "zipfian": allowed are uniform, zipfian,`},
		{"q", 10, nil, `unknown distribution "q": allowed are`},
		{"uniform", 0, nil, "over 0 keys: allowed are 1 to 281474976710656"},
		{"uniform", MaxKeys + 1, nil, "allowed are 1 to"},
		{"uniform", 10, map[string]float64{"theta": 1}, `unknown parameter "theta": it has none`},
		{"zipfian", 10, map[string]float64{"tehta": 1}, `unknown parameter "tehta", did you mean "theta": allowed are theta`},
		{"zipfian", 10, map[string]float64{"theta": -0.5}, "theta is -0.5, allowed are numbers in [0, unbounded)"},
		{"zipfian", 10, map[string]float64{"theta": math.NaN()}, "theta is NaN"},
		{"zipfian", 10, map[string]float64{"theta": math.Inf(1)}, "theta is +Inf"},
		{"hotspot", 10, map[string]float64{"hot-data": 0}, "hot-data is 0, allowed are numbers in (0, 1]"},
		{"exponential", 10, map[string]float64{"percentile": 100}, "percentile is 100, allowed are numbers in (0, 100)"},
	} {
		if _, err := NewChooser(c.name, c.n, c.params); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s over %d with %v: error %v, want %q", c.name, c.n, c.params, err, c.want)
		}
	}
}

func TestChooserGolden(t *testing.T) {
	for name, want := range goldenKeys {
		c, err := NewChooser(name, 1_000_000_007, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := Seed(31).Stream(name)
		for i, w := range want {
			if got := c.Next(s); got != w {
				t.Errorf("%s: key %d is %d, want %d", name, i, got, w)
			}
		}
	}
}

func BenchmarkChooser(b *testing.B) {
	for _, c := range []struct {
		name  string
		n     uint64
		theta float64
	}{
		{"uniform", 1e6, 0},
		{"zipfian", 1e6, 0.5},
		{"zipfian", 1e6, 0.99},
		{"zipfian", 1e6, 1.2},
		{"zipfian", 1e10, 0.99},
		{"scrambled-zipfian", 1e6, 0.99},
		{"hotspot", 1e6, 0},
		{"latest", 1e6, 0.99},
		{"exponential", 1e6, 0},
	} {
		b.Run(fmt.Sprintf("%s/n=%g/theta=%g", c.name, float64(c.n), c.theta), func(b *testing.B) {
			var params map[string]float64
			if c.theta > 0 {
				params = map[string]float64{"theta": c.theta}
			}
			ch, err := NewChooser(c.name, c.n, params)
			if err != nil {
				b.Fatal(err)
			}
			s := Seed(1).Stream("b")
			b.ReportAllocs()
			for b.Loop() {
				ch.Next(s)
			}
		})
	}
	b.Run("set-up", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			NewZipf(1e10, 0.99)
		}
	})
}
