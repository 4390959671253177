package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"interleave/reports"
	"interleave/sim"
)

func (a *app) verifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify",
		Short: "Repeat a comparison and compare what happened, event by event",
		Long: `Carry out every run of a comparison several times, each in a process of its own, and
compare digests and all figures. Prints one digest for the whole when they are equal, and
otherwise the first request or installed version in which two of them differ; the exit
code is 1 then. It takes the settings of run.`,
		Example: "  simulate verify --runs 20 --parallel 8\n  simulate verify --protocol 2pl --distribution zipfian --requests 500",
		Args:    noArgs,
	}
	spec := addSpecFlags(c)
	times := c.Flags().Int("runs", 5, "how often each run is carried out")
	parallel := c.Flags().Int("parallel", 2, "processes at a time")
	c.RunE = func(c *cobra.Command, _ []string) error {
		_, runs, err := a.expand(spec)
		switch {
		case err != nil:
			return err
		case *times < 2:
			return badf("runs: %d is not allowed: want a whole number from 2 up", *times)
		case *parallel < 1:
			return badf("parallel: %d is not allowed: want a whole number from 1 up", *parallel)
		}
		return a.verify(c.Context(), runs, *times, *parallel)
	}
	return c
}

// verify carries out each run so many times and compares.
func (a *app) verify(ctx context.Context, runs []sim.RunSpec, times, parallel int) error {
	for i := range runs {
		if h := runs[i].History; h != "" {
			return badf("history: %s is not written by verify, which compares traces: want it unset, or simulate run", h)
		}
		for n := range times {
			r := repetition(&runs[i], n)
			if err := r.CheckFiles(); err != nil {
				return bad(err)
			}
		}
	}
	dir, err := os.MkdirTemp("", "simulate-verify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all := sha256.New()
	equal := true
	for i := range runs {
		digest, same, err := a.verifyRun(ctx, &runs[i], filepath.Join(dir, strconv.Itoa(i)), times, parallel)
		if err != nil {
			return err
		}
		equal = equal && same
		io.WriteString(all, digest)
	}
	if !equal {
		a.code = exitFailed
		return nil
	}
	fmt.Fprintf(a.out, "all equal: %d × %d runs, digest %s\n", len(runs), times, hex.EncodeToString(all.Sum(nil)))
	return nil
}

// repetition is r for the time n, from 0, with a data directory of its own.
func repetition(r *sim.RunSpec, n int) sim.RunSpec {
	again := *r
	if r.DataDir != "" {
		again.DataDir = filepath.Join(r.DataDir, "verify-"+strconv.Itoa(n+1))
	}
	return again
}

// verifyRun repeats one run and reports its digest, and whether all were equal.
// The repetitions go in rounds, so that few traces exist at a time.
func (a *app) verifyRun(ctx context.Context, r *sim.RunSpec, dir string, times, parallel int) (string, bool, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", false, err
	}
	jobs := make([]job, times)
	for n := range jobs {
		jobs[n] = newJob(repetition(r, n))
		jobs[n].Trace = filepath.Join(dir, strconv.Itoa(n))
	}
	var first *reports.Result
	for from := 0; from < times; from += parallel {
		round := jobs[from:min(from+parallel, times)]
		results, err := a.workers(ctx, round, parallel)
		if err != nil {
			return "", false, err
		}
		for n, res := range results {
			if first == nil {
				first = res
				continue
			}
			difference, err := compareRuns(first, res, jobs[0].Trace, round[n].Trace)
			if err != nil {
				return "", false, err
			}
			if difference != "" {
				fmt.Fprintf(a.out, "%s: runs 1 and %d differ\n%s", r.Command(), from+n+1, difference)
				return "", false, nil
			}
			if err := os.Remove(round[n].Trace); err != nil {
				return "", false, err
			}
		}
	}
	if first.Verdict.Failed() {
		a.code = exitFailed
	}
	fmt.Fprintf(a.out, "%-28s %d equal, verdict %s, digest %s\n", r.Slug(), times, first.Verdict, first.Digest)
	return first.Digest, true, nil
}

// workers is performAll with processes for every job, be it one, and every
// result there.
func (a *app) workers(ctx context.Context, jobs []job, parallel int) ([]*reports.Result, error) {
	results, err := a.performAllBy(ctx, a.delegate, jobs, parallel)
	if ctx.Err() != nil {
		return nil, errInterrupted{"cut short"}
	}
	return results, err
}

// compareRuns returns "" for equal runs, and otherwise in what they differ first.
func compareRuns(a, b *reports.Result, traceA, traceB string) (string, error) {
	if a.Digest != b.Digest {
		return firstDifference(traceA, traceB)
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	if err := errors.Join(errX, errY); err != nil {
		return "", err
	}
	if !bytes.Equal(x, y) {
		return "  the digests are equal, but not all figures are:\n" + differingFigures(x, y), nil
	}
	return "", nil
}

// differingFigures names the top-level figures in which two results differ.
func differingFigures(x, y []byte) string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(x, &a) != nil || json.Unmarshal(y, &b) != nil {
		return "  they are not JSON\n"
	}
	var out bytes.Buffer
	for _, m := range reports.Metrics() {
		if !bytes.Equal(a[m.Name], b[m.Name]) {
			fmt.Fprintf(&out, "  %s: %s and %s\n", m.Name, a[m.Name], b[m.Name])
		}
	}
	return out.String()
}

// firstDifference returns the first line in which two traces differ.
func firstDifference(nameA, nameB string) (string, error) {
	a, errA := os.Open(nameA)
	b, errB := os.Open(nameB)
	if err := errors.Join(errA, errB); err != nil {
		return "", err
	}
	defer a.Close()
	defer b.Close()
	x, y := bufio.NewScanner(a), bufio.NewScanner(b)
	for line := 1; ; line++ {
		moreX, moreY := x.Scan(), y.Scan()
		if !moreX && !moreY {
			return "  the traces are equal, though the digests are not\n", errors.Join(x.Err(), y.Err())
		}
		if moreX && moreY && x.Text() == y.Text() {
			continue
		}
		return fmt.Sprintf("  event %d is\n    %s\n  in one and\n    %s\n  in the other\n", line, textOrEnd(x, moreX), textOrEnd(y, moreY)), nil
	}
}

func textOrEnd(s *bufio.Scanner, more bool) string {
	if !more {
		return "missing"
	}
	return s.Text()
}
