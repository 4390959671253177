package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"interleave/reports"
)

// workerName is the subcommand of a worker process.
const workerName = "worker"

// report is a line that a worker writes: how far it is, or its result.
type report struct {
	Done   int64           `json:"done,omitempty"`
	Total  int64           `json:"total,omitempty"`
	Result *reports.Result `json:"result,omitempty"`
}

// workerCommand reads a job from standard input and writes reports.
func (a *app) workerCommand() *cobra.Command {
	return &cobra.Command{
		Use: workerName, Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var j job
			if err := json.NewDecoder(a.in).Decode(&j); err != nil {
				return badf("worker: job: %w", err)
			}
			enc := json.NewEncoder(a.out)
			last := time.Now()
			progress := func(done, total int64) {
				if now := time.Now(); now.Sub(last) > 100*time.Millisecond {
					last = now
					_ = enc.Encode(report{Done: done, Total: total})
				}
			}
			ended := make(chan error, 1)
			go func() {
				r, err := a.perform(c.Context(), j, progress)
				if err == nil {
					err = enc.Encode(report{Result: r})
				}
				ended <- err
			}()
			return awaitEnd(c.Context(), ended, workerGrace)
		},
	}
}

// workerGrace is shorter than grace: a worker must end by itself, or its files
// stay behind.
const workerGrace = grace * 2 / 3

// awaitEnd returns what comes from ended or, when nothing does within patience
// of the end of ctx, removes the files that are being written.
func awaitEnd(ctx context.Context, ended <-chan error, patience time.Duration) error {
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		discardUnfinished()
		return errInterrupted{"cut short"}
	}
}

// delegate carries out a job in a worker process.
func (a *app) delegate(ctx context.Context, j job, progress func(done, total int64)) (*reports.Result, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, exe)
	cmd.Args = []string{"simulate", workerName}
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stderr = &stderr
	// Not SIGINT: a shell starts what runs in its background with that ignored.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var result *reports.Result
	in := bufio.NewReader(stdout)
	for {
		line, readErr := in.ReadBytes('\n')
		var r report
		if len(line) > 0 && json.Unmarshal(line, &r) == nil {
			if r.Result != nil {
				result = r.Result
			} else if progress != nil {
				progress(r.Done, r.Total)
			}
		}
		if readErr != nil {
			break
		}
	}
	err = cmd.Wait()
	switch {
	case result != nil:
		return result, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil:
		err = errors.New("no result")
	case cmd.ProcessState.ExitCode() == exitFailed:
		// An error of the run's, with its command: no break-down.
		return nil, errors.New(firstLines(stderr.String()))
	}
	return nil, fmt.Errorf("a worker process broke down: %w: %s (%s)", err, firstLines(stderr.String()), j.Spec.Command())
}

// firstLines keeps the beginning of what a worker said, where a panic's message is.
func firstLines(s string) string {
	const most = 4000
	s = strings.TrimPrefix(strings.TrimSpace(s), "simulate: ")
	if len(s) > most {
		s = s[:most] + " …"
	}
	return s
}
