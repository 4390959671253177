// Package event is virtual time: the clock, the event loop and its timers.
//
// One Loop drives one run. Events are ordered by (time, sequence number): two
// events of one instant run in the order in which they were scheduled, so no
// tie is left to chance. The loop is single-threaded; nothing in it may be
// called from another goroutine while it runs.
//
// An event is a value: a time, a handler index and one 64-bit argument. The
// argument is usually an index into the caller's own pool, so that scheduling
// allocates nothing:
//
//	h := loop.Handle("node.arrive", func(arg uint64) { pool[arg].arrive() })
//	loop.After(time.Millisecond, h, 17)
package event

import (
	"math"
	"math/bits"
	"strconv"
	"time"
)

// Time is a point in virtual time: nanoseconds since the start of the run.
type Time int64

// Never is later than every event.
const Never Time = math.MaxInt64

// Add returns t moved by d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the span from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Seconds returns t in seconds.
func (t Time) Seconds() float64 { return float64(t) / 1e9 }

// String formats t as a duration since the start of the run.
func (t Time) String() string {
	if t == Never {
		return "never"
	}
	return time.Duration(t).String()
}

// TransferTime returns how long n bytes take at perSecond bytes a second,
// rounded down to a nanosecond; 0 when perSecond is 0, which stands for no
// limit. REQUIRES: neither is negative. A time that cannot be represented is the
// longest that can.
func TransferTime(n, perSecond int64) time.Duration {
	if perSecond == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), 1e9)
	if hi >= uint64(perSecond) {
		return math.MaxInt64
	}
	ns, _ := bits.Div64(hi, lo, uint64(perSecond))
	return time.Duration(min(ns, math.MaxInt64))
}

// HandlerID names a function registered with Handle.
type HandlerID uint32

// String formats the id for messages.
func (h HandlerID) String() string { return "handler-" + strconv.Itoa(int(h)) }

// Timer names an event that can be cancelled. The zero Timer is no timer:
// cancelling it does nothing.
type Timer struct {
	slot uint32
	gen  uint32
}
