package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"interleave/reports"
	"interleave/sim/vtime"
)

// maxRepeats is how often a run on raft is done over when the wall clock may
// have disturbed it.
const maxRepeats = 5

// ErrInterrupted is returned with the part of a result that there is when the
// context of a run ended first.
var ErrInterrupted = errors.New("the run was cut short")

// Run carries out one run and judges it. The result's verdict says what failed,
// if anything did; the error is for a run that could not be carried out, and
// ErrInterrupted for one that ctx ended: then the result covers what was done,
// unchecked, with the verdict cut-short.
//
// A run on raft works in a bubble of virtual time, one at a time in a process,
// and is done over when the machine was so slow that goroutines may have been
// preempted.
func Run(ctx context.Context, spec RunSpec, opt Options) (*reports.Result, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	began := time.Now()
	var r *run
	repeats := 0
	for {
		var trace bytes.Buffer
		var err error
		r = &run{ctx: ctx, spec: spec, opt: opt}
		if opt.Trace != nil {
			r.trace = &trace
		}
		var suspect uint64
		if spec.Replication == "raft" {
			var rep vtime.Report
			rep, err = vtime.Run(func(b *vtime.Bubble) error {
				r.bubble = b
				return r.play()
			})
			suspect = rep.Suspect
		} else {
			err = withCollector(r.play)
		}
		if err != nil {
			return nil, err
		}
		if suspect > 0 && r.verdict() != reports.VerdictCutShort {
			if repeats++; repeats <= maxRepeats {
				continue
			}
			repeats = maxRepeats
			r.fail(reports.VerdictUnrepeatable, "in each of %d tries a step took 10 ms or more of wall time, so goroutines may have been preempted", maxRepeats+1)
		}
		if opt.Trace != nil {
			if _, err := io.Copy(opt.Trace, &trace); err != nil {
				return nil, fmt.Errorf("writing the trace: %w", err)
			}
		}
		break
	}
	if r.verdict() == reports.VerdictCutShort {
		return r.result, ErrInterrupted
	}
	checkBegan := time.Now()
	if err := r.judge(); err != nil {
		return nil, err
	}
	if opt.Wall {
		r.result.Wall = r.wall(time.Since(began), time.Since(checkBegan), repeats)
	}
	return r.result, nil
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
