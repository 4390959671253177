// Package sim is the public entry: a Spec says what to compare, Expand makes
// the single runs of it, and Run carries one out and returns what was measured.
package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"interleave/internal/units"
	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/workloads"
)

// Spec is all settings of one comparison. Settings that take several values
// make several runs, one for each combination. The zero Spec is not usable: see
// NewSpec.
type Spec struct {
	base  RunSpec
	lists map[string][]string // values of the fields that take several
	given map[string]bool     // set by the user
	notes []string
}

// NewSpec returns the spec of the default comparison.
func NewSpec() *Spec {
	s := &Spec{base: RunSpec{Bandwidth: Unset}, lists: map[string][]string{}, given: map[string]bool{}}
	for i := range fieldTable {
		f := &fieldTable[i]
		if f.Default == "" {
			continue
		}
		if f.Many {
			s.lists[f.Name] = strings.Split(f.Default, ",")
			if f.shorthand {
				continue
			}
		}
		// A default that a registry lacks is noticed by Expand.
		_ = f.set(&s.base, f.first())
	}
	return s
}

// Set changes one setting, named as in a spec file. Several values are separated
// by commas; parameters (param, workload-param) add up. The error names the
// setting, the value and what is allowed.
func (s *Spec) Set(name, value string) error {
	f, err := fieldNamed(name)
	if err != nil {
		return err
	}
	switch {
	case name == "ycsb-file":
		return s.loadYCSB(value)
	case name == "workload-param":
		// A parameter with a field of its own is that field.
		if param, v, ok := strings.Cut(value, "="); ok && shorthands[param] {
			return s.Set(param, v)
		}
	}
	if !f.Many {
		if err := f.set(&s.base, value); err != nil {
			return err
		}
		s.given[name] = true
		return nil
	}
	values := strings.Split(value, ",")
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
	}
	if name == "protocol" && slices.Contains(values, "all") {
		if len(values) > 1 {
			return fmt.Errorf("protocol: %q names others beside all: want all alone, or names", value)
		}
		values = protocolNames()
	}
	for i, v := range values {
		if v == "" {
			return f.bad(value)
		}
		if slices.Contains(values[:i], v) {
			return fmt.Errorf("%s: %q is there twice", name, v)
		}
		scratch := s.base.clone()
		if err := f.set(&scratch, v); err != nil {
			return err
		}
	}
	s.lists[name] = values
	s.given[name] = true
	return nil
}

// Given reports whether a setting was set, be it to its default.
func (s *Spec) Given(name string) bool { return s.given[name] }

// Get returns a setting's value as text, several separated by commas.
func (s *Spec) Get(name string) string {
	f, err := fieldNamed(name)
	if err != nil {
		return ""
	}
	switch {
	case f.Many:
		return strings.Join(s.lists[name], ",")
	case name == "requests" && s.given["duration"] && !s.given["requests"]:
		return ""
	}
	return f.get(&s.base)
}

// Expand validates the spec and returns its runs in the order in which they are
// reported: protocols beside each other for every other setting. The error
// names the setting, the value and what is allowed.
func (s *Spec) Expand() ([]RunSpec, error) {
	base := s.base.clone()
	if s.given["requests"] && s.given["duration"] {
		return nil, fmt.Errorf("duration: %s cannot be given with requests (%d): want one of them", units.Duration(base.Duration), base.Requests)
	}
	if base.Duration > 0 {
		base.Requests = 0
	}
	var runs []RunSpec
	if err := s.cross(base, 0, &runs); err != nil {
		return nil, err
	}
	if err := s.checkUsed(runs); err != nil {
		return nil, err
	}
	for i := range runs {
		if err := runs[i].Validate(); err != nil {
			return nil, err
		}
	}
	placeFiles(runs)
	return runs, nil
}

// nesting is the order in which settings with several values vary, the slowest
// first; those not named come before, in the order of Fields.
var nesting = []string{"distribution", "theta", "seed", "protocol"}

// varying returns the fields that take several values in order of nesting.
func varying() []*Field {
	var first []*Field
	last := make([]*Field, len(nesting))
	for i := range fieldTable {
		f := &fieldTable[i]
		if at := slices.Index(nesting, f.Name); at >= 0 {
			last[at] = f
		} else if f.Many {
			first = append(first, f)
		}
	}
	return append(first, last...)
}

// cross appends the runs of every combination of the varying fields from the
// depth-th on, with base for what is chosen already.
func (s *Spec) cross(base RunSpec, depth int, runs *[]RunSpec) error {
	fields := varying()
	if depth == len(fields) {
		s.fitDemonstration(&base)
		if err := base.dropUnused(); err != nil {
			return err
		}
		if err := base.takeParams(); err != nil {
			return err
		}
		*runs = append(*runs, base)
		return nil
	}
	f := fields[depth]
	values := s.valuesOf(f, &base)
	if len(values) == 0 || f.shorthand && !base.uses(f.Name) || !f.usedIn(&base) {
		return s.cross(base, depth+1, runs)
	}
	for _, v := range values {
		next := base.clone()
		if err := f.set(&next, v); err != nil {
			return err
		}
		if err := s.cross(next, depth+1, runs); err != nil {
			return err
		}
	}
	return nil
}

// valuesOf returns the values that f takes in the runs that are as base is so far.
func (s *Spec) valuesOf(f *Field, base *RunSpec) []string {
	if s.given[f.Name] {
		return s.lists[f.Name]
	}
	switch f.Name {
	case "clients":
		if n := workloadInfo(base.Workload).Clients; n > 0 {
			return []string{strconv.Itoa(n)}
		}
	case "distribution":
		if d := workloads.CoreDistribution(base.WorkloadParam["mix"]); d != "" {
			return []string{d}
		}
	}
	return s.lists[f.Name]
}

// fitDemonstration makes a run as long as its workload is made for.
func (s *Spec) fitDemonstration(r *RunSpec) {
	n := workloadInfo(r.Workload).Requests
	if n == 0 || s.given["requests"] || s.given["duration"] {
		return
	}
	r.Requests = n
	if !s.given["warmup"] {
		r.Warmup = 0
	}
}

// loadYCSB lays a property file of YCSB's under what is set already.
func (s *Spec) loadYCSB(path string) error {
	file, err := workloads.LoadYCSB(path)
	if err != nil {
		return fmt.Errorf("ycsb-file: %w", err)
	}
	lay := func(name, value string) error {
		if s.given[name] {
			return nil
		}
		if err := s.Set(name, value); err != nil {
			return fmt.Errorf("ycsb-file: %s: %w", path, err)
		}
		delete(s.given, name) // what is set later may still replace it
		return nil
	}
	for _, name := range sortedKeys(file.Params) {
		value := file.Params[name]
		if !shorthands[name] {
			if _, set := s.base.WorkloadParam[name]; set {
				continue
			}
			name, value = "workload-param", name+"="+value
		}
		if err := lay(name, value); err != nil {
			return err
		}
	}
	for _, c := range []struct {
		name  string
		value int
	}{{"requests", file.Requests}, {"clients", file.Clients}, {"rate", file.Rate}} {
		if c.value > 0 {
			if err := lay(c.name, strconv.Itoa(c.value)); err != nil {
				return err
			}
		}
	}
	for _, n := range file.Notes {
		s.notes = append(s.notes, fmt.Sprintf("%s:%d: %s", path, n.Line, n.Text))
	}
	return nil
}

// Notes returns remarks on what was set that has no effect.
func (s *Spec) Notes() []string { return s.notes }

// uses reports whether the run's workload has the parameter name, and its
// distribution too when it is one of a distribution's.
func (r *RunSpec) uses(name string) bool {
	if !hasParam(workloadParams(r.Workload), name) {
		return false
	}
	if name != "theta" {
		return true
	}
	info, err := rng.FindChooser(r.WorkloadParam["distribution"])
	return err == nil && slices.ContainsFunc(info.Params, func(p rng.Param) bool { return p.Name == name })
}

func hasParam(defs []txnproto.Param, name string) bool {
	return slices.ContainsFunc(defs, func(p txnproto.Param) bool { return p.Name == name })
}

// takeParams keeps what concerns the run's protocol among the parameters, under
// its full name, and completes those of the workload that have a field of their own.
func (r *RunSpec) takeParams() error {
	p, ok := txnproto.ProtocolNamed(r.Protocol)
	if !ok {
		return unknownName("protocol", r.Protocol, protocolNames())
	}
	params := map[string]string{}
	for k, v := range r.Param { // order: into a map; a full name wins below
		if !strings.Contains(k, ".") && hasParam(p.Params, k) {
			params[r.Protocol+"."+k] = v
		}
	}
	for k, v := range r.Param { // order: into a map
		if owner, _, ok := strings.Cut(k, "."); ok && owner == r.Protocol {
			params[k] = v
		}
	}
	r.Param = params
	if len(params) == 0 {
		r.Param = nil
	}
	for i := range fieldTable {
		f := &fieldTable[i]
		if f.shorthand && r.WorkloadParam[f.Name] == "" && r.uses(f.Name) {
			if err := f.set(r, workloadDefault(r.Workload, f.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkUsed refuses settings that no run has a use for.
func (s *Spec) checkUsed(runs []RunSpec) error {
	for i := range fieldTable {
		f := &fieldTable[i]
		if err := s.checkTimestampUse(f, runs); err != nil {
			return err
		}
		if !f.shorthand || !s.given[f.Name] {
			continue
		}
		if slices.ContainsFunc(runs, func(r RunSpec) bool { return r.uses(f.Name) }) {
			continue
		}
		if f.Name == "theta" && hasParam(workloadParams(runs[0].Workload), "theta") {
			return fmt.Errorf("theta: %s has no use for distribution %s: want one of the zipfian ones",
				s.Get("theta"), s.Get("distribution"))
		}
		return fmt.Errorf("%s: workload %s has no such setting: it has %s", f.Name, s.Get("workload"), paramNames(workloadParams(runs[0].Workload)))
	}
	for _, k := range sortedKeys(s.base.Param) {
		if err := s.checkParamUsed(k, runs); err != nil {
			return err
		}
	}
	return nil
}

func (s *Spec) checkParamUsed(name string, runs []RunSpec) error {
	owner, short, full := strings.Cut(name, ".")
	if !full {
		owner, short = "", name
	} else if _, ok := txnproto.ProtocolNamed(owner); !ok {
		return unknownName("param", owner, protocolNames())
	}
	var known []string
	for i := range runs {
		p, _ := txnproto.ProtocolNamed(runs[i].Protocol)
		if full && p.Name != owner {
			continue
		}
		if hasParam(p.Params, short) {
			return nil
		}
		for _, d := range p.Params {
			known = append(known, p.Name+"."+d.Name)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	switch {
	case full && !slices.ContainsFunc(runs, func(r RunSpec) bool { return r.Protocol == owner }):
		return fmt.Errorf("param: %q is of a protocol that does not run: want one of %s", name, s.Get("protocol"))
	case len(known) == 0:
		return fmt.Errorf("param: %q is unknown: the protocols have no parameters", name)
	default:
		return fmt.Errorf("param: %q is unknown: want one of %s", name, strings.Join(known, ", "))
	}
}

func paramNames(defs []txnproto.Param) string {
	if len(defs) == 0 {
		return "none"
	}
	names := make([]string, len(defs))
	for i := range defs {
		names[i] = defs[i].Name
	}
	return strings.Join(names, ", ")
}

// placeFiles gives each of several runs files of its own.
func placeFiles(runs []RunSpec) {
	if len(runs) < 2 {
		return
	}
	for i := range runs {
		r := &runs[i]
		name := fmt.Sprintf("%02d-%s", i+1, r.Slug())
		if r.DataDir != "" {
			r.DataDir = filepath.Join(r.DataDir, name)
		}
		if r.History != "" {
			ext := filepath.Ext(r.History)
			r.History = strings.TrimSuffix(r.History, ext) + "-" + name + ext
		}
	}
}

// leastRate is one arrival in a little more than eleven virtual days: the mean of the
// gaps is within what a distribution takes.
const leastRate = 1e-6

// Validate checks one run's settings, alone and together. The error names the
// setting, the value and what is allowed.
func (r *RunSpec) Validate() error {
	switch {
	case r.Replicas > r.Machines && r.Replication != "none":
		return fmt.Errorf("replicas: %d is more than there are machines: want at most %d, or more machines", r.Replicas, r.Machines)
	case r.Requests == 0 && r.Duration == 0:
		return errors.New("duration: 0s is not allowed without requests: want one of them above 0")
	case r.Rate > 0 && r.Rate < leastRate:
		return fmt.Errorf("rate: %v is not allowed: want 0 for a closed loop, or %v and more", r.Rate, leastRate)
	case r.Duration > 0 && r.Duration <= r.Warmup:
		return fmt.Errorf("duration: %s is not longer than the warm-up: want more than %s", units.Duration(r.Duration), units.Duration(r.Warmup))
	case r.MaxVirtualTime <= r.Warmup:
		return fmt.Errorf("max-virtual-time: %s is not longer than the warm-up: want more than %s", units.Duration(r.MaxVirtualTime), units.Duration(r.Warmup))
	case r.MaxVirtualTime < r.Duration:
		return fmt.Errorf("max-virtual-time: %s is shorter than the duration: want at least %s", units.Duration(r.MaxVirtualTime), units.Duration(r.Duration))
	case r.BackoffMax < r.Backoff:
		return fmt.Errorf("backoff-max: %s is shorter than the first wait: want at least %s", units.Duration(r.BackoffMax), units.Duration(r.Backoff))
	case r.DataDir != "" && r.Replication != "raft":
		return fmt.Errorf("data-dir: %s cannot be used with replication %s: want replication raft", r.DataDir, r.Replication)
	case r.History != "" && !r.Check:
		return fmt.Errorf("history: %s cannot be written with check=false: want check=true", r.History)
	}
	if _, err := r.crashes(); err != nil {
		return err
	}
	if err := r.checkProtocol(); err != nil {
		return err
	}
	if err := r.checkTimestamps(); err != nil {
		return err
	}
	return r.checkWorkload()
}

// checkProtocol checks the protocol's parameters, and that the run's epochs can be
// numbered where it has any.
func (r *RunSpec) checkProtocol() error {
	params, err := r.ProtocolParams()
	if err != nil {
		return fmt.Errorf("param: %w", err)
	}
	if p, ok := txnproto.ProtocolNamed(r.Protocol); ok && p.Sequenced {
		// Half of them, since the clients neither begin at 0 nor end in time.
		epoch := params.Duration("epoch")
		if most := epoch * (txnproto.MaxEpoch / 2); r.MaxVirtualTime > most {
			return fmt.Errorf("max-virtual-time: %s is more than epochs of %s can be numbered in: want at most %s, or a longer epoch",
				units.Duration(r.MaxVirtualTime), units.Duration(epoch), units.Duration(most))
		}
	}
	return nil
}

// CheckFiles reports whether the places where the run leaves files can be
// written, by doing so: it makes the data directory and a file in each place,
// which it removes. What another run has left in the data directory is not
// touched, and neither is what is no file where the history shall be.
func (r *RunSpec) CheckFiles() error {
	if r.DataDir != "" {
		if err := os.MkdirAll(r.DataDir, 0o755); err != nil {
			return fmt.Errorf("data-dir: %s cannot be made: %w", r.DataDir, cause(err))
		}
		if err := tryWrite(r.DataDir); err != nil {
			return fmt.Errorf("data-dir: %s cannot be written: %w", r.DataDir, cause(err))
		}
		files, err := os.ReadDir(r.DataDir)
		if err != nil {
			return fmt.Errorf("data-dir: %s cannot be read: %w", r.DataDir, cause(err))
		}
		for _, f := range files {
			if filepath.Ext(f.Name()) == ".db" {
				return fmt.Errorf("data-dir: %s holds %s of another run: want a directory without .db files", r.DataDir, f.Name())
			}
		}
	}
	if r.History != "" {
		// The complete file takes the place of what is there: that must not be a
		// directory, nor a device such as /dev/full.
		if at, err := os.Stat(r.History); err == nil && !at.Mode().IsRegular() {
			return fmt.Errorf("history: %s is not a file: want one, or a name that is not taken", r.History)
		}
		if err := tryWrite(filepath.Dir(r.History)); err != nil {
			return fmt.Errorf("history: %s cannot be written: %w", r.History, cause(err))
		}
	}
	return nil
}

// cause is what went wrong with a file, without the name that was tried.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func tryWrite(dir string) error {
	f, err := os.CreateTemp(dir, ".simulate-*")
	if err != nil {
		return err
	}
	err = f.Close()
	return errors.Join(err, os.Remove(f.Name()))
}
