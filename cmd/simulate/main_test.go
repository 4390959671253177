package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"interleave/reports"
	"interleave/sim"
)

// engineVariable chooses the engine of a process that a test starts.
const engineVariable = "SIMULATE_TEST_ENGINE"

// TestMain makes the test binary the command when it is started as such: by
// tests, and by the command itself for its workers.
func TestMain(m *testing.M) {
	if os.Args[0] != "simulate" {
		os.Exit(m.Run())
	}
	engines := map[string]engine{"": sim.Run, "panic": panics, "slow": slow, "deaf": deaf, "drift": drifts, "unlucky": unlucky}
	ctx, stop := interruptible(os.Args[1:])
	defer stop()
	a := &app{run: engines[os.Getenv(engineVariable)], in: os.Stdin, out: os.Stdout, err: os.Stderr}
	os.Exit(a.execute(ctx, os.Args[1:]))
}

func result(r sim.RunSpec, v reports.Verdict) *reports.Result {
	spec, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return &reports.Result{Spec: spec, Command: r.Command(), Digest: "d1", Verdict: v, Classes: []reports.Class{{Name: "all"}}}
}

func panics(context.Context, sim.RunSpec, sim.Options) (*reports.Result, error) {
	panic("the engine broke")
}

// unlucky ends with an error.
func unlucky(context.Context, sim.RunSpec, sim.Options) (*reports.Result, error) {
	return nil, errors.New("no luck")
}

// slow works until it is interrupted; deaf does not notice.
func slow(ctx context.Context, r sim.RunSpec, o sim.Options) (*reports.Result, error) {
	if o.History != nil {
		fmt.Fprintln(o.History, "half of a history")
	}
	<-ctx.Done()
	return result(r, reports.VerdictCutShort), sim.ErrInterrupted
}

func deaf(_ context.Context, _ sim.RunSpec, o sim.Options) (*reports.Result, error) {
	if o.History != nil {
		fmt.Fprintln(o.History, "half of a history")
	}
	time.Sleep(time.Hour)
	return nil, errors.New("it slept too long")
}

// drifts does something else in every process.
func drifts(_ context.Context, r sim.RunSpec, o sim.Options) (*reports.Result, error) {
	res := result(r, reports.VerdictOK)
	res.Digest = fmt.Sprint("d", os.Getpid())
	fmt.Fprintf(o.Trace, "request 1 end 5\nrequest 2 end %d\n", os.Getpid())
	return res, nil
}

// command runs the command in this process.
func command(e engine, stdin string, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	a := &app{run: e, in: strings.NewReader(stdin), out: &out, err: &errs}
	code = a.execute(context.Background(), args)
	return out.String(), errs.String(), code
}

// TestScenarios runs the command lines of testdata/*.txt, one a line, in an
// empty directory of each file's. The directive stdin keeps its input for the
// next command; write makes a file of it, cat shows files.
func TestScenarios(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	datadriven.Walk(t, filepath.Join(here, "testdata"), func(t *testing.T, path string) {
		t.Chdir(t.TempDir())
		stdin := ""
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "stdin":
				stdin = d.Input + "\n"
				return ""
			case "write":
				if err := os.WriteFile(d.CmdArgs[0].Key, []byte(d.Input+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				return ""
			case "cat":
				var b strings.Builder
				for name := range strings.SplitSeq(d.Input, "\n") {
					text, err := os.ReadFile(name)
					if err != nil {
						t.Fatal(err)
					}
					b.Write(text)
				}
				return b.String()
			case "simulate":
				var b strings.Builder
				for line := range strings.SplitSeq(d.Input, "\n") {
					out, errs, code := command(sim.Run, stdin, words(t, line)...)
					b.WriteString(out + errs)
					if code != 0 {
						fmt.Fprintf(&b, "[exit %d]\n", code)
					}
				}
				return b.String()
			default:
				t.Fatalf("unknown directive %s", d.Cmd)
				return ""
			}
		})
	})
}

// words splits a command line at blanks outside of single quotes.
func words(t *testing.T, line string) []string {
	t.Helper()
	var out []string
	quoted := strings.Split(line, "'")
	if len(quoted)%2 == 0 {
		t.Fatalf("unbalanced quotes: %s", line)
	}
	for i, s := range quoted {
		if i%2 == 1 {
			out = append(out, s)
		} else {
			out = append(out, strings.Fields(s)...)
		}
	}
	return out
}

func TestHelpFitsAScreen(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}, {"help"}} {
		out, errs, code := command(sim.Run, "", args...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if code != 0 || errs != "" || len(lines) > 40 {
			t.Errorf("%v: exit %d, %d lines, %q", args, code, len(lines), errs)
		}
		if first := strings.Index(out, "Examples:"); first < 0 || first > strings.Index(out, "Commands:") {
			t.Errorf("%v: examples do not come first", args)
		}
		for _, l := range lines {
			if len(l) > 100 {
				t.Errorf("%d columns: %s", len(l), l)
			}
		}
	}
}

func TestRunHelpHasEveryField(t *testing.T) {
	out, _, code := command(sim.Run, "", "run", "--help")
	if code != 0 {
		t.Fatalf("exit %d", code)
	}
	for _, f := range sim.Fields() {
		if !strings.Contains(out, "--"+f.Name+" ") || !strings.Contains(out, f.Help) {
			t.Errorf("%s is missing", f.Name)
		}
	}
}

// TestExamplesRun parses every example of the help, as far as printing its spec.
func TestExamplesRun(t *testing.T) {
	out, _, _ := command(sim.Run, "", "--help")
	more, _, _ := command(sim.Run, "", "run", "--help")
	n := 0
	for line := range strings.SplitSeq(out+more, "\n") {
		line, ok := strings.CutPrefix(line, "  simulate")
		if !ok || strings.Contains(line, "mine.yaml") || strings.Contains(line, "verify") || strings.HasPrefix(line, "  ") {
			continue
		}
		n++
		args := append(words(t, line), "--print-spec")
		if _, errs, code := command(sim.Run, "", args...); code != 0 {
			t.Errorf("simulate %v: exit %d: %s", args, code, errs)
		}
	}
	if n < 7 {
		t.Errorf("%d examples found", n)
	}
}

func TestPrintSpecRoundTrip(t *testing.T) {
	args := []string{
		"--protocol", "2pl,occ", "--theta", "0.5,1.1", "--distribution", "zipfian", "--param", "2pl.victim=oldest",
		"--workload-param", "scan-length-max=9", "--fresh-keys", "--duration", "3s", "--think", "lognormal:1ms,0.5",
	}
	spec, errs, code := command(sim.Run, "", append(args, "--print-spec")...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	again, errs, code := command(sim.Run, spec, "run", "--spec", "-", "--print-spec")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if d := cmp.Diff(spec, again); d != "" {
		t.Error(d)
	}
	if out, _, _ := command(sim.Run, spec, "--spec", "-", "--seed", "7", "--print-spec"); !strings.Contains(out, "seed: 7") {
		t.Errorf("a flag does not override the file:\n%s", out)
	}
}

// small is a comparison that takes no time.
var small = []string{"--replication", "none", "--requests", "60", "--clients", "5", "--keys", "50", "--warmup", "0s"}

func TestFormats(t *testing.T) {
	for _, jobs := range []string{"1", "2"} {
		args := append([]string{"--jobs", jobs, "--format"}, small...)
		with := func(format string) string {
			a := append([]string{}, args[:3]...)
			a = append(append(a, format), args[3:]...)
			out, errs, code := command(sim.Run, "", a...)
			if code != 0 || errs != "" {
				t.Fatalf("%s with %s jobs: exit %d: %s", format, jobs, code, errs)
			}
			return out
		}
		var doc struct{ Runs []*reports.Result }
		if err := json.Unmarshal([]byte(with("json")), &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Runs) != 6 {
			t.Fatalf("%d runs", len(doc.Runs))
		}
		if a, b := with("json"), with("json"); a != b {
			t.Errorf("two equal comparisons differ:\n%s", cmp.Diff(a, b))
		}
		rows, err := csv.NewReader(strings.NewReader(with("csv"))).ReadAll()
		if err != nil || len(rows) != 7 {
			t.Errorf("%d rows, %v", len(rows), err)
		}
		table := with("table")
		for _, r := range doc.Runs {
			if r.Verdict != reports.VerdictOK || r.Isolation.Found != "serializable" || r.Committed != 60 {
				t.Errorf("%s: verdict %s, found %s, %d committed", r.Command, r.Verdict, r.Isolation.Found, r.Committed)
			}
			if !strings.Contains(table, r.Digest[:8]) {
				t.Errorf("the table lacks digest %s", r.Digest)
			}
		}
	}
}

func TestCommandInTheResultRepeatsIt(t *testing.T) {
	out, errs, code := command(sim.Run, "", append([]string{"--format", "json", "--protocol", "occ", "--distribution", "zipfian"}, small...)...)
	if code != 0 {
		t.Fatal(errs)
	}
	var doc struct{ Runs []*reports.Result }
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	line, ok := strings.CutPrefix(doc.Runs[0].Command, "simulate ")
	if !ok {
		t.Fatal(doc.Runs[0].Command)
	}
	again, errs, code := command(sim.Run, "", append(words(t, line), "--format", "json")...)
	if code != 0 || again != out {
		t.Errorf("%s: exit %d %s\n%s", line, code, errs, cmp.Diff(out, again))
	}
}

func TestFailedCheckExits1(t *testing.T) {
	broken := func(_ context.Context, r sim.RunSpec, _ sim.Options) (*reports.Result, error) {
		return result(r, reports.VerdictInvariant), nil
	}
	out, _, code := command(broken, "", "--protocol", "2pl", "--distribution", "uniform")
	if code != exitFailed || !strings.Contains(out, "FAILED  2pl under uniform keys: invariant") {
		t.Errorf("exit %d\n%s", code, out)
	}
	_, errs, code := command(unlucky, "", "--protocol", "2pl", "--distribution", "uniform")
	if code != exitFailed || !strings.Contains(errs, "simulate: no luck (simulate run --protocol 2pl") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestOutputThatFailsExits1(t *testing.T) {
	for _, args := range []string{"list", "schema", "--help", "run --help", "run --print-spec", "verify --runs 2 --protocol 2pl --distribution uniform " + strings.Join(small, " ")} {
		var errs bytes.Buffer
		a := &app{run: sim.Run, in: strings.NewReader(""), out: full{}, err: &errs}
		if code := a.execute(context.Background(), strings.Fields(args)); code != exitFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%s: exit %d: %s", args, code, &errs)
		}
	}
}

func TestHistoryAndCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	args := append([]string{"--protocol", "2pl", "--distribution", "zipfian", "--history", "h.jsonl", "--read", "0.4", "--update", "0.4", "--insert", "0.1", "--scan", "0.1"}, small...)
	if _, errs, code := command(sim.Run, "", args...); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, level := range []string{"", "serializable", "read-committed"} {
		out, errs, code := command(sim.Run, "", append([]string{"check", "h.jsonl"}, levelFlag(level)...)...)
		if code != 0 || !strings.Contains(out, "serializable") {
			t.Errorf("level %q: exit %d: %s%s", level, code, out, errs)
		}
	}
	if names, err := filepath.Glob(".*"); err != nil || len(names) > 0 {
		t.Errorf("left behind: %v %v", names, err)
	}
}

func levelFlag(level string) []string {
	if level == "" {
		return nil
	}
	return []string{"--level", level}
}

// start runs the command in a process of its own with the engine named name.
func start(t *testing.T, name, dir string, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.Command(exe)
	cmd.Args = append([]string{"simulate"}, args...)
	cmd.Env = append(os.Environ(), engineVariable+"="+name)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &out, &errs
}

func TestWorkerCrashIsReported(t *testing.T) {
	cmd, _, errs := start(t, "panic", t.TempDir(), "--protocol", "2pl,occ", "--distribution", "uniform")
	err := cmd.Wait()
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(errs.String(), "the engine broke") ||
		!strings.Contains(errs.String(), "a worker process broke down: exit status 2") {
		t.Errorf("%v: %s", err, errs)
	}
}

func TestWorkerErrorIsTheRunsOwn(t *testing.T) {
	cmd, _, errs := start(t, "unlucky", t.TempDir(), "--protocol", "2pl,occ", "--distribution", "uniform", "--jobs", "2")
	err := cmd.Wait()
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.HasPrefix(errs.String(), "simulate: no luck (simulate run --protocol ") ||
		strings.Count(errs.String(), "simulate run") != 1 {
		t.Errorf("%v: %s", err, errs)
	}
}

// TestInterrupt stops a comparison with runs that notice and with runs that do
// not, in this process and in workers.
func TestInterrupt(t *testing.T) {
	for _, c := range []struct {
		engine, command, protocols, want string
		signal                           syscall.Signal
	}{
		{"slow", "", "2pl", "CUT SHORT  2pl under uniform keys", syscall.SIGTERM},
		{"slow", "run", "2pl", "CUT SHORT  2pl under uniform keys", syscall.SIGINT},
		{"slow", "", "2pl,occ", "CUT SHORT  occ under uniform keys", syscall.SIGINT},
		{"slow", "run", "2pl,occ", "CUT SHORT  occ under uniform keys", syscall.SIGHUP},
		{"deaf", "", "2pl", "", syscall.SIGTERM},
		{"deaf", "run", "2pl", "", syscall.SIGTERM},
		{"deaf", "", "2pl,occ", "", syscall.SIGTERM},
	} {
		if signal.Ignored(c.signal) {
			c.signal = syscall.SIGTERM // under nohup, a hangup is not heard
		}
		dir := t.TempDir()
		args := strings.Fields(c.command + " --protocol " + c.protocols + " --distribution uniform --history h")
		cmd, out, errs := start(t, c.engine, dir, args...)
		waitForFiles(t, dir, 1+strings.Count(c.protocols, ","))
		if err := cmd.Process.Signal(c.signal); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		if cmd.ProcessState.ExitCode() != exitInterrupt || !strings.Contains(errs.String(), "simulate: cut short after 0 of ") {
			t.Errorf("%v: %v: %s", c, err, errs)
		}
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: want %q in\n%s", c, c.want, out)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("%v: left behind: %v %v", c, left, err)
		}
	}
}

// TestWorkerOutlivesTwoSignals sends a worker what one Ctrl-C does.
func TestWorkerOutlivesTwoSignals(t *testing.T) {
	r, err := sim.DefaultRun("2pl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	input, err := json.Marshal(job{Spec: r, History: filepath.Join(dir, "h")})
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(exe)
	cmd.Args = []string{"simulate", workerName}
	cmd.Env = append(os.Environ(), engineVariable+"=slow")
	cmd.Stdin, cmd.Stdout = bytes.NewReader(input), &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitForFiles(t, dir, 1)
	for range 2 {
		// The second may come after the end.
		_ = cmd.Process.Signal(os.Interrupt)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), `"verdict":"cut-short"`) {
		t.Errorf("%v: %s", err, out.String())
	}
}

// waitForFiles returns when n runs have begun to write.
func waitForFiles(t *testing.T, dir string, n int) {
	t.Helper()
	for range 3000 {
		if files, err := filepath.Glob(filepath.Join(dir, ".h-*")); err == nil && len(files) >= n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("nothing is written")
}

func TestVerify(t *testing.T) {
	args := append([]string{"verify", "--runs", "3", "--parallel", "2", "--protocol", "2pl,occ", "--distribution", "zipfian"}, small...)
	out, errs, code := command(sim.Run, "", args...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(lines) != 3 || !strings.HasPrefix(lines[2], "all equal: 2 × 3 runs, digest ") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// TestVerifyLooksAtItsDirectoriesFirst: one that is in use is bad input, and no
// repetition has begun.
func TestVerifyLooksAtItsDirectoriesFirst(t *testing.T) {
	dir := t.TempDir()
	args := append([]string{"verify", "--runs", "2", "--protocol", "2pl", "--distribution", "uniform", "--data-dir", dir}, small...)
	args = append(args, "--replication", "raft")
	if out, errs, code := command(sim.Run, "", args...); code != 0 {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	if err := os.RemoveAll(filepath.Join(dir, "verify-1")); err != nil {
		t.Fatal(err)
	}
	out, errs, code := command(sim.Run, "", args...)
	want := "simulate: data-dir: " + filepath.Join(dir, "verify-2") + " holds s1-n1.db of another run: want a directory without .db files\n"
	if code != exitBadInput || out != "" || errs != want {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	left, err := filepath.Glob(filepath.Join(dir, "verify-1", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("a repetition has begun: %v %v", left, err)
	}
}

func TestVerifyFindsTheFirstDifference(t *testing.T) {
	cmd, out, errs := start(t, "drift", t.TempDir(), "verify", "--runs", "2", "--protocol", "2pl", "--distribution", "uniform")
	err := cmd.Wait()
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(out.String(), "runs 1 and 2 differ\n  event 2 is\n    request 2 end ") {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
}

func TestListHasEveryRegistry(t *testing.T) {
	all, _, code := command(sim.Run, "", "list")
	if code != 0 {
		t.Fatalf("exit %d", code)
	}
	for _, want := range []string{"2pl", "victim", "ycsb", "two-transfers", "scrambled-zipfian", "hot-data", "lognormal:MEDIAN,SIGMA", "five-regions", "abort_ratio"} {
		if !strings.Contains(all, want) {
			t.Errorf("list lacks %s", want)
		}
	}
	for _, l := range listingNames() {
		one, _, code := command(sim.Run, "", "list", l)
		if code != 0 || !strings.Contains(all, one) {
			t.Errorf("list %s: exit %d, and it is no part of list", l, code)
		}
	}
}

func TestSchemaIsThatOfSim(t *testing.T) {
	out, _, code := command(sim.Run, "", "schema")
	if code != 0 || out != string(sim.Schema()) {
		t.Errorf("exit %d", code)
	}
}

func TestCompletion(t *testing.T) {
	out, _, code := command(sim.Run, "", "__complete", "run", "--protocol", "2p")
	if code != 0 || !strings.Contains(out, "2pl") {
		t.Errorf("exit %d: %s", code, out)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out, _, code := command(sim.Run, "", "completion", shell); code != 0 || len(out) < 1000 {
			t.Errorf("%s: exit %d, %d bytes", shell, code, len(out))
		}
	}
}
