package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"interleave/workloads"
)

// expand sets name=value pairs on the default spec and expands it.
func expand(pairs ...string) ([]RunSpec, error) {
	s := NewSpec()
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		if err := s.Set(name, value); err != nil {
			return nil, err
		}
	}
	return s.Expand()
}

func mustExpand(t *testing.T, pairs ...string) []RunSpec {
	t.Helper()
	runs, err := expand(pairs...)
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// rows writes the named settings of every run.
func rows(runs []RunSpec, names ...string) string {
	var b strings.Builder
	for i := range runs {
		var cells []string
		for _, n := range names {
			cells = append(cells, runs[i].Get(n))
		}
		b.WriteString(strings.Join(cells, " ") + "\n")
	}
	return b.String()
}

func TestDefaultComparison(t *testing.T) {
	got := rows(mustExpand(t), "protocol", "distribution", "theta", "replication", "shards", "replicas")
	want := "2pl uniform  raft 3 3\nto uniform  raft 3 3\nocc uniform  raft 3 3\n" +
		"2pl zipfian 0.99 raft 3 3\nto zipfian 0.99 raft 3 3\nocc zipfian 0.99 raft 3 3\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestDefaultsAreAllowed(t *testing.T) {
	for _, f := range Fields() {
		if f.Help == "" || f.Group == "" {
			t.Errorf("%s lacks help or group", f.Name)
		}
		if f.Default == "" {
			continue
		}
		if err := NewSpec().Set(f.Name, f.Default); err != nil {
			t.Errorf("default of %s: %v", f.Name, err)
		}
		for v := range strings.SplitSeq(f.Default, ",") {
			var r RunSpec
			if !f.Many {
				v = f.Default
			}
			if err := r.Set(f.Name, v); err != nil {
				t.Fatal(err)
			}
			if got := r.Get(f.Name); got != v {
				t.Errorf("%s: default %q reads back as %q", f.Name, v, got)
			}
		}
	}
}

func TestThetaOnlyWhereUsed(t *testing.T) {
	runs := mustExpand(t, "protocol=occ", "theta=0,0.5", "distribution=uniform,zipfian,hotspot")
	got := rows(runs, "distribution", "theta")
	if want := "uniform \nzipfian 0\nzipfian 0.5\nhotspot \n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestNesting(t *testing.T) {
	runs := mustExpand(t, "protocol=2pl,to", "distribution=uniform", "seed=1,2", "clients=4,8")
	got := rows(runs, "clients", "seed", "protocol")
	want := "4 1 2pl\n4 1 to\n4 2 2pl\n4 2 to\n8 1 2pl\n8 1 to\n8 2 2pl\n8 2 to\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestBadSettings(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"protocol=2lp", `protocol: "2lp" is unknown (did you mean "2pl"?): want one of `},
		{"protocol=zzzzzz", `protocol: "zzzzzz" is unknown: want one of `},
		{"protocol=2pl,2pl", `protocol: "2pl" is there twice`},
		{"protocol=2pl,", `protocol: "2pl," is not allowed`},
		{"workload=bnak", `workload: "bnak" is unknown (did you mean "bank"?)`},
		{"distribution=zipfain", `distribution: "zipfain" is unknown (did you mean "zipfian"?)`},
		{"network=lann", `network: "lann" is unknown (did you mean "lan"?)`},
		{"theta=-1", `theta: "-1" is not allowed: want a number from 0 up`},
		{"theta=NaN", `theta: "NaN" is not allowed`},
		{"clients=0", `clients: "0" is not allowed: want a whole number from 1 to 10000000`},
		{"clients=many", `clients: "many" is not allowed`},
		{"keys=0", `keys: "0" is not allowed: want a whole number from 1`},
		{"replicas=5", `replicas: 5 is more than there are machines: want at most 3, or more machines`},
		{"duration=50ms", `duration: 50ms is not longer than the warm-up: want more than 100ms`},
		{"duration=100ms", `duration: 100ms is not longer than the warm-up: want more than 100ms`},
		{"duration=1s requests=10", `duration: 1s cannot be given with requests (10)`},
		{"think=exp:-1ms", `think: distribution "exp:-1ms": `},
		{"fsync=", `fsync: distribution ""`},
		{"jitter=1.5", `jitter: "1.5" is not allowed: want a number from 0 to 1`},
		{"check=yes", `check: "yes" is not allowed: want true or false`},
		{"backoff=1s", `backoff-max: 100ms is shorter than the first wait: want at least 1s`},
		{"retry=sometimes", `retry: "sometimes" is unknown: want one of immediate, fixed, exponential, adaptive`},
		{"bandwidth=1Mbit", `bandwidth: "1Mbit" is not allowed: want a whole number of bytes per second`},
		{"clinets=4", `unknown field "clinets": did you mean "clients"?`},
		{"param=victim", `param: "victim" is not allowed: want name=value`},
		{"param=2pl.victm=oldest", `param: "2pl.victm" is unknown: want one of 2pl.`},
		{"param=2pl.victim=nobody", `param: 2pl: parameter victim: "nobody" is not one of `},
		{"param=nosuch.x=1", `param: "nosuch" is unknown: want one of `},
		{"protocol=occ param=2pl.victim=oldest", `param: "2pl.victim" is of a protocol that does not run: want one of occ`},
		{"workload-param=nosuch=1", `workload ycsb: unknown parameter "nosuch"`},
		{"workload=bank ops=3", `ops: workload bank has no such setting: it has keys, `},
		{"distribution=uniform theta=0.5", `theta: 0.5 has no use for distribution uniform`},
		{"replication=quorum data-dir=x", `data-dir: x cannot be used with replication quorum`},
		{"check=false history=h", `history: h cannot be written with check=false`},
		{"workload=two-transfers clients=3", `clients: 3 is not allowed with workload two-transfers: want 2`},
		{"ycsb-file=/nonexistent/file", `ycsb-file: open /nonexistent/file: no such file or directory`},
		{"max-virtual-time=50ms", `max-virtual-time: 50ms is not longer than the warm-up`},
	} {
		_, err := expand(strings.Fields(c.set)...)
		if err == nil {
			t.Errorf("%s: no error, want %q", c.set, c.want)
		} else if !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n got %q\nwant %q…", c.set, err, c.want)
		}
	}
}

func TestLoadErrorsHaveTheirPlace(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"clients: 4\nprotcol: 2pl\n", `s.yaml:2:1: unknown field "protcol": did you mean "protocol"?`},
		{"clients: 4\n\ntheta: -1\n", `s.yaml:3:8: theta: "-1" is not allowed: want a number from 0 up`},
		{"clients: 4\nclients: 5\n", `s.yaml:2:1: `},
		{"clients:\n", `s.yaml:1:`},
		{"shards: [1, 2\nclients: 4", `s.yaml:`},
		{"- clients\n", `s.yaml:1:1: want a mapping of setting to value`},
		{"clients: {a: 1}\n", `s.yaml:1:`},
		{"think: [1ms, 2ms]\n", `s.yaml:1:`},
		{"param:\n  2pl.victim: [a, b]\n", `s.yaml:2:`},
		{"clients: 1\n---\nclients: 2\n", `s.yaml: 2 documents: want one`},
	} {
		err := NewSpec().Load("s.yaml", []byte(c.yaml))
		if err == nil {
			t.Errorf("%q: no error, want %q", c.yaml, c.want)
		} else if !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q:\n got %q\nwant %q…", c.yaml, err, c.want)
		}
	}
}

func TestYAMLRoundTrip(t *testing.T) {
	s := NewSpec()
	for _, p := range []string{
		"protocol=2pl,occ", "param=2pl.victim=oldest", "theta=0,0.5,1.2", "think=lognormal:1ms,0.5", "bandwidth=125MB",
		"workload-param=scan-length-max=7", "seed=18446744073709551615", "classes=short:9:ops=4; long:1:ops=40,read=1",
		"data-dir=/some where/#1: \"x\"", "fresh-keys=true", "duration=3s", "read=.5", "update=0.50",
	} {
		name, value, _ := strings.Cut(p, "=")
		if err := s.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	again := NewSpec()
	// What is written has one length, the other being unset.
	if err := again.Load("s.yaml", []byte(s.YAML())); err != nil {
		t.Fatalf("%v in\n%s", err, s.YAML())
	}
	if d := cmp.Diff(s.YAML(), again.YAML()); d != "" {
		t.Error(d)
	}
	a, errA := s.Expand()
	b, errB := again.Expand()
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if d := cmp.Diff(fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b)); d != "" {
		t.Error(d)
	}
}

func TestRunJSONRoundTrip(t *testing.T) {
	for _, set := range [][]string{
		{},
		{"duration=2s"},
		{"workload=bank"},
		{"workload=two-transfers"},
		{"rate=100.5", "think=exp:2ms", "mix=d"},
		{"param=victim=oldest", "keys=1_000", "bandwidth=7", "loss=0.001"},
	} {
		for _, r := range mustExpand(t, set...) {
			b, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var back RunSpec
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatalf("%v in %s", err, b)
			}
			if d := cmp.Diff(fmt.Sprintf("%+v", r), fmt.Sprintf("%+v", back)); d != "" {
				t.Error(d)
			}
			// A run is a spec file of one run.
			s := NewSpec()
			if err := s.Load("run.json", b); err != nil {
				t.Fatalf("%v in %s", err, b)
			}
			runs, err := s.Expand()
			if err != nil || len(runs) != 1 {
				t.Fatalf("%d runs, %v from %s", len(runs), err, b)
			}
			if d := cmp.Diff(fmt.Sprintf("%+v", r), fmt.Sprintf("%+v", runs[0])); d != "" {
				t.Error(d)
			}
		}
	}
}

func TestCommandRepeatsTheRun(t *testing.T) {
	want := "simulate run --protocol 2pl --param 2pl.victim=oldest --distribution zipfian --theta 0.5 --think exp:2ms --fresh-keys=true"
	runs := mustExpand(t, "protocol=2pl", "param=victim=oldest", "distribution=zipfian", "theta=0.5", "think=exp:2ms", "fresh-keys=true")
	if got := runs[0].Command(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, set := range [][]string{{}, {"duration=2s", "warmup=0s"}, {"workload=two-transfers"}, {"mix=d"}, {"keys=77", "workload-param=scan-length-max=9"}} {
		for _, r := range mustExpand(t, set...) {
			back := mustExpand(t, parseCommand(t, r.Command())...)
			if len(back) != 1 || fmt.Sprintf("%+v", back[0]) != fmt.Sprintf("%+v", r) {
				t.Errorf("%s gives\n%+v\nwant\n%+v", r.Command(), back, r)
			}
		}
	}
}

func parseCommand(t *testing.T, line string) []string {
	t.Helper()
	words := strings.Fields(strings.TrimPrefix(line, "simulate run"))
	var pairs []string
	for i := 0; i < len(words); i++ {
		w := strings.TrimPrefix(words[i], "--")
		if !strings.Contains(w, "=") {
			i++
			w += "=" + words[i]
		}
		pairs = append(pairs, w)
	}
	return pairs
}

func TestSeveralRunsHaveFilesOfTheirOwn(t *testing.T) {
	runs := mustExpand(t, "history=h.jsonl", "data-dir=d")
	seen := map[string]bool{}
	for i := range runs {
		for _, f := range []string{runs[i].History, runs[i].DataDir} {
			if seen[f] {
				t.Errorf("%s is there twice", f)
			}
			seen[f] = true
		}
	}
	one := mustExpand(t, "history=h.jsonl", "data-dir=d", "protocol=2pl", "distribution=uniform")
	if one[0].History != "h.jsonl" || one[0].DataDir != "d" {
		t.Errorf("one run: %q %q", one[0].History, one[0].DataDir)
	}
	if runs[0].History != "h-01-2pl-uniform.jsonl" {
		t.Errorf("got %q", runs[0].History)
	}
}

func TestFilesAreTriedBeforehand(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := RunSpec{DataDir: filepath.Join(dir, "new", "dir"), History: filepath.Join(dir, "h")}
	if err := good.CheckFiles(); err != nil {
		t.Error(err)
	}
	bad := RunSpec{DataDir: filepath.Join(file, "x")}
	if err := bad.CheckFiles(); err == nil || !strings.HasPrefix(err.Error(), "data-dir: "+bad.DataDir) {
		t.Errorf("a directory below a file: %v", err)
	}
	used := filepath.Join(dir, "used")
	if err := errors.Join(os.Mkdir(used, 0o700), os.WriteFile(filepath.Join(used, "s1-n1.db"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	bad = RunSpec{DataDir: used}
	if err := bad.CheckFiles(); err == nil || !strings.Contains(err.Error(), "holds s1-n1.db of another run") {
		t.Errorf("a directory with another run's files: %v", err)
	}
	for _, name := range []string{dir, os.DevNull} {
		bad = RunSpec{History: name}
		if err := bad.CheckFiles(); err == nil || !strings.Contains(err.Error(), "is not a file") {
			t.Errorf("history %s: %v", name, err)
		}
	}
	over := RunSpec{History: file}
	if err := over.CheckFiles(); err != nil {
		t.Errorf("a file that is there: %v", err)
	}
	bad = RunSpec{History: filepath.Join(dir, "nowhere", "h")}
	if err := bad.CheckFiles(); err == nil || !strings.HasPrefix(err.Error(), "history: ") {
		t.Errorf("a file in no directory: %v", err)
	}
}

func TestYCSBFileLiesUnderTheRest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "workload")
	text := "recordcount=500\noperationcount=300\nreadproportion=0.25\nupdateproportion=0.75\nrequestdistribution=latest\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, pairs := range [][]string{{"ycsb-file=" + path, "ops=4"}, {"ops=4", "ycsb-file=" + path}} {
		runs := mustExpand(t, append(pairs, "protocol=occ")...)
		got := rows(runs, "distribution", "keys", "ops", "update", "requests", "ycsb-file")
		if want := "latest 500 4 0.75 300 \n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestMixBringsItsDistribution(t *testing.T) {
	if got := rows(mustExpand(t, "protocol=occ", "mix=d"), "distribution"); got != "latest\n" {
		t.Errorf("got %q", got)
	}
	if got := rows(mustExpand(t, "protocol=occ", "mix=d", "distribution=uniform"), "distribution"); got != "uniform\n" {
		t.Errorf("got %q", got)
	}
}

func TestDemonstrationsFit(t *testing.T) {
	r := mustExpand(t, "workload=two-transfers", "protocol=2pl")
	if len(r) != 1 || r[0].Clients != 2 || r[0].Requests != 2 || r[0].Warmup != 0 {
		t.Errorf("got %+v", r)
	}
}

// TestDeclares: what locks beforehand needs to be told; the built-in workloads do that.
func TestDeclares(t *testing.T) {
	for _, w := range workloads.Workloads() {
		if _, err := expand("workload="+w.Name, "protocol=2pl-ordered"); err != nil {
			t.Error(err)
		}
	}
	silent := &workloads.FuncWorkload{Keys: 2, Bytes: 100, Body: func(tx *workloads.Tx) error { tx.Write(0, 1); return nil }}
	defer silent.Close()
	if declares(silent) {
		t.Error("a plain function declares what it will access")
	}
}

func TestDefaultRun(t *testing.T) {
	r, err := DefaultRun("occ")
	if err != nil || r.Protocol != "occ" || r.Warmup != 100*time.Millisecond {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := DefaultRun("oc"); err == nil {
		t.Error("no error for an unknown protocol")
	}
}

func TestSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("spec.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("spec.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range mustExpand(t, "rate=5", "param=victim=oldest") {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
	for _, good := range []string{
		`{}`, `{"protocol": "all"}`, `{"protocol": ["2pl", "occ"], "theta": [0, 0.5]}`, `{"protocol": "2pl,occ"}`,
		`{"think": "2ms", "param": {"2pl.victim": "oldest"}, "bandwidth": 0, "disk-bandwidth": "5MB", "duration": "1m30s"}`,
	} {
		if err := validate(t, schema, good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		`{"protcol": "2pl"}`, `{"clients": 0}`, `{"clients": 1.5}`, `{"theta": -1}`, `{"protocol": "2lp"}`, `{"protocol": []}`,
		`{"jitter": 2}`, `{"check": "true"}`, `{"duration": "1 s"}`, `{"think": "exp"}`, `[]`,
	} {
		if err := validate(t, schema, bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func validate(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}
