package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"interleave/internal/units"
	"interleave/sim/rng"
	"interleave/txnproto"
)

// FieldKind is the type of a setting's value.
type FieldKind uint8

// The kinds.
const (
	KindWhole    FieldKind = iota // a whole number
	KindNumber                    // a number
	KindBool                      // true or false
	KindChoice                    // one of Choices
	KindText                      // anything
	KindDuration                  // a Go duration: 10ms
	KindDist                      // a distribution of durations: exp:2ms
	KindBytes                     // bytes per second: 125MB
	KindMap                       // name=value, any number of them
)

// Field is one setting: the single source of its flag, help, schema, check and
// place in a spec file.
type Field struct {
	Name    string // of the flag, and in a spec file
	Group   string // heading in the help
	Help    string // one line, without a full stop
	Default string // as text; "" when unset, or when another registry has it
	Kind    FieldKind
	Min     float64 // KindWhole, KindNumber
	Max     float64
	Choices func() []string // KindChoice: what is allowed
	Many    bool            // several values, separated by commas, make several runs
	Outside bool            // where files go: no part of what the run is

	shorthand bool                      // for the workload's parameter of the same name
	with      *txnproto.TimestampSource // runs with another have no use for it; nil: all use it
	skewed    bool                      // nor have those whose clocks are right
	set       func(*RunSpec, string) error
	get       func(*RunSpec) string
}

// Allowed says in words what values the setting takes.
func (f *Field) Allowed() string {
	switch f.Kind {
	case KindWhole, KindNumber:
		what := "a whole number"
		if f.Kind == KindNumber {
			what = "a number"
		}
		if math.IsInf(f.Max, 1) {
			return what + " from " + number(f.Min) + " up"
		}
		return what + " from " + number(f.Min) + " to " + number(f.Max)
	case KindBool:
		return "true or false"
	case KindChoice:
		return "one of " + strings.Join(f.Choices(), ", ")
	case KindText:
		return "text"
	case KindDuration:
		return "a duration such as 10ms or 1.5s, from 0s to " + units.Duration(rng.LongestParam)
	case KindDist:
		return "a distribution such as 2ms, exp:2ms, lognormal:2ms,0.5 or uniform:1ms,3ms"
	case KindBytes:
		return "a whole number of bytes per second, such as 125MB, or 0 for no limit"
	case KindMap:
		return "name=value"
	default:
		panic("sim: unknown kind of field")
	}
}

// number writes bounds without an exponent while they are readable.
func number(x float64) string {
	if x == math.MaxUint64 {
		return strconv.FormatUint(math.MaxUint64, 10)
	}
	if math.Abs(x) < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// first is the default, the first where the default is several.
func (f *Field) first() string {
	if f.Many {
		first, _, _ := strings.Cut(f.Default, ",")
		return first
	}
	return f.Default
}

func (f *Field) bad(value string) error {
	return fmt.Errorf("%s: %q is not allowed: want %s", f.Name, value, f.Allowed())
}

// json writes the field's value with its type.
func (f *Field) json(r *RunSpec) ([]byte, error) {
	text := f.get(r)
	switch f.Kind {
	case KindWhole, KindNumber, KindBool:
		return []byte(text), nil
	case KindMap:
		m := map[string]string{}
		for _, kv := range strings.Split(text, "\n") {
			k, v, _ := strings.Cut(kv, "=")
			m[k] = v
		}
		return json.Marshal(m)
	default:
		return json.Marshal(text)
	}
}

// setJSON reads what json wrote.
func (f *Field) setJSON(r *RunSpec, v json.RawMessage) error {
	if f.Kind == KindMap {
		var m map[string]string
		if err := json.Unmarshal(v, &m); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		for _, k := range sortedKeys(m) {
			if err := f.set(r, k+"="+m[k]); err != nil {
				return err
			}
		}
		return nil
	}
	text := string(v)
	if len(v) > 0 && v[0] == '"' {
		if err := json.Unmarshal(v, &text); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return f.set(r, text)
}

// The functions below complete a field's description by the way to its value.

func whole[T ~int | ~int64 | ~uint64](f Field, p func(*RunSpec) *T) Field {
	f.Kind = KindWhole
	f.set = func(r *RunSpec, s string) error {
		n, err := parseWhole(s)
		if err != nil || float64(n) < f.Min || float64(n) > f.Max {
			return f.bad(s)
		}
		*p(r) = T(n)
		return nil
	}
	f.get = func(r *RunSpec) string { return strconv.FormatUint(uint64(*p(r)), 10) }
	return f
}

// parseWhole reads a whole number >= 0; underscores may group its digits.
func parseWhole(s string) (uint64, error) {
	return strconv.ParseUint(strings.ReplaceAll(s, "_", ""), 10, 64)
}

func parseNumber(s string) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
		err = errors.New("not finite")
	}
	return x, err
}

func decimal(f Field, p func(*RunSpec) *float64) Field {
	f.Kind = KindNumber
	f.set = func(r *RunSpec, s string) error {
		x, err := parseNumber(s)
		if err != nil || x < f.Min || x > f.Max {
			return f.bad(s)
		}
		*p(r) = x
		return nil
	}
	f.get = func(r *RunSpec) string { return strconv.FormatFloat(*p(r), 'g', -1, 64) }
	return f
}

func boolean(f Field, p func(*RunSpec) *bool) Field {
	f.Kind = KindBool
	f.set = func(r *RunSpec, s string) error {
		if s != "true" && s != "false" {
			return f.bad(s)
		}
		*p(r) = s == "true"
		return nil
	}
	f.get = func(r *RunSpec) string { return strconv.FormatBool(*p(r)) }
	return f
}

func text(f Field, p func(*RunSpec) *string) Field {
	f.Kind = KindText
	f.set = func(r *RunSpec, s string) error {
		*p(r) = s
		return nil
	}
	f.get = func(r *RunSpec) string { return *p(r) }
	return f
}

func choice(f Field, p func(*RunSpec) *string) Field {
	f.Kind = KindChoice
	f.set = func(r *RunSpec, s string) error {
		if !slices.Contains(f.Choices(), s) {
			return unknownName(f.Name, s, f.Choices())
		}
		*p(r) = s
		return nil
	}
	f.get = func(r *RunSpec) string { return *p(r) }
	return f
}

func duration(f Field, p func(*RunSpec) *time.Duration) Field {
	f.Kind = KindDuration
	f.set = func(r *RunSpec, s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 || d > rng.LongestParam {
			return f.bad(s)
		}
		*p(r) = d
		return nil
	}
	f.get = func(r *RunSpec) string { return units.Duration(*p(r)) }
	return f
}

func dist(f Field, p func(*RunSpec) *rng.Dist) Field {
	f.Kind = KindDist
	f.set = func(r *RunSpec, s string) error {
		d, err := rng.ParseDist(s)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		*p(r) = d
		return nil
	}
	f.get = func(r *RunSpec) string { return p(r).String() }
	return f
}

// Unset is a number of bytes per second that was not given.
const Unset = -1

// byteUnits are the suffixes of KindBytes, the longest that divides first.
var byteUnits = []struct {
	suffix string
	size   int64
}{{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}

func perSecond(f Field, p func(*RunSpec) *int64) Field {
	f.Kind = KindBytes
	f.set = func(r *RunSpec, s string) error {
		digits, size := s, int64(1)
		for _, u := range byteUnits {
			if d, ok := strings.CutSuffix(s, u.suffix); ok {
				digits, size = d, u.size
				break
			}
		}
		n, err := parseWhole(digits)
		if err != nil || n > uint64(math.MaxInt64/size) {
			return f.bad(s)
		}
		*p(r) = int64(n) * size
		return nil
	}
	f.get = func(r *RunSpec) string {
		n := *p(r)
		if n == Unset {
			return ""
		}
		for _, u := range byteUnits {
			if n > 0 && n%u.size == 0 && u.size > 1 {
				return strconv.FormatInt(n/u.size, 10) + u.suffix
			}
		}
		return strconv.FormatInt(n, 10)
	}
	return f
}

func pairs(f Field, p func(*RunSpec) *map[string]string, hide map[string]bool) Field {
	f.Kind = KindMap
	f.set = func(r *RunSpec, s string) error {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" || strings.Contains(s, "\n") {
			return f.bad(s)
		}
		if *p(r) == nil {
			*p(r) = map[string]string{}
		}
		(*p(r))[name] = value
		return nil
	}
	f.get = func(r *RunSpec) string {
		var lines []string
		for _, k := range sortedKeys(*p(r)) {
			if !hide[k] {
				lines = append(lines, k+"="+(*p(r))[k])
			}
		}
		return strings.Join(lines, "\n")
	}
	return f
}

// ofWorkload makes a field that is a parameter of the workload with a flag of
// its own. What the workload allows is checked with its other parameters; check
// looks at what holds for every workload.
func ofWorkload(f Field, kind FieldKind, check func(string) bool) Field {
	f.Kind, f.shorthand = kind, true
	shorthands[f.Name] = true
	f.set = func(r *RunSpec, s string) error {
		switch {
		case s == "":
			delete(r.WorkloadParam, f.Name)
			return nil
		case f.Choices != nil && !slices.Contains(f.Choices(), s):
			return unknownName(f.Name, s, f.Choices())
		case check != nil && !check(s):
			return f.bad(s)
		}
		s = canonical(kind, s)
		if r.WorkloadParam == nil {
			r.WorkloadParam = map[string]string{}
		}
		r.WorkloadParam[f.Name] = s
		return nil
	}
	f.get = func(r *RunSpec) string { return r.WorkloadParam[f.Name] }
	return f
}

// canonical writes a checked number as JSON has it.
func canonical(kind FieldKind, s string) string {
	switch kind {
	case KindWhole:
		n, err := parseWhole(s)
		if err == nil {
			return strconv.FormatUint(n, 10)
		}
	case KindNumber:
		x, err := parseNumber(s)
		if err == nil {
			return strconv.FormatFloat(x, 'g', -1, 64)
		}
	default:
	}
	return s
}

func wholeShort(f Field) Field {
	return ofWorkload(f, KindWhole, func(s string) bool {
		n, err := parseWhole(s)
		return err == nil && float64(n) >= f.Min && float64(n) <= f.Max
	})
}

func realShort(f Field) Field {
	return ofWorkload(f, KindNumber, func(s string) bool {
		x, err := parseNumber(s)
		return err == nil && x >= f.Min && x <= f.Max
	})
}
