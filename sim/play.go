package sim

import (
	"fmt"
	"time"

	"interleave/internal/units"
	"interleave/reports"
	"interleave/sim/event"
	"interleave/txnproto"
	"interleave/txnproto/history"
)

// stopReason is why a run ended.
type stopReason uint8

const (
	stopNot         stopReason = iota
	stopDone                   // as the spec says
	stopNoMore                 // every client has done all it had to do
	stopDead                   // requests are open, and nothing will happen any more
	stopIdle                   // requests are open, and nothing has completed for long
	stopBound                  // the bound of virtual time
	stopInterrupted            // from outside
)

const (
	// electBound is how long the first leaders may take.
	electBound = time.Minute
	// drainBound is how long what was asked to commit may take after the end, or
	// drainTimes as long as the slowest request where that is longer.
	drainBound = time.Minute
	drainTimes = 10
	// watchEvery is how often the run looks whether anything still completes,
	// and stallTicks after how many looks without a completion it gives up. Looks
	// at which a program is in a pause as long as that do not count, nor those at
	// which the oracle, a processor, a disk or somebody's clock still takes as long: it
	// is slow on purpose, and comes; nor those at which an attempt has come further than
	// any before since the last completion, as in a livelock none does for long.
	watchEvery = 5 * time.Second
	stallTicks = 24
	// pollEvery is after how many events the run looks whether it shall stop.
	pollEvery = 512
	// drainBatch is how many events run between two looks at whether the drain is
	// over: a look costs as much as there are clients.
	drainBatch = 64
)

// play runs the virtual time of a run: leaders, warm-up, window, and what must
// come to rest afterwards. The result lacks the judgement of the history.
func (r *run) play() (err error) {
	if err := r.assemble(); err != nil {
		return err
	}
	if err := r.repl.Start(); err != nil {
		return err
	}
	defer func() {
		if cerr := r.repl.Close(); err == nil && cerr != nil {
			err = cerr
		}
	}()
	if !r.drive(r.cluster.Led, 1, electBound) {
		if r.stop == stopInterrupted {
			return r.finish()
		}
		return fmt.Errorf("no leader for every shard within %s of virtual time", units.Duration(electBound))
	}
	from := r.loop.Now()
	r.windowFrom = from.Add(r.spec.Warmup)
	r.loop.At(r.windowFrom, r.loop.Handle("run.window", r.openWindow), 0)
	if r.spec.Duration > 0 {
		hEnd := r.loop.Handle("run.end", func(uint64) { r.end(stopDone) })
		r.loop.At(from.Add(r.spec.Duration), hEnd, 0)
	}
	hBound := r.loop.Handle("run.bound", func(uint64) { r.end(stopBound) })
	bound := r.loop.Schedule(from.Add(r.spec.MaxVirtualTime), hBound, 0)
	r.watch(bound)
	if err := r.planCrashes(); err != nil {
		return err
	}
	r.clients.Start()
	r.drive(func() bool { return r.ended }, pollEvery, 0)
	return r.finish()
}

// openWindow starts the measurement: what was before was the warm-up.
func (r *run) openWindow(uint64) {
	r.inWindow = true
	r.windowFrom = r.loop.Now()
	r.before = r.clients.Ended()
	r.collector.ResetWindow(r.loop.Now())
	r.cluster.ResetStats()
	r.net.ResetStats()
}

// end stops the run at the current event.
func (r *run) end(why stopReason) {
	if !r.ended {
		r.ended, r.stop = true, why
		r.loop.Stop()
	}
}

// watch looks now and then whether anything still completes. Its own timer and
// the bound's are the only events that are not the system's.
func (r *run) watch(bound event.Timer) {
	var seen uint64
	ticks, furthest := 0, 0
	var h event.HandlerID
	h = r.loop.Handle("run.watch", func(uint64) {
		done := r.clients.Ended()
		completed := done != seen
		if completed {
			seen, furthest = done, 0
		}
		ops := r.clients.Furthest()
		if completed || ops > furthest || r.clients.Pausing(watchEvery) || r.cluster.Delayed(watchEvery) {
			ticks = 0
		} else {
			ticks++
		}
		furthest = max(furthest, ops)
		idle := r.loop.Len() <= r.ownEvents()
		switch {
		case idle && !r.clients.AnyOpen() && r.inWindow:
			r.end(stopNoMore)
		case idle && r.clients.AnyOpen():
			r.end(stopDead)
		case ticks >= stallTicks && r.clients.AnyOpen():
			r.end(stopIdle)
		}
		if !r.ended {
			r.loop.After(watchEvery, h, 0)
		}
	})
	r.loop.After(watchEvery, h, 0)
}

// ownEvents is how many of the pending events belong to the run itself.
func (r *run) ownEvents() int {
	own := 1 // the bound
	if r.spec.Duration > 0 {
		own++
	}
	if !r.inWindow {
		own++
	}
	return own
}

// drive runs events until done says so, which is asked after every batch of them
// (and a batch ends where the loop is stopped), and reports whether it did. It
// stops early when nothing is left to run, when bound (if not 0) has passed, and
// when the run is interrupted from outside.
func (r *run) drive(done func() bool, batch int, bound time.Duration) bool {
	limit := event.Never
	if bound > 0 {
		limit = r.loop.Now().Add(bound)
	}
	for n := 0; ; n += batch {
		if done() {
			return true
		}
		if n%pollEvery == 0 && r.interrupted() {
			r.cutShort()
			return false
		}
		if r.loop.RunEvents(batch, limit) == 0 {
			return done()
		}
	}
}

// cutShort ends the run for a reason from outside, be it in its drain.
func (r *run) cutShort() {
	if r.ended {
		r.stop = stopInterrupted
		r.fail(reports.VerdictCutShort, "interrupted after %d requests, while what had been asked to commit came to its end", r.clients.Ended())
		return
	}
	r.end(stopInterrupted)
}

// interrupted tells the progress and reports whether the run shall stop.
func (r *run) interrupted() bool {
	if r.opt.Progress != nil {
		if r.spec.Duration > 0 {
			r.opt.Progress(min(int64(r.loop.Now()), int64(r.spec.Duration)), int64(r.spec.Duration))
		} else {
			done := int64(0)
			if r.inWindow {
				done = int64(r.clients.Ended() - r.before)
			}
			r.opt.Progress(done, int64(r.spec.Requests))
		}
	}
	return r.ctx.Err() != nil
}

// finish closes the window, lets what was asked to commit come to its end, and
// checks what must hold of the final state.
func (r *run) finish() error {
	now := r.loop.Now()
	open := r.clients.Open()
	waiting := r.cluster.Waiting()
	r.snapshot(now, open)
	if err := r.describe(); err != nil {
		return err
	}
	r.explainStop(open, waiting)
	r.noteLateCrashes(now)
	r.noteUnused()
	if r.stop == stopInterrupted {
		return nil
	}
	r.clients.Close()
	patience := max(drainBound, drainTimes*time.Duration(max(r.result.Latency.MaxNS, r.result.OldestNS)))
	if !r.drive(func() bool { return !r.clients.Busy() && r.cluster.Quiet() }, drainBatch, patience) {
		if r.stop == stopInterrupted {
			return nil
		}
		r.fail(reports.VerdictStalled, "%s", "after the end of the run, what had been asked to commit did not come to an end: "+r.cluster.Unrest())
		if r.recorder != nil {
			r.recorder.rec.MarkUnfinished()
		}
		return nil
	}
	settled := false
	r.repl.Settle(func() { settled = true })
	if !r.drive(func() bool { return settled }, 1, patience) {
		if r.stop != stopInterrupted {
			r.fail(reports.VerdictStalled, "the replicas did not come to rest after the end of the run")
		}
		return nil
	}
	r.cluster.TakeBackLost()
	if err := r.cluster.CompareReplicas(); err != nil {
		r.fail(reports.VerdictReplicasDiffer, "%v", err)
	}
	if err := r.workload.Check(r.cluster.View()); err != nil {
		r.fail(reports.VerdictInvariant, "%v%s", err, r.whyBroken())
	}
	// The digest also covers what ended and was installed after the window.
	r.result.Digest = r.collector.Finish(now, nil).Digest
	return nil
}

// whyBroken says where a promise below serializability leaves invariants to the
// programs.
func (r *run) whyBroken() string {
	switch r.promise {
	case history.Serializable.String(), history.StrictSerializable.String():
		return ""
	default:
		return fmt.Sprintf(". %s promises %s, under which transactions that overlap can break what each of them alone keeps: they would have to lock what they read", r.spec.Protocol, r.promise)
	}
}

// explainStop names a run that did not end as its spec says.
func (r *run) explainStop(open []txnproto.OpenRequest, waiting int) {
	switch r.stop {
	case stopDone, stopNoMore:
	case stopDead:
		if waiting > 0 {
			r.fail(reports.VerdictDeadlocked, "%d open requests, %d operations wait for each other, and nothing is left to happen: %s",
				len(open), waiting, r.cluster.WhoWaits())
			return
		}
		r.fail(reports.VerdictStalled, "nothing is left to happen, and requests are open: %d; %s", len(open), r.cluster.Unrest())
	case stopIdle:
		r.fail(reports.VerdictStalled, "no request completed for %s of virtual time; requests open: %d, operations that wait: %d%s",
			units.Duration(watchEvery*stallTicks), len(open), waiting, r.whyIdle(open))
	case stopBound:
		r.fail(reports.VerdictVirtualTimeBound, "%s of virtual time passed before the end; requests open: %d, operations that wait: %d%s",
			units.Duration(r.spec.MaxVirtualTime), len(open), waiting, awaited(open))
	case stopInterrupted:
		r.fail(reports.VerdictCutShort, "interrupted after %d requests", r.clients.Ended())
	case stopNot:
		// The loop ran dry before the watch looked.
		r.fail(reports.VerdictStalled, "nothing is left to happen; requests open: %d", len(open))
	default:
		panic("sim: unknown reason to stop")
	}
}

// whyIdle says what went on while no request completed.
func (r *run) whyIdle(open []txnproto.OpenRequest) string {
	return awaited(open) + r.livelock()
}

// awaited says how many of the open requests wait for a timestamp, if any does.
func awaited(open []txnproto.OpenRequest) string {
	n := 0
	for i := range open {
		if open[i].Doing == txnproto.DoingTimestamp {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", requests that wait for a timestamp: %d", n)
}

// livelock says that no shard can serve, or what attempts are aborted for.
func (r *run) livelock() string {
	if !r.cluster.Led() {
		return "; a shard has no leader: too few of its replicas are up"
	}
	if n, most := r.collector.Barren(); n > 0 {
		return fmt.Sprintf("; meanwhile %d attempts were aborted, most for %v: a livelock, which fewer clients or other waits before a retry may end", n, most)
	}
	return ""
}

// fail sets the verdict, unless one is set: the first fault is the one to look at.
func (r *run) fail(v reports.Verdict, format string, args ...any) {
	if r.result.Verdict == reports.VerdictOK {
		r.result.Verdict, r.result.Why = v, fmt.Sprintf(format, args...)
	}
}

func (r *run) verdict() reports.Verdict { return r.result.Verdict }
