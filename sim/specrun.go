package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// RunSpec is everything that one run depends on, and where it leaves its files.
// Equal RunSpecs, files apart, give equal runs. Make one with DefaultRun or
// Spec.Expand; its JSON form is also a spec file.
type RunSpec struct {
	Protocol string
	Param    map[string]string // of the protocol: "2pl.victim" → "oldest"

	Timestamps    txnproto.TimestampSource
	ClockSkew     time.Duration // most that a clock is off
	ClockDrift    float64       // most that a clock gains or loses, parts per million
	ClockCatchUp  bool
	OracleService rng.Dist

	Workload string
	// WorkloadParam holds the workload's parameters, those with a flag of their
	// own (keys, distribution, …) included.
	WorkloadParam map[string]string

	Clients int
	Think   rng.Dist // of a client between two requests
	Rate    float64  // open loop: arrivals per virtual second; 0: closed loop
	MaxOpen int      // open loop: requests open at a time; those beyond are turned away
	MPL     int      // attempts running at a time; 0: no limit

	Shards        int
	Replicas      int // of each shard
	Machines      int
	Replication   string // raft, quorum or none
	Placement     string // hash or range
	Network       string // name of a preset
	Loss          float64
	Bandwidth     int64 // of a link in one direction, bytes per second; 0: unlimited; Unset: the network's own
	CPUs          int   // of a machine
	CPUOp         rng.Dist
	CPUCommit     rng.Dist
	Fsync         rng.Dist
	DiskBandwidth int64  // bytes per second; 0: unlimited
	Crash         string // plan of crashes; "": none

	Retry       txnproto.RetryPolicy
	Backoff     time.Duration
	BackoffMax  time.Duration
	Jitter      float64
	MaxAttempts int // 0: unbounded
	FreshKeys   bool

	Requests           int           // completed requests after the warm-up; 0: Duration counts
	Duration           time.Duration // of the run, warm-up included; 0: Requests counts
	Warmup             time.Duration
	MaxVirtualTime     time.Duration
	StarvationAttempts int
	Check              bool
	CheckWindow        int // requests; 0: the whole history
	Seed               rng.Seed

	// DataDir and History are where the run leaves its files. They change nothing
	// in it and are not in its JSON form.
	DataDir string
	History string
}

// DefaultRun returns the run of protocol, every other setting at its default
// (the first, where the default is several).
func DefaultRun(protocol string) (RunSpec, error) {
	s := NewSpec()
	if err := s.Set("protocol", protocol); err != nil {
		return RunSpec{}, err
	}
	runs, err := s.Expand()
	if err != nil {
		return RunSpec{}, err
	}
	return runs[0], nil
}

func (r *RunSpec) clone() RunSpec {
	c := *r
	c.Param = maps.Clone(r.Param)
	c.WorkloadParam = maps.Clone(r.WorkloadParam)
	return c
}

// Set changes one setting, named as in a spec file. A setting that takes several
// values takes one here.
func (r *RunSpec) Set(name, value string) error {
	f, err := fieldNamed(name)
	if err != nil {
		return err
	}
	return f.set(r, value)
}

// Get returns a setting as text, "" when it is not set.
func (r *RunSpec) Get(name string) string {
	f, err := fieldNamed(name)
	if err != nil {
		return ""
	}
	return f.get(r)
}

// RetryPolicy returns the settings of retrying together.
func (r *RunSpec) RetryPolicy() txnproto.Retry {
	return txnproto.Retry{
		Policy: r.Retry, Base: r.Backoff, Max: r.BackoffMax, Jitter: r.Jitter,
		MaxAttempts: r.MaxAttempts, FreshKeys: r.FreshKeys,
	}
}

// ProtocolParams returns the checked parameters of the run's protocol.
func (r *RunSpec) ProtocolParams() (txnproto.Params, error) {
	p, ok := txnproto.ProtocolNamed(r.Protocol)
	if !ok {
		return txnproto.Params{}, unknownName("protocol", r.Protocol, protocolNames())
	}
	given := map[string]string{}
	for k, v := range r.Param { // order: into a map
		owner, name, _ := strings.Cut(k, ".")
		if owner == r.Protocol {
			given[name] = v
		}
	}
	return txnproto.NewParams(r.Protocol, p.Params, given)
}

// MarshalJSON writes the settings under their names in a spec file, in the order
// of Fields, without those that are unset and without where files go.
func (r RunSpec) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range fieldTable {
		f := &fieldTable[i]
		text := f.get(&r)
		if f.Outside || text == "" || !f.usedIn(&r) {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:", f.Name)
		v, err := f.json(&r)
		if err != nil {
			return nil, err
		}
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads what MarshalJSON wrote. Settings that are absent get their
// defaults. It does not validate.
func (r *RunSpec) UnmarshalJSON(data []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*r = NewSpec().base.clone()
	for i := range fieldTable {
		f := &fieldTable[i]
		v, ok := raw[f.Name]
		if !ok {
			if f.Default == "" || f.shorthand {
				continue
			}
			if err := f.set(r, f.first()); err != nil {
				return err
			}
			continue
		}
		delete(raw, f.Name)
		if err := f.setJSON(r, v); err != nil {
			return err
		}
	}
	if len(raw) > 0 {
		return fmt.Errorf("spec: unknown field %q", sortedKeys(raw)[0])
	}
	if r.Duration > 0 {
		r.Requests = 0
	}
	return nil
}

// Command returns the command line that repeats the run: it names what differs
// from the defaults.
func (r *RunSpec) Command() string {
	var b strings.Builder
	b.WriteString("simulate run")
	for i := range fieldTable {
		f := &fieldTable[i]
		text := f.get(r)
		if f.Outside || text == f.Default || text == "" {
			continue
		}
		if f.shorthand && text == workloadDefault(r.Workload, f.Name) && f.Default == "" {
			continue
		}
		if f.Kind == KindMap {
			for _, kv := range strings.Split(text, "\n") {
				b.WriteString(" --" + f.Name + " " + shellQuote(kv))
			}
			continue
		}
		if f.Kind == KindBool {
			b.WriteString(" --" + f.Name + "=" + text)
			continue
		}
		b.WriteString(" --" + f.Name + " " + shellQuote(text))
	}
	return b.String()
}

func shellQuote(s string) string {
	plain := s != ""
	for _, c := range s {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-=:,/+@%", c) {
			plain = false
		}
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Slug names the run among the others of one comparison, for files.
func (r *RunSpec) Slug() string {
	parts := []string{r.Protocol}
	if r.Workload != "ycsb" {
		parts = append(parts, r.Workload)
	}
	for _, name := range []string{"distribution", "theta"} {
		if v := r.WorkloadParam[name]; v != "" {
			parts = append(parts, v)
		}
	}
	return strings.Join(parts, "-")
}
