package vtime

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"interleave/sim/event"
)

// ErrBusy is returned by Run while another Run of the process is under way:
// they would share the one processor, and preempt each other.
var ErrBusy = errors.New("vtime: another run is under way in this process")

// SuspectAfter is the wall time from which on a stimulus may have been
// preempted: the scheduler's time slice.
const SuspectAfter = 10 * time.Millisecond

// Report says how a run went. It describes the wall clock, so it differs
// between runs of equal outcome.
type Report struct {
	Stimuli     uint64
	Watched     uint64        // those in which order matters
	Suspect     uint64        // watched ones that took SuspectAfter or more
	Longest     time.Duration // the longest watched one, in wall time
	Collections int           // garbage collections between stimuli
	// Blind is set where the platform has no clock that can be read inside a
	// bubble. Suspect is then always 0 and proves nothing.
	Blind bool
}

// Panic is what Run panics with when the function it runs does.
type Panic struct {
	Value any
	Stack []byte // of the panic
}

// Error gives the value and where it came from.
func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the value of the panic when it is an error, and otherwise nil.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Bubble is a run under way. Its methods are for the driver, the goroutine that
// Run calls its function on.
type Bubble struct {
	start     time.Time // the bubble's clock when the run began
	report    Report
	order     Order         // of the stimulus under way
	began     time.Duration // real clock at its Begin
	shuffle   bool
	collector collector
}

var busy atomic.Bool

// Run calls f in a new bubble and returns when f has returned and no goroutine
// is left in the bubble. For the time of the run, GOMAXPROCS is 1 and the
// garbage collector runs between stimuli only.
//
// It fails with ErrBusy, or with f's error. When f panics, Run panics with a
// *Panic, and when f calls runtime.Goexit (as testing.T.FailNow does) so does
// Run. After each of these, goroutines that f left behind stay blocked for ever;
// left behind by an f that returned nil they are a fault of f's, and Run panics.
// REQUIRES: the caller is not in a bubble.
func Run(f func(*Bubble) error) (Report, error) {
	if !busy.CompareAndSwap(false, true) {
		return Report{}, ErrBusy
	}
	defer busy.Store(false)

	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	// A memory limit would start the collector in spite of the percentage.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(noMemoryLimit))

	b := &Bubble{}
	out := b.enter(f)
	switch {
	case out.panicked != nil:
		panic(out.panicked)
	case out.exited:
		runtime.Goexit()
	case out.left != nil && out.err == nil:
		panic(out.left)
	}
	return b.report, out.err
}

// outcome is how f ended.
type outcome struct {
	err      error
	panicked *Panic
	exited   bool // by runtime.Goexit
	left     any  // the bubble's complaint that goroutines are left
}

// enter runs f in a bubble. f has a goroutine of its own, so that whatever it
// does to end, the bubble's main goroutine returns in good order.
func (b *Bubble) enter(f func(*Bubble) error) (out outcome) {
	defer func() { out.left = recover() }()
	synctest.Test(new(testing.T), func(*testing.T) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			out.exited = true
			defer func() {
				if v := recover(); v != nil {
					out.exited = false
					out.panicked = asPanic(v)
				}
			}()
			b.start = time.Now()
			_, ok := realClock()
			b.report.Blind = !ok
			b.collector.reset()
			out.err = f(b)
			out.exited = false
		}()
		<-done
	})
	return out
}

func asPanic(v any) *Panic {
	if p, ok := v.(*Panic); ok {
		return p
	}
	return &Panic{Value: v, Stack: debug.Stack()}
}

// Order says whether the outcome of a stimulus could depend on the order in
// which the goroutines that it wakes run.
type Order uint8

const (
	// OrderMatters is for stimuli after which two goroutines are runnable at once
	// and one may see what the other does. They are watched.
	OrderMatters Order = iota
	// AnyOrder is for those that wake one goroutine after another, or several
	// that have nothing to do with each other.
	AnyOrder
)

// Begin starts a stimulus. Until Settle the driver may wake goroutines of the
// bubble, and should do nothing else that takes long.
func (b *Bubble) Begin(o Order) {
	b.order = o
	switch o {
	case OrderMatters:
		// The driver may have been running for nearly its whole slice, and whom
		// it wakes inherits the rest. Going through the scheduler starts a new one.
		runtime.Gosched()
		b.began, _ = realClock()
	case AnyOrder:
		if b.shuffle {
			runtime.GOMAXPROCS(shuffleProcs)
		}
	default:
		panic("vtime: unknown order")
	}
}

// Settle ends a stimulus: it returns when every goroutine of the bubble is
// blocked on something only the driver, or the clock, can give it.
func (b *Bubble) Settle() {
	synctest.Wait()
	b.report.Stimuli++
	if b.order == OrderMatters {
		b.watch()
	} else if b.shuffle {
		runtime.GOMAXPROCS(1)
	}
	if b.report.Stimuli%collectEvery == 0 && b.collector.due() {
		b.collector.collect()
		b.report.Collections++
	}
}

// watch looks at the clock: was there time for a preemption since Begin?
func (b *Bubble) watch() {
	b.report.Watched++
	if b.report.Blind {
		return
	}
	now, _ := realClock()
	took := now - b.began
	b.report.Longest = max(b.report.Longest, took)
	if took >= SuspectAfter {
		b.report.Suspect++
	}
}

// shuffleProcs is GOMAXPROCS while a shuffled stimulus runs.
const shuffleProcs = 4

// Shuffle lets the goroutines of every AnyOrder stimulus run at once from now
// on. It is for tests of the claim that any order will do: a run must come to
// the same outcome with it.
func (b *Bubble) Shuffle() { b.shuffle = true }

// Now returns the bubble's clock. It starts at 0 and never passes what AdvanceTo
// was given.
func (b *Bubble) Now() event.Time { return event.Time(time.Since(b.start)) }

// AdvanceTo moves the bubble's clock to t, running every timer that is due on
// the way, each when the goroutines woken by the one before have settled. It is
// a stimulus of its own and settles. When the clock is at t or later it does
// nothing.
func (b *Bubble) AdvanceTo(t event.Time, o Order) {
	d := t.Sub(b.Now())
	if d <= 0 {
		return
	}
	b.Begin(o)
	time.Sleep(d)
	b.Settle()
}

// Report returns the report so far.
func (b *Bubble) Report() Report { return b.report }
