package workloads

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// A mix is a set of transaction classes; a class says how long its transactions
// are and in what shares their operations are of each kind.

// shareKinds are the kinds of operation that have a share, in the order in which
// shares are written and accumulated. The parameter of a share has the name of
// its kind.
var shareKinds = []txnproto.OpKind{
	txnproto.Read, txnproto.ReadForUpdate, txnproto.Write, txnproto.Modify,
	txnproto.Insert, txnproto.Delete, txnproto.Scan,
}

var shareHelp = map[txnproto.OpKind]string{
	txnproto.Read:          "read; not given: what the others leave",
	txnproto.ReadForUpdate: "read with the intention to write",
	txnproto.Write:         "write a new value without reading",
	txnproto.Modify:        "read and write in one step",
	txnproto.Insert:        "add a row",
	txnproto.Delete:        "remove a row",
	txnproto.Scan:          "read a range",
}

// shares are the shares of the operations by kind. They sum to 1.
type shares [txnproto.NumOpKinds]float64

// class is one transaction class.
type class struct {
	name           string
	opsMin, opsMax int
	shares         shares
	// upto[i] is the share of shareKinds[0..i] in the words of a stream; a word
	// belongs to the first kind whose upto is above it.
	upto [txnproto.NumOpKinds]uint64
}

// mix is the classes with their weights.
type mix struct {
	classes []class
	upto    []float64 // cumulative weights; the last is the sum
}

// coreMixes are the core workloads of YCSB (Cooper et al., "Benchmarking cloud
// serving systems with YCSB", SoCC 2010) by letter: what they share out, and
// the distribution of requests they are defined with.
var coreMixes = map[string]struct {
	shares       string
	distribution string
}{
	"a": {"read=0.5,update=0.5", "scrambled-zipfian"},
	"b": {"read=0.95,update=0.05", "scrambled-zipfian"},
	"c": {"read=1", "scrambled-zipfian"},
	"d": {"read=0.95,insert=0.05", "latest"},
	"e": {"scan=0.95,insert=0.05", "scrambled-zipfian"},
	"f": {"read=0.5,rmw=0.5", "scrambled-zipfian"},
}

// newShares completes the given shares: a share not given is 0, but the reads'
// is what the others leave.
func newShares(given map[string]string) (shares, error) {
	var out shares
	sum := 0.0
	for _, k := range shareKinds {
		text, ok := given[k.String()]
		if !ok {
			continue
		}
		x, err := parseShare(k.String(), text)
		if err != nil {
			return out, err
		}
		out[k] = x
		sum += x
	}
	const rounding = 1e-9
	if _, ok := given[txnproto.Read.String()]; !ok && sum <= 1 {
		out[txnproto.Read] = 1 - sum
		sum = 1
	}
	if math.Abs(sum-1) > rounding {
		return out, fmt.Errorf("the shares of the operations (%s) sum to %.9g, want 1", out, sum)
	}
	return out, nil
}

// String lists the shares that are not 0.
func (s shares) String() string {
	var parts []string
	for _, k := range shareKinds {
		if s[k] > 0 {
			parts = append(parts, k.String()+"="+strconv.FormatFloat(s[k], 'g', 6, 64))
		}
	}
	return strings.Join(parts, ",")
}

func newClass(name string, opsMin, opsMax int, s shares) class {
	c := class{name: name, opsMin: opsMin, opsMax: opsMax, shares: s}
	sum := 0.0
	last := 0
	for i, k := range shareKinds {
		sum += s[k]
		if s[k] > 0 {
			last = i
		}
		c.upto[i] = words(sum)
	}
	for i := last; i < len(c.upto); i++ { // rounding must not leave a gap at the end
		c.upto[i] = math.MaxUint64
	}
	return c
}

// words returns the number of 64-bit words that make the share x of them all.
func words(x float64) uint64 {
	if x >= 1 {
		return math.MaxUint64
	}
	return uint64(float64(x * (1 << 64)))
}

// kind returns the kind of operation that the random word u stands for.
func (c *class) kind(u uint64) txnproto.OpKind {
	for i, upto := range c.upto {
		if u < upto {
			return shareKinds[i]
		}
	}
	return c.kind(u - 1) // the one word that no share has: MaxUint64
}

// length draws the number of operations of a transaction.
func (c *class) length(s *rng.Stream) int {
	if c.opsMin == c.opsMax {
		return c.opsMin
	}
	return c.opsMin + int(s.Uint64n(uint64(c.opsMax-c.opsMin+1)))
}

// parseClasses reads classes as written in a spec, each NAME:WEIGHT:SETTINGS and
// separated by semicolons, where the settings are ops (a number or MIN-MAX) and
// shares of operations:
//
//	short:9:ops=4,read=0.5,update=0.5; long:1:ops=40,read=1
//
// What a class does not set it has from base; with one share set, those not set
// are as in newShares.
func parseClasses(text string, base class) (mix, error) {
	var m mix
	for part := range strings.SplitSeq(text, ";") {
		if err := m.parseClass(strings.TrimSpace(part), base); err != nil {
			return m, fmt.Errorf("classes: %w", err)
		}
	}
	return m, nil
}

const classForm = "want NAME:WEIGHT:ops=N,read=SHARE,…; such as short:9:ops=4; long:1:ops=40,read=1"

func (m *mix) parseClass(text string, base class) error {
	fields := strings.SplitN(text, ":", 3)
	name := strings.TrimSpace(fields[0])
	if name == "" || len(fields) < 2 {
		return fmt.Errorf("%q: %s", text, classForm)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("name %q: allowed are printable characters", name)
	}
	for i := range m.classes {
		if m.classes[i].name == name {
			return fmt.Errorf("%q is there twice", name)
		}
	}
	if len(m.classes) == maxClasses {
		return fmt.Errorf("%q is one too many: allowed are %d", name, maxClasses)
	}
	weight, err := strconv.ParseFloat(strings.TrimSpace(fields[1]), 64)
	if err != nil || !(weight > 0 && weight <= 1e9) {
		return fmt.Errorf("%s: weight %q, allowed are numbers above 0 to 1e9", name, fields[1])
	}
	c := base
	c.name = name
	if len(fields) == 3 {
		if c, err = parseSettings(fields[2], c); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	m.add(c, weight)
	return nil
}

// maxClasses bounds the classes of one workload: more make no readable report.
const maxClasses = 32

func (m *mix) add(c class, weight float64) {
	sum := weight
	if n := len(m.upto); n > 0 {
		sum += m.upto[n-1]
	}
	m.classes = append(m.classes, c)
	m.upto = append(m.upto, sum)
}

func parseSettings(text string, c class) (class, error) {
	given := map[string]string{}
	opsGiven := false
	for setting := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(setting, "=")
		name = strings.TrimSpace(name)
		if !ok {
			return c, fmt.Errorf("%q: %s", setting, classForm)
		}
		if _, twice := given[name]; twice || name == "ops" && opsGiven {
			return c, fmt.Errorf("%s is set twice", name)
		}
		if name == "ops" {
			opsGiven = true
			var err error
			if c.opsMin, c.opsMax, err = parseOps(value); err != nil {
				return c, err
			}
			continue
		}
		if !isShare(name) {
			return c, fmt.Errorf("unknown setting %q: allowed are ops, %s", name, strings.Join(shareNames(), ", "))
		}
		given[name] = value
	}
	s := c.shares
	if len(given) > 0 {
		var err error
		if s, err = newShares(given); err != nil {
			return c, err
		}
	}
	return newClass(c.name, c.opsMin, c.opsMax, s), nil
}

// parseOps reads a number of operations, or the least and the greatest: 4-8.
func parseOps(text string) (least, most int, err error) {
	a, b, ranged := strings.Cut(strings.TrimSpace(text), "-")
	if !ranged {
		b = a
	}
	least, errA := strconv.Atoi(strings.TrimSpace(a))
	most, errB := strconv.Atoi(strings.TrimSpace(b))
	if errA != nil || errB != nil || least < 1 || most > maxOps || least > most {
		return 0, 0, fmt.Errorf("ops is %q, allowed are whole numbers from 1 to %d, or two such as 4-8", text, maxOps)
	}
	return least, most, nil
}

func shareNames() []string {
	names := make([]string, len(shareKinds))
	for i, k := range shareKinds {
		names[i] = k.String()
	}
	return names
}

func isShare(name string) bool {
	for _, k := range shareKinds {
		if k.String() == name {
			return true
		}
	}
	return false
}

// pick draws a class.
func (m *mix) pick(s *rng.Stream) txnproto.ClassID {
	last := len(m.upto) - 1
	if last == 0 {
		return 0
	}
	x := float64(s.Float64() * m.upto[last])
	for i, upto := range m.upto {
		if x < upto {
			return txnproto.ClassID(i)
		}
	}
	return txnproto.ClassID(last)
}

// has reports whether some class has operations of kind k.
func (m *mix) has(k txnproto.OpKind) bool {
	for i := range m.classes {
		if m.classes[i].shares[k] > 0 {
			return true
		}
	}
	return false
}
