package event

import (
	"fmt"
	"math"
	"runtime/debug"
	"time"
)

// Loop holds the pending events and the clock. The zero Loop is not ready; use New.
type Loop struct {
	now Time
	q   ladder
	// never holds the events scheduled at Never, which do not run.
	never []item

	handlers []func(uint64)
	names    []string

	// gens has a generation per timer slot: odd while its event is pending,
	// even when it was cancelled or has run. Slot 0 is no timer.
	gens []uint32
	free []uint32

	live int // pending events, cancelled ones not counted
	dead int // cancelled events still in q or never
	ran  uint64

	stopped bool
	// The event that runs, or ran last.
	handler HandlerID
	arg     uint64
}

// New returns an empty loop at time 0.
func New() *Loop { return &Loop{q: newLadder(), gens: make([]uint32, 1)} }

// Now returns the current virtual time.
func (l *Loop) Now() Time { return l.now }

// Len returns the number of pending events, cancelled ones not counted.
func (l *Loop) Len() int { return l.live }

// Processed returns how many events have run.
func (l *Loop) Processed() uint64 { return l.ran }

// Handle registers fn under a name used in messages and returns its index.
func (l *Loop) Handle(name string, fn func(arg uint64)) HandlerID {
	l.handlers = append(l.handlers, fn)
	l.names = append(l.names, name)
	return HandlerID(len(l.handlers) - 1)
}

// HandlerName returns the name h was registered under.
func (l *Loop) HandlerName(h HandlerID) string {
	if int(h) >= len(l.names) {
		return h.String()
	}
	return l.names[h]
}

// At schedules h(arg) at time at. REQUIRES: at is not before Now. An event at
// Never stays pending and does not run.
func (l *Loop) At(at Time, h HandlerID, arg uint64) {
	l.push(item{at: at, arg: arg, h: h})
}

// After schedules h(arg) d from now. REQUIRES: d >= 0. A time that cannot be
// represented is Never.
func (l *Loop) After(d time.Duration, h HandlerID, arg uint64) {
	at := l.now + Time(d)
	if at < l.now && d >= 0 {
		at = Never
	}
	l.push(item{at: at, arg: arg, h: h})
}

// Schedule is At with a handle to cancel it.
func (l *Loop) Schedule(at Time, h HandlerID, arg uint64) Timer {
	var slot uint32
	if n := len(l.free); n > 0 {
		slot = l.free[n-1]
		l.free = l.free[:n-1]
	} else {
		slot = uint32(len(l.gens))
		l.gens = append(l.gens, 0)
	}
	l.gens[slot]++
	l.push(item{at: at, arg: arg, h: h, slot: slot})
	return Timer{slot, l.gens[slot]}
}

// Cancel takes back a scheduled event. It reports false, and does nothing,
// when the event has run, is running or was cancelled before.
func (l *Loop) Cancel(t Timer) bool {
	if t.slot == 0 || l.gens[t.slot] != t.gen {
		return false
	}
	l.gens[t.slot]++
	l.live--
	l.dead++
	if l.dead > l.live && l.dead >= sweepMin {
		l.sweep()
	}
	return true
}

// sweepMin keeps sweeps, which look at every bucket, rare in a small queue.
const sweepMin = 1024

// sweep drops the cancelled events. Each costs, over time, a constant: a sweep
// looks at fewer than two events for each one it drops.
func (l *Loop) sweep() {
	l.q.sweep(l.reap)
	k := 0
	for _, it := range l.never {
		if !l.reap(it) {
			l.never[k] = it
			k++
		}
	}
	l.never = l.never[:k]
	if l.dead != 0 {
		panic(fmt.Sprintf("event: %d cancelled events not found at %v", l.dead, l.now))
	}
}

// reap reports whether it was cancelled, and if so frees its slot: the caller
// drops it.
func (l *Loop) reap(it item) bool {
	if it.slot == 0 || l.gens[it.slot]&1 != 0 {
		return false
	}
	l.free = append(l.free, it.slot)
	l.dead--
	return true
}

// Call runs h(arg) at once, as part of the event that is running: for a
// component that reports several things of one instant in order. It is not
// counted as an event.
func (l *Loop) Call(h HandlerID, arg uint64) {
	outer, outerArg := l.handler, l.arg
	l.handler, l.arg = h, arg
	l.handlers[h](arg)
	l.handler, l.arg = outer, outerArg
}

// Stop makes Run and RunUntil return after the current event.
func (l *Loop) Stop() { l.stopped = true }

// NextAt returns the time of the earliest pending event, or Never.
func (l *Loop) NextAt() Time {
	q := &l.q
	for {
		if q.head == len(q.bottom) && !q.refill() {
			return Never
		}
		if it := &q.bottom[q.head]; it.slot == 0 || !l.reap(*it) {
			return it.at
		}
		q.head++
	}
}

// Step runs the earliest event. It reports false when none is pending.
func (l *Loop) Step() bool { return l.RunEvents(1, Never-1) == 1 }

// Run runs events until none is pending or Stop is called.
func (l *Loop) Run() { l.RunEvents(math.MaxInt, Never-1) }

// RunUntil runs every event up to and including time t, then sets the clock to
// t, unless t is Never. It returns early, with the clock at the last event,
// when Stop is called.
func (l *Loop) RunUntil(t Time) {
	l.RunEvents(math.MaxInt, t)
	if !l.stopped && l.now < t && t != Never {
		l.now = t
	}
}

// RunEvents runs at most n events up to and including time limit and returns how
// many it ran. It returns early when Stop is called.
func (l *Loop) RunEvents(n int, limit Time) (ran int) {
	defer l.annotate()
	l.stopped = false
	q := &l.q
	for ran < n && !l.stopped {
		if q.head == len(q.bottom) && !q.refill() {
			break
		}
		it := &q.bottom[q.head]
		if it.at > limit {
			break
		}
		q.head++
		if it.slot != 0 && !l.expire(it.slot) {
			continue
		}
		ran++
		l.live--
		l.ran++
		h, arg := it.h, it.arg
		l.now, l.handler, l.arg = it.at, h, arg
		l.handlers[h](arg)
	}
	return ran
}

// expire ends a timer whose event's turn has come. It reports false when it was cancelled.
func (l *Loop) expire(slot uint32) bool {
	l.free = append(l.free, slot)
	if l.gens[slot]&1 == 0 {
		l.dead--
		return false
	}
	l.gens[slot]++
	return true
}

func (l *Loop) push(it item) {
	if it.at < l.now {
		l.panicPast(it)
	}
	l.live++
	switch {
	case it.at <= l.q.bottomMax: // most are, in a small simulation
		if !l.q.insert(it) {
			l.q.insertFar(l.now, it)
		}
	case it.at == Never:
		l.never = append(l.never, it)
	default:
		l.q.push(l.now, it)
	}
}

func (l *Loop) panicPast(it item) {
	panic(fmt.Sprintf("event: %s(%d) scheduled in the past: %v is before now, %v",
		l.HandlerName(it.h), it.arg, it.at, l.now))
}

// HandlerPanic is what Run, RunUntil and Step panic with when a handler does.
type HandlerPanic struct {
	At      Time   // virtual time
	Handler string // name of the handler
	Arg     uint64
	Value   any    // what the handler panicked with
	Stack   []byte // the stack at the handler's panic
}

// Error says where in virtual time the handler panicked, and with what.
func (p *HandlerPanic) Error() string {
	return fmt.Sprintf("event: at %v handler %s(%d): %v", p.At, p.Handler, p.Arg, p.Value)
}

// Unwrap returns the value of the panic when it is an error, and otherwise nil.
func (p *HandlerPanic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// annotate, deferred, adds to a panic which event it came from. A loop run by a
// handler of another one keeps the innermost report.
func (l *Loop) annotate() {
	switch v := recover().(type) {
	case nil:
	case *HandlerPanic:
		panic(v)
	default:
		panic(&HandlerPanic{l.now, l.HandlerName(l.handler), l.arg, v, debug.Stack()})
	}
}
