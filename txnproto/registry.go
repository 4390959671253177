package txnproto

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Param is one parameter of a protocol or a workload: the single source of its
// flag, help, schema and check.
type Param struct {
	Name    string
	Kind    ParamKind
	Default string
	Choices []string // for ParamChoice
	Min     float64  // for ParamInt and ParamFloat, and for ParamDuration in nanoseconds
	Max     float64  // 0 with Min 0: no bound
	Help    string   // one line
}

// ParamKind is the type of a parameter's value.
type ParamKind uint8

// The kinds.
const (
	ParamInt ParamKind = iota
	ParamFloat
	ParamBool
	ParamDuration
	ParamChoice
	ParamString
)

// Params are parameter values by name, as given; absent ones have their default.
type Params struct {
	defs   []Param
	values map[string]string
}

// NewParams checks given values against their definitions. The error names the
// parameter, the value and what is allowed.
func NewParams(owner string, defs []Param, given map[string]string) (Params, error) {
	p := Params{defs, map[string]string{}}
	for _, d := range defs {
		p.values[d.Name] = d.Default
	}
	names := make([]string, 0, len(given))
	for n := range given { // order: sorted below
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		d, ok := p.def(n)
		if !ok {
			known := make([]string, len(defs))
			for i := range defs {
				known[i] = defs[i].Name
			}
			if len(known) == 0 {
				return p, fmt.Errorf("%s: unknown parameter %q: it has none", owner, n)
			}
			return p, fmt.Errorf("%s: unknown parameter %q: it has %s", owner, n, strings.Join(known, ", "))
		}
		if err := d.check(given[n]); err != nil {
			return p, fmt.Errorf("%s: parameter %s: %w", owner, n, err)
		}
		p.values[n] = given[n]
	}
	return p, nil
}

func (p Params) def(name string) (Param, bool) {
	for _, d := range p.defs {
		if d.Name == name {
			return d, true
		}
	}
	return Param{}, false
}

func (d Param) check(v string) error {
	var x float64
	var err error
	switch d.Kind {
	case ParamInt:
		var n int64
		n, err = strconv.ParseInt(v, 10, 64)
		x = float64(n)
	case ParamFloat:
		x, err = strconv.ParseFloat(v, 64)
	case ParamBool:
		_, err = strconv.ParseBool(v)
	case ParamDuration:
		var t time.Duration
		t, err = time.ParseDuration(v)
		if err == nil && t < 0 {
			err = fmt.Errorf("negative")
		}
		x = float64(t)
	case ParamChoice:
		for _, c := range d.Choices {
			if c == v {
				return nil
			}
		}
		return fmt.Errorf("%q is not one of %s", v, strings.Join(d.Choices, ", "))
	case ParamString:
	default:
		panic("txnproto: unknown parameter kind")
	}
	if err != nil {
		return fmt.Errorf("%q: want %s", v, d.Allowed())
	}
	bounded := d.Kind == ParamInt || d.Kind == ParamFloat || d.Kind == ParamDuration
	if bounded && !(d.Min == 0 && d.Max == 0) && !(x >= d.Min && x <= d.Max) {
		return fmt.Errorf("%s: want %s", v, d.Allowed())
	}
	return nil
}

// Allowed says in words what values the parameter takes.
func (d Param) Allowed() string {
	bounds := ""
	if d.Min != 0 || d.Max != 0 {
		bounds = fmt.Sprintf(" from %v to %v", d.Min, d.Max)
	}
	switch d.Kind {
	case ParamInt:
		return "a whole number" + bounds
	case ParamFloat:
		return "a number" + bounds
	case ParamBool:
		return "true or false"
	case ParamDuration:
		if bounds != "" {
			bounds = fmt.Sprintf(" from %v to %v", time.Duration(d.Min), time.Duration(d.Max))
		}
		return "a duration such as 10ms" + bounds
	case ParamChoice:
		return "one of " + strings.Join(d.Choices, ", ")
	case ParamString:
		return "text"
	default:
		panic("txnproto: unknown parameter kind")
	}
}

func (p Params) get(name string, k ParamKind) string {
	d, ok := p.def(name)
	if !ok || d.Kind != k {
		panic("txnproto: no such parameter: " + name)
	}
	return p.values[name]
}

// Int returns a ParamInt's value.
func (p Params) Int(name string) int {
	n, err := strconv.Atoi(p.get(name, ParamInt))
	return must(n, err)
}

// Float returns a ParamFloat's value.
func (p Params) Float(name string) float64 {
	x, err := strconv.ParseFloat(p.get(name, ParamFloat), 64)
	return must(x, err)
}

// Bool returns a ParamBool's value.
func (p Params) Bool(name string) bool {
	b, err := strconv.ParseBool(p.get(name, ParamBool))
	return must(b, err)
}

// Duration returns a ParamDuration's value.
func (p Params) Duration(name string) time.Duration {
	d, err := time.ParseDuration(p.get(name, ParamDuration))
	return must(d, err)
}

// Choice returns a ParamChoice's value.
func (p Params) Choice(name string) string { return p.get(name, ParamChoice) }

// String returns a ParamString's value.
func (p Params) String(name string) string { return p.get(name, ParamString) }

func must[T any](v T, err error) T {
	if err != nil {
		panic("txnproto: a default value breaks its own definition: " + err.Error())
	}
	return v
}

// Protocol is a registered concurrency control.
type Protocol struct {
	Name    string
	Family  string // "two-phase locking", "timestamp ordering", "optimistic", …
	Promise string // the isolation level, as txnproto/history writes it, with the default parameters
	Help    string // one line
	Source  string // the publication it follows
	Params  []Param

	// DropReadOnly says that a read-only participant may release everything when
	// it has prepared. Without it the branch stays until the decision.
	DropReadOnly bool

	// Versioning says how versions are numbered and whether old ones are kept.
	Versioning Versioning

	// Declares makes the session lock what a program declares, in the order of LockSet, with
	// LockShared and LockExclusive, before its first operation.
	Declares bool

	// Sequenced makes the session ask for a place in a global order, with all that the
	// program declares (Claims), before its first operation: see Sequence, Txn.Place.
	// Every shard claimed is told when an attempt ends, been to or not. A protocol of
	// this kind has a parameter epoch, a duration: how long a sequencer collects.
	Sequenced bool

	// CoordinatorLog, when it says yes, leaves the log entry of a participant's prepare
	// out: votes carry the writes, and the coordinator's entry holds those of all shards.
	// A new leader does not serve before every other shard has told it of the commits
	// that it is in. It needs DropReadOnly: reads are not taken up again. nil: no.
	CoordinatorLog func(p Params) bool

	// WaitClauses says that operations wait, or do not, as their Wait and Timeout have it.
	// Without it they do whatever the protocol does with an operation that has neither.
	WaitClauses bool

	// TellReadOnly makes the session tell whether a program declares nothing but
	// reads (Txn.ReadOnly). One that is no Declarer counts as an updater.
	TellReadOnly bool

	// Draws says when transactions draw timestamps.
	Draws Draws

	// ClockCommit lets it run on loose clocks although it draws at commit: a snapshot
	// is the reading of the client's clock, operations wait until their machine's clock
	// is as far, each branch prepares at its machine's reading (Host.PrepareTS), and
	// the greatest of these is the commit's timestamp.
	ClockCommit bool

	// Agree merges a branch's vote into the sum of those before it, zero at first, and
	// may end the commit with a reason; nil: votes carry nothing. The order of votes
	// must not matter.
	Agree func(sum, vote Vote) (Vote, AbortReason)

	// PromiseWith returns the level promised under p, for a protocol whose parameters
	// change it; nil: it is Promise under all. Promised tells.
	PromiseWith func(p Params) string

	// New makes the controller of one shard.
	New func(h Host, p Params) Controller
}

// Promised is the isolation level that the protocol promises under params.
func (p *Protocol) Promised(params Params) string {
	if p.PromiseWith == nil {
		return p.Promise
	}
	return p.PromiseWith(params)
}

// Exposes reports whether writes can be seen before they are committed: the controllers
// are Exposers, and sessions tell them of lock points as far as programs foretell them.
func (p *Protocol) Exposes() bool { return p.Versioning == VersionByExposure }

// Versioning is how a protocol's store numbers and keeps versions.
type Versioning uint8

// The ways.
const (
	VersionLatest     Versioning = iota // 1, 2, 3 … by order of installation; only the newest is kept
	VersionByCommit                     // by CommitTS; old versions are kept while a snapshot may need them
	VersionByBegin                      // by TS of the writer; likewise
	VersionByExposure                   // by Put.Version, which an Exposer has set; only the newest is kept
)

// KeepsOld reports whether versions are kept that newer ones have superseded.
func (v Versioning) KeepsOld() bool {
	switch v {
	case VersionByCommit, VersionByBegin:
		return true
	case VersionLatest, VersionByExposure:
		return false
	default:
		panic("txnproto: unknown versioning")
	}
}

var protocols []*Protocol

// Register adds a protocol to the list that the command, its help and the
// reference are made from. It panics on a name taken twice.
func Register(p *Protocol) {
	if _, ok := ProtocolNamed(p.Name); ok {
		panic("txnproto: protocol registered twice: " + p.Name)
	}
	if _, err := NewParams(p.Name, p.Params, nil); err != nil {
		panic(err)
	}
	for _, d := range p.Params {
		if err := d.check(d.Default); err != nil {
			panic("txnproto: " + p.Name + "." + d.Name + ": default: " + err.Error())
		}
	}
	if params, _ := NewParams(p.Name, p.Params, nil); p.Promised(params) != p.Promise {
		panic("txnproto: " + p.Name + " promises " + p.Promised(params) + " with its default parameters, and " + p.Promise)
	}
	if p.CoordinatorLog != nil && !p.DropReadOnly {
		panic("txnproto: " + p.Name + " leaves participants' log entries out and has to protect what was read")
	}
	if p.Sequenced {
		if d, ok := (Params{defs: p.Params}).def("epoch"); !ok || d.Kind != ParamDuration {
			panic("txnproto: " + p.Name + " sequences and has no duration named epoch")
		}
	}
	protocols = append(protocols, p)
	sort.SliceStable(protocols, func(i, j int) bool { return protocols[i].Name < protocols[j].Name })
}

// Protocols returns the registered protocols in order of name.
func Protocols() []*Protocol { return protocols }

// ProtocolNamed returns the protocol of that name.
func ProtocolNamed(name string) (*Protocol, bool) {
	for _, p := range protocols {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}
