package rng

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"interleave/internal/units"
)

// distForms is what ParseDist reads, for messages and help.
const distForms = `DURATION, constant:DURATION, exp:MEAN, lognormal:MEDIAN,SIGMA, empirical:DURATION[*WEIGHT],... or uniform:LEAST,GREATEST`

// DistInfo describes one family of distributions for help and reference.
type DistInfo struct {
	Name string // as ParseDist reads it
	Form string // its arguments
	Help string
}

// Dists lists the families in the order in which help shows them.
func Dists() []DistInfo {
	return []DistInfo{
		{"constant", "constant:DURATION", "always the same; DURATION alone means this too"},
		{"exp", "exp:MEAN", "exponential"},
		{"lognormal", "lognormal:MEDIAN,SIGMA", fmt.Sprintf("MEDIAN times e to the power of a normal of mean 0 and deviation SIGMA, from 0 to %g", MaxSigma)},
		{"uniform", "uniform:LEAST,GREATEST", "every nanosecond between as likely, ends included"},
		{"empirical", "empirical:DURATION[*WEIGHT],...", "the durations listed, in proportion to their weights (whole numbers, default 1)"},
	}
}

// ParseDist reads a distribution as written in a spec: "2ms" or "constant:2ms",
// "exp:1ms", "lognormal:1ms,0.5" (median, sigma), "uniform:1ms,3ms",
// "empirical:1ms,2ms*3,9ms" (2ms as likely as three others). Durations are
// Go's, from 0 to 1000h. The error names the value and what is allowed.
func ParseDist(s string) (Dist, error) {
	d, err := parseDist(strings.TrimSpace(s))
	if err != nil {
		return Dist{}, fmt.Errorf("distribution %q: %w", s, err)
	}
	return d, nil
}

func parseDist(s string) (Dist, error) {
	name, rest, found := strings.Cut(s, ":")
	if !found {
		if s == "" || (s[0] < '0' || s[0] > '9') && s[0] != '.' && s[0] != '-' && s[0] != '+' {
			return Dist{}, errors.New("want " + distForms)
		}
		d, err := parseDuration(s)
		return Dist{a: d}, err
	}
	args := strings.Split(rest, ",")
	switch name {
	case "constant":
		d, err := parseDurations(args, 1)
		return Dist{a: d[0]}, err
	case "exp", "exponential":
		d, err := parseDurations(args, 1)
		if err != nil {
			return Dist{}, err
		}
		return Exponential(d[0]), nil
	case "lognormal":
		return parseLognormal(args)
	case "uniform":
		d, err := parseDurations(args, 2)
		if err != nil {
			return Dist{}, err
		}
		if d[0] > d[1] {
			return Dist{}, fmt.Errorf("the least, %v, is above the greatest, %v", d[0], d[1])
		}
		return Uniform(d[0], d[1]), nil
	case "empirical":
		return parseEmpirical(args)
	default:
		return Dist{}, fmt.Errorf("unknown family %q: want %s", name, distForms)
	}
}

// parseDurations reads exactly want durations; the slice has that length even
// with an error.
func parseDurations(args []string, want int) ([]time.Duration, error) {
	out := make([]time.Duration, want)
	if len(args) != want {
		return out, fmt.Errorf("%d arguments, want %d: %s", len(args), want, distForms)
	}
	for i, a := range args {
		d, err := parseDuration(a)
		if err != nil {
			return out, err
		}
		out[i] = d
	}
	return out, nil
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil {
		return 0, fmt.Errorf("%q is no duration: want a number with a unit, such as 250us, 2ms or 1.5s", s)
	}
	if d < 0 || d > LongestParam {
		return 0, fmt.Errorf("%v is out of range: allowed are 0s to %v", d, LongestParam)
	}
	return d, nil
}

func parseLognormal(args []string) (Dist, error) {
	if len(args) != 2 {
		return Dist{}, fmt.Errorf("%d arguments, want lognormal:MEDIAN,SIGMA", len(args))
	}
	median, err := parseDuration(args[0])
	if err != nil {
		return Dist{}, err
	}
	sigma, err := strconv.ParseFloat(strings.TrimSpace(args[1]), 64)
	if err != nil || !(sigma >= 0 && sigma <= MaxSigma) {
		return Dist{}, fmt.Errorf("sigma %q: allowed are numbers from 0 to %g", args[1], MaxSigma)
	}
	// Not -0, so that equal distributions are equal values.
	return Lognormal(median, math.Abs(sigma)), nil
}

func parseEmpirical(args []string) (Dist, error) {
	values := make([]Weighted, len(args))
	var total uint64
	for i, a := range args {
		text, weight, weighted := strings.Cut(a, "*")
		d, err := parseDuration(text)
		if err != nil {
			return Dist{}, err
		}
		values[i] = Weighted{Value: d, Weight: 1}
		if weighted {
			w, err := strconv.ParseUint(strings.TrimSpace(weight), 10, 62)
			if err != nil || w == 0 {
				return Dist{}, fmt.Errorf("weight %q: allowed are whole numbers from 1, their sum below 2^62", weight)
			}
			values[i].Weight = w
		}
		if total += values[i].Weight; total >= 1<<62 {
			return Dist{}, fmt.Errorf("the weights up to %q sum to 2^62 or more", a)
		}
	}
	return Empirical(values...), nil
}

// String returns d as ParseDist reads it: ParseDist(d.String()) equals d.
func (d Dist) String() string {
	switch d.shape {
	case ShapeConstant:
		return units.Duration(d.a)
	case ShapeExponential:
		return "exp:" + units.Duration(d.a)
	case ShapeLognormal:
		return "lognormal:" + units.Duration(d.a) + "," + strconv.FormatFloat(math.Float64frombits(d.b), 'g', -1, 64)
	case ShapeUniform:
		return "uniform:" + units.Duration(d.a) + "," + units.Duration(d.a+time.Duration(d.b))
	case ShapeEmpirical:
		var b strings.Builder
		for i, v := range d.table.values {
			b.WriteString([]string{"empirical:", ","}[min(i, 1)])
			b.WriteString(units.Duration(v))
			if w := d.table.weights[i]; w != 1 {
				b.WriteString("*" + strconv.FormatUint(w, 10))
			}
		}
		return b.String()
	default:
		panic("rng: unknown shape of a distribution")
	}
}

// MarshalText writes d as String does, in JSON, YAML and flags.
func (d Dist) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads d as ParseDist does.
func (d *Dist) UnmarshalText(text []byte) error {
	e, err := ParseDist(string(text))
	if err != nil {
		return err
	}
	*d = e
	return nil
}
