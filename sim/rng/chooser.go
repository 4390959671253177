package rng

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"interleave/internal/names"
)

// MaxKeys bounds the number of keys of a Chooser: up to it the continuous draws
// that are rounded to keys are fine enough for the rounding not to show.
const MaxKeys = uint64(1) << 48

// Chooser picks keys in [0, N), some more often than others. A draw takes
// constant time and a Chooser constant memory, whatever N.
//
// A chooser is a distribution of ranks and a bijection from ranks to keys. Rank
// 0 is the most likely, and no rank is likelier than one before it. It holds no
// state that a draw changes, so consumers may share one; what does change it
// (Stepper, Grower) is set by the consumer before its draws.
type Chooser interface {
	// N returns the number of keys.
	N() uint64
	// Next draws a key: Key(RankFrom(s, 0)).
	Next(s *Stream) uint64
	// RankFrom draws a rank, given that it is at least least. Should those
	// ranks have no probability at all, they are equally likely.
	// REQUIRES: least < N.
	RankFrom(s *Stream, least uint64) uint64
	// Key returns the key at rank, and no other rank has that key.
	// REQUIRES: rank < N.
	Key(rank uint64) uint64
}

// Stepper is a Chooser whose likely keys move with time. Time is counted in
// steps of the consumer's own, such as the number of its request: virtual time
// would differ between protocols, and the programs with it.
type Stepper interface{ Step(step uint64) }

// Grower is a Chooser whose likely keys are the last ones of a growing set.
type Grower interface{ SetN(n uint64) }

// Param describes one parameter of a chooser: a number in a range.
type Param struct {
	Name, Help       string
	Default          float64
	Min, Max         float64
	MinOpen, MaxOpen bool // the end itself is not allowed
}

// Range returns the range as it reads in help, such as "(0, 1]".
func (p Param) Range() string {
	left, right, end := "[", "]", "unbounded"
	if p.MinOpen {
		left = "("
	}
	if p.MaxOpen || math.IsInf(p.Max, 1) {
		right = ")"
	}
	if !math.IsInf(p.Max, 1) {
		end = strconv.FormatFloat(p.Max, 'g', -1, 64)
	}
	return left + strconv.FormatFloat(p.Min, 'g', -1, 64) + ", " + end + right
}

// Check returns an error that names the parameter, v and what is allowed when v
// is out of range.
func (p Param) Check(v float64) error {
	if v > p.Min && v < p.Max || v == p.Min && !p.MinOpen || v == p.Max && !p.MaxOpen && !math.IsInf(v, 0) {
		return nil
	}
	return fmt.Errorf("%s is %g, allowed are numbers in %s", p.Name, v, p.Range())
}

// ChooserInfo is a chooser's entry in the registry.
type ChooserInfo struct {
	Name, Help string
	Params     []Param
	make       func(n uint64, v []float64) Chooser
}

// Choosers lists the registered choosers in the order in which help shows them.
func Choosers() []ChooserInfo { return slices.Clone(choosers) }

var (
	theta = Param{
		Name: "theta", Help: "skew: rank k is drawn in proportion to 1/k^theta; 0 is uniform",
		Default: 0.99, Min: 0, Max: math.Inf(1),
	}
	hotData = Param{
		Name: "hot-data", Help: "share of the keys that is hot",
		Default: 0.2, Min: 0, Max: 1, MinOpen: true,
	}
	hotOps = Param{
		Name: "hot-ops", Help: "share of the accesses that go to the hot keys",
		Default: 0.8, Min: 0, Max: 1,
	}
)

var choosers = []ChooserInfo{
	{
		Name: "uniform", Help: "every key as likely",
		make: func(n uint64, _ []float64) Chooser { return NewUniform(n) },
	},
	{
		Name: "zipfian", Help: "ranked by key: key 0 is the hottest", Params: []Param{theta},
		make: func(n uint64, v []float64) Chooser { return NewZipf(n, v[0]) },
	},
	{
		Name: "scrambled-zipfian", Help: "zipfian, with the hot keys spread over all of them",
		Params: []Param{theta, {
			Name: "salt", Help: "which spreading", Default: 0, Min: 0, Max: 1 << 32,
		}},
		make: func(n uint64, v []float64) Chooser { return NewScrambled(NewZipf(n, v[0]), uint64(v[1])) },
	},
	{
		Name: "hotspot", Help: "a share of the accesses goes to a share of the keys, the first ones; uniform inside and outside",
		Params: []Param{hotData, hotOps},
		make:   func(n uint64, v []float64) Chooser { return NewHotspot(n, v[0], v[1]) },
	},
	{
		Name: "moving-hotspot", Help: "hotspot whose hot keys move on by their own number at times",
		Params: []Param{hotData, hotOps, {
			Name: "every", Help: "number of a client's requests after which its hot keys move on",
			Default: 1000, Min: 1, Max: 1e12,
		}},
		make: func(n uint64, v []float64) Chooser { return NewMovingHotspot(n, v[0], v[1], uint64(v[2])) },
	},
	{
		Name: "latest", Help: "zipfian by recency: the key inserted last is the hottest", Params: []Param{theta},
		make: func(n uint64, v []float64) Chooser { return NewLatest(n, v[0]) },
	},
	{
		Name: "exponential", Help: "exponentially less likely by key: key 0 is the hottest",
		Params: []Param{
			{
				Name: "percentile", Help: "percent of the accesses that go to the first keys",
				Default: 95, Min: 0, Max: 100, MinOpen: true, MaxOpen: true,
			},
			{
				Name: "fraction", Help: "share of the keys that are these first ones",
				Default: 0.8571428571, Min: 0, Max: 1, MinOpen: true,
			},
		},
		make: func(n uint64, v []float64) Chooser { return NewGeometric(n, v[0]/100, v[1]) },
	},
}

// FindChooser returns the entry named name, or an error that lists the names.
func FindChooser(name string) (ChooserInfo, error) {
	names := make([]string, len(choosers))
	for i, c := range choosers {
		if c.Name == name {
			return c, nil
		}
		names[i] = c.Name
	}
	return ChooserInfo{}, fmt.Errorf("unknown distribution %q%s: allowed are %s",
		name, didYouMean(name, names), strings.Join(names, ", "))
}

// NewChooser returns the chooser named name over n keys, 1 to MaxKeys.
// Parameters not in params have their defaults. The error names the parameter,
// its value and what is allowed.
func NewChooser(name string, n uint64, params map[string]float64) (Chooser, error) {
	info, err := FindChooser(name)
	if err != nil {
		return nil, err
	}
	if n == 0 || n > MaxKeys {
		return nil, fmt.Errorf("distribution %s over %d keys: allowed are 1 to %d", name, n, MaxKeys)
	}
	values := make([]float64, len(info.Params))
	known := make([]string, len(info.Params))
	for i, p := range info.Params {
		known[i], values[i] = p.Name, p.Default
		if v, given := params[p.Name]; given {
			if err := p.Check(v); err != nil {
				return nil, fmt.Errorf("distribution %s: %w", name, err)
			}
			values[i] = v
		}
	}
	for _, given := range slices.Sorted(maps.Keys(params)) {
		if !slices.Contains(known, given) {
			return nil, fmt.Errorf("distribution %s: unknown parameter %q%s: %s",
				name, given, didYouMean(given, known), allowedParams(known))
		}
	}
	return info.make(n, values), nil
}

func allowedParams(known []string) string {
	if len(known) == 0 {
		return "it has none"
	}
	return "allowed are " + strings.Join(known, ", ")
}

// didYouMean returns `, did you mean "x"` for the name nearest to got, or
// nothing when none is near.
func didYouMean(got string, known []string) string {
	if n := names.Nearest(got, known); n != "" {
		return fmt.Sprintf(", did you mean %q", n)
	}
	return ""
}

// ErrExhausted means that more distinct keys were asked for than there are.
var ErrExhausted = errors.New("no key left to draw")
