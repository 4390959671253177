package event

import "time"

type item struct {
	at   Time
	seq  uint64
	h    HandlerID
	slot uint32
	arg  uint64
}

// Loop holds the pending events and the clock. The zero Loop is not ready; use New.
type Loop struct {
	now      Time
	seq      uint64
	q        []item
	handlers []func(uint64)
	names    []string
	gens     []uint32
	free     []uint32
	live     int
	ran      uint64
	stopped  bool
}

// New returns an empty loop at time 0.
func New() *Loop { return &Loop{gens: make([]uint32, 1)} }

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

// At schedules h(arg) at time at. REQUIRES: at is not before Now.
func (l *Loop) At(at Time, h HandlerID, arg uint64) { l.push(at, h, 0, arg) }

// After schedules h(arg) d from now. REQUIRES: d >= 0.
func (l *Loop) After(d time.Duration, h HandlerID, arg uint64) { l.push(l.now.Add(d), h, 0, arg) }

// Schedule is At with a handle to cancel it.
func (l *Loop) Schedule(at Time, h HandlerID, arg uint64) Timer {
	var slot uint32
	if n := len(l.free); n > 0 {
		slot = l.free[n-1]
		l.free = l.free[:n-1]
	} else {
		l.gens = append(l.gens, 0)
		slot = uint32(len(l.gens) - 1)
	}
	l.gens[slot]++
	l.push(at, h, slot, arg)
	return Timer{slot, l.gens[slot]}
}

// Cancel takes back a scheduled event. It reports false, and does nothing,
// when the event has run or was cancelled before.
func (l *Loop) Cancel(t Timer) bool {
	if t.slot == 0 || l.gens[t.slot] != t.gen {
		return false
	}
	l.gens[t.slot]++
	l.live--
	return true
}

// Stop makes Run and RunUntil return after the current event.
func (l *Loop) Stop() { l.stopped = true }

// NextAt returns the time of the earliest pending event, or Never.
func (l *Loop) NextAt() Time {
	if len(l.q) == 0 {
		return Never
	}
	return l.q[0].at
}

// Step runs the earliest event. It reports false when none is pending.
func (l *Loop) Step() bool {
	for len(l.q) > 0 {
		it := l.pop()
		if it.slot != 0 {
			dead := l.gens[it.slot]&1 == 0
			l.gens[it.slot] += uint32(1)
			if dead {
				l.gens[it.slot]--
				l.free = append(l.free, it.slot)
				continue
			}
			l.free = append(l.free, it.slot)
		}
		l.live--
		l.now = it.at
		l.ran++
		l.handlers[it.h](it.arg)
		return true
	}
	return false
}

// Run runs events until none is pending or Stop is called.
func (l *Loop) Run() {
	l.stopped = false
	for !l.stopped && l.Step() {
	}
}

// RunUntil runs every event up to and including time t, then sets the clock to t.
// It returns early, with the clock at the last event, when Stop is called.
func (l *Loop) RunUntil(t Time) {
	l.stopped = false
	for !l.stopped && l.NextAt() <= t {
		l.Step()
	}
	if !l.stopped && l.now < t {
		l.now = t
	}
}

func (l *Loop) less(i, j int) bool {
	a, b := &l.q[i], &l.q[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (l *Loop) push(at Time, h HandlerID, slot uint32, arg uint64) {
	if at < l.now {
		panic("event: scheduled in the past: " + at.String() + " before " + l.now.String() + " by " + l.names[h])
	}
	l.seq++
	l.live++
	l.q = append(l.q, item{at, l.seq, h, slot, arg})
	for i := len(l.q) - 1; i > 0; {
		p := (i - 1) / 2
		if !l.less(i, p) {
			break
		}
		l.q[i], l.q[p] = l.q[p], l.q[i]
		i = p
	}
}

func (l *Loop) pop() item {
	top := l.q[0]
	n := len(l.q) - 1
	l.q[0] = l.q[n]
	l.q = l.q[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && l.less(c+1, c) {
			c++
		}
		if !l.less(c, i) {
			break
		}
		l.q[i], l.q[c] = l.q[c], l.q[i]
		i = c
	}
	return top
}
