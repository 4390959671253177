package main

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"interleave/reports"
	"interleave/sim"
)

var writers = map[string]func(io.Writer, []*reports.Result) error{
	"table": reports.WriteTable,
	"json":  reports.WriteJSON,
	"csv":   reports.WriteCSV,
}

func (a *app) runCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Compare protocols (the default command)",
		Args:  noArgs,
	}
	spec, output := addSpecFlags(c), addOutputFlags(c)
	printSpec := c.Flags().Bool("print-spec", false, "print the settings as a spec file instead of running")
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, runs, err := a.expand(spec)
		if err != nil {
			return err
		}
		if err := output.check(); err != nil {
			return err
		}
		if *printSpec {
			_, err := io.WriteString(a.out, s.YAML())
			return err
		}
		for i := range runs {
			if err := runs[i].CheckFiles(); err != nil {
				return bad(err)
			}
		}
		return a.compare(c.Context(), runs, output)
	}
	return c
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		if args[0] == "true" || args[0] == "false" {
			return badf("argument: %q is not expected: true and false follow an equals sign, as in --check=%s", args[0], args[0])
		}
		return badf("argument: %q is not expected: settings are flags, such as --protocol 2pl", args[0])
	}
	return nil
}

// expand returns the runs that flags and spec file ask for.
func (a *app) expand(flags *specFlags) (*sim.Spec, []sim.RunSpec, error) {
	s, err := flags.spec(a.in)
	if err != nil {
		return nil, nil, err
	}
	runs, err := s.Expand()
	if err != nil {
		return nil, nil, bad(err)
	}
	for _, n := range s.Notes() {
		fmt.Fprintln(a.err, "simulate: note: "+n)
	}
	return s, runs, nil
}

// compare carries out the runs and prints them in order.
func (a *app) compare(ctx context.Context, runs []sim.RunSpec, o *outputFlags) error {
	jobs := make([]job, len(runs))
	for i, r := range runs {
		jobs[i] = newJob(r)
		jobs[i].Wall = o.wall
	}
	results, err := a.performAll(ctx, jobs, o.jobs)
	var done []*reports.Result
	for _, r := range results {
		if r == nil {
			continue
		}
		done = append(done, r)
		if r.Verdict.Failed() {
			a.code = exitFailed
		}
	}
	if len(done) > 0 || err == nil {
		if werr := writers[o.format](a.out, done); werr != nil {
			return fmt.Errorf("write the results: %w", werr)
		}
	}
	if ctx.Err() != nil {
		finished := 0
		for _, r := range done {
			if r.Verdict != reports.VerdictCutShort {
				finished++
			}
		}
		return errInterrupted{fmt.Sprintf("cut short after %d of %s", finished, plural(len(runs), "run"))}
	}
	return err
}

// performAll carries out jobs, several at a time in worker processes, or one
// after another in this one. It returns their results in order, nil for one that
// did not end. The first error stops what has not begun. After ctx is done it
// returns within grace.
func (a *app) performAll(ctx context.Context, jobs []job, parallel int) ([]*reports.Result, error) {
	if len(jobs) == 1 || parallel == 1 {
		return a.performAllBy(ctx, a.perform, jobs, 1)
	}
	return a.performAllBy(ctx, a.delegate, jobs, parallel)
}

// performer carries out one job.
type performer func(context.Context, job, func(done, total int64)) (*reports.Result, error)

func (a *app) performAllBy(ctx context.Context, perform performer, jobs []job, parallel int) ([]*reports.Result, error) {
	meter := newMeter(a.err, len(jobs))
	defer meter.stop()
	var mu sync.Mutex // guards results, failed and next
	results := make([]*reports.Result, len(jobs))
	var failed error
	next := 0
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(jobs) || failed != nil || ctx.Err() != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	var wg sync.WaitGroup
	for range min(parallel, len(jobs)) {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				r, err := perform(ctx, jobs[i], func(done, total int64) { meter.progress(i, done, total) })
				mu.Lock()
				results[i] = r
				if err != nil && failed == nil {
					failed = err
				}
				mu.Unlock()
				meter.progress(i, 1, 1)
			}
		})
	}
	ended := make(chan error, 1)
	go func() { wg.Wait(); ended <- nil }()
	_ = awaitEnd(ctx, ended, grace)
	mu.Lock()
	defer mu.Unlock()
	return append([]*reports.Result(nil), results...), failed
}
