package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"interleave/nodes"
	"interleave/reports"
	"interleave/sim/vtime"
)

// maxTries is how often a run on raft is tried when the wall clock may have
// disturbed it.
const maxTries = 6

// ErrInterrupted is returned with the part of a result that there is when the
// context of a run ended first.
var ErrInterrupted = errors.New("the run was cut short")

// Run carries out one run and judges it. The result's verdict says what failed,
// if anything did; the error is for a run that could not be carried out, and
// ErrInterrupted for one that ctx ended: then the result covers what was done,
// unchecked, with the verdict cut-short.
//
// A run on raft works in a bubble of virtual time, one at a time in a process.
// Where the machine was so slow that goroutines may have been preempted, it is
// done over, until one try is above suspicion or two agree: a preemption falls
// where the wall clock has it, and never twice so that the same comes of it.
func Run(ctx context.Context, spec RunSpec, opt Options) (*reports.Result, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	began := time.Now()
	var suspects []string // digests
	r, trace, suspect, err := try(ctx, spec, opt)
	for err == nil && suspect && !slices.Contains(suspects, r.result.Digest) {
		suspects = append(suspects, r.result.Digest)
		if len(suspects) == maxTries {
			r.fail(reports.VerdictUnrepeatable, "in each of %d tries a step took 10 ms or more of wall time, so goroutines may have been preempted, and no two agree", maxTries)
			break
		}
		if spec.DataDir != "" { // the files of a try that does not count
			err = nodes.RemoveRaftFiles(spec.DataDir, spec.Shards, spec.Replicas, spec.Machines)
		}
		if err == nil {
			r, trace, suspect, err = try(ctx, spec, opt)
		}
	}
	if err != nil {
		return nil, err
	}
	if opt.Trace != nil {
		if _, err := io.Copy(opt.Trace, trace); err != nil {
			return nil, fmt.Errorf("writing the trace: %w", err)
		}
	}
	if r.verdict() == reports.VerdictCutShort {
		return r.result, ErrInterrupted
	}
	checkBegan := time.Now()
	if err := r.judge(); err != nil {
		return nil, err
	}
	if opt.Wall {
		r.result.Wall = r.wall(time.Since(began), time.Since(checkBegan), len(suspects))
	}
	return r.result, nil
}

// try plays the run once. It reports whether the wall clock may have disturbed it.
func try(ctx context.Context, spec RunSpec, opt Options) (r *run, trace *bytes.Buffer, suspect bool, err error) {
	r, trace = &run{ctx: ctx, spec: spec, opt: opt}, &bytes.Buffer{}
	if opt.Trace != nil {
		r.trace = trace
	}
	if spec.Replication != "raft" {
		return r, trace, false, withCollector(r.play)
	}
	rep, err := vtime.Run(func(b *vtime.Bubble) error {
		r.bubble = b
		return r.play()
	})
	return r, trace, err == nil && rep.Suspect > 0 && r.verdict() != reports.VerdictCutShort, err
}

// wall describes the cost of the run on this machine.
func (r *run) wall(elapsed, check time.Duration, repeats int) *reports.Wall {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return &reports.Wall{
		ElapsedNS:  elapsed.Nanoseconds(),
		RequestsPS: float64(r.clients.Ended()) / elapsed.Seconds(),
		EntriesPS:  float64(r.entries) / elapsed.Seconds(),
		Events:     r.loop.Processed(),
		CheckNS:    check.Nanoseconds(),
		HeapBytes:  m.HeapSys,
		Repeats:    repeats,
	}
}

// describe fills in which run the result is of.
func (r *run) describe() error {
	text, err := json.Marshal(r.spec)
	if err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	r.result.Spec = text
	r.result.Command = r.spec.Command()
	return nil
}
