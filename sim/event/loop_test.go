package event

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTiesRunInOrderOfScheduling(t *testing.T) {
	l := New()
	var got []uint64
	h := l.Handle("note", func(arg uint64) { got = append(got, arg) })
	const n = 5_000
	for i := range uint64(n) {
		l.At(7, h, i)
	}
	first := l.Handle("first", func(uint64) { l.At(7, h, n) })
	l.At(6, first, 0)
	l.Run()
	if len(got) != n+1 || !slices.IsSorted(got) {
		t.Errorf("ran %d events, sorted %v; want %d in order of scheduling", len(got), slices.IsSorted(got), n+1)
	}
}

func TestScheduleAtNowRunsAfterThePendingOfNow(t *testing.T) {
	l := New()
	var got []string
	b := l.Handle("b", func(uint64) { got = append(got, "b") })
	c := l.Handle("c", func(uint64) { got = append(got, "c") })
	a := l.Handle("a", func(uint64) {
		got = append(got, "a")
		l.After(0, c, 0)
	})
	l.At(5, a, 0)
	l.At(5, b, 0)
	l.Run()
	if want := []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
}

func TestCancel(t *testing.T) {
	l := New()
	ran := 0
	var self Timer
	h := l.Handle("h", func(uint64) {
		ran++
		if l.Cancel(self) {
			t.Error("an event could be cancelled while it ran")
		}
	})
	self = l.Schedule(1, h, 0)
	other := l.Schedule(2, h, 0)
	if !l.Cancel(other) || l.Cancel(other) {
		t.Error("want the first Cancel to report true and the second false")
	}
	if l.Cancel(Timer{}) {
		t.Error("the zero Timer could be cancelled")
	}
	if l.Len() != 1 || l.NextAt() != 1 {
		t.Errorf("Len %d, NextAt %v; want 1 and 1ns", l.Len(), l.NextAt())
	}
	l.Run()
	// The slots are used again: the old timers must not reach the new events.
	fresh := l.Schedule(9, h, 0)
	if l.Cancel(self) || l.Cancel(other) {
		t.Error("an old timer cancelled a new event")
	}
	if !l.Cancel(fresh) || l.NextAt() != Never || l.Step() {
		t.Error("want nothing pending after the last cancellation")
	}
	if ran != 1 || l.Processed() != 1 {
		t.Errorf("ran %d, Processed %d; want 1", ran, l.Processed())
	}
}

// A caller that sets a far timer for each request and cancels it at once must
// not fill the memory.
func TestCancelledEventsDoNotPileUp(t *testing.T) {
	for _, at := range []Time{Time(time.Hour), Never} {
		l := New()
		h := l.Handle("h", func(uint64) {})
		for i := range uint64(100) {
			l.At(Time(i)*1000, h, i)
		}
		for range 1_000_000 {
			l.Cancel(l.Schedule(at, h, 0))
		}
		if l.dead > sweepMin || len(l.gens) > 3*sweepMin {
			t.Errorf("at %v: %d cancelled events and %d timer slots remain", at, l.dead, len(l.gens))
		}
		if err := l.check(); err != nil {
			t.Error(err)
		}
	}
}

func TestNeverStaysPending(t *testing.T) {
	l := New()
	ran := 0
	h := l.Handle("h", func(uint64) { ran++ })
	l.At(10, h, 0)
	l.At(Never, h, 0)
	l.At(Never-1, h, 0)
	timer := l.Schedule(Never, h, 0)
	l.RunUntil(100)
	if l.Now() != 100 || ran != 1 || l.NextAt() != Never-1 {
		t.Errorf("now %v, ran %d, next %v; want 100ns, 1 and one before never", l.Now(), ran, l.NextAt())
	}
	l.After(math.MaxInt64, h, 0)
	l.RunUntil(Never)
	if l.Now() != Never-1 || ran != 2 {
		t.Errorf("now %v, ran %d; want one before never and 2", l.Now(), ran)
	}
	if l.Step() || l.NextAt() != Never {
		t.Error("an event at Never ran or was next")
	}
	if l.Len() != 3 || !l.Cancel(timer) || l.Len() != 2 {
		t.Errorf("Len %d, want 2 after cancelling one of the three at Never", l.Len())
	}
}

func TestRunUntilAndStop(t *testing.T) {
	l := New()
	var got []Time
	h := l.Handle("h", func(arg uint64) {
		got = append(got, l.Now())
		if arg == 1 {
			l.Stop()
		}
	})
	for _, at := range []Time{10, 20, 21, 30} {
		l.At(at, h, 0)
	}
	l.RunUntil(20)
	if want := []Time{10, 20}; !slices.Equal(got, want) || l.Now() != 20 {
		t.Errorf("ran %v, now %v; want %v and 20ns", got, l.Now(), want)
	}
	l.At(20, h, 1)
	l.RunUntil(25)
	if len(got) != 3 || l.Now() != 20 {
		t.Errorf("ran %v, now %v; want to have stopped at 20ns", got, l.Now())
	}
	l.RunUntil(25)
	if l.Now() != 25 || len(got) != 4 {
		t.Errorf("ran %v, now %v; want 25ns", got, l.Now())
	}
	l.Run()
	if l.Now() != 30 || l.Len() != 0 {
		t.Errorf("now %v with %d pending, want 30ns and none", l.Now(), l.Len())
	}
}

func TestPanics(t *testing.T) {
	l := New()
	cause := errors.New("broken")
	h := l.Handle("node.arrive", func(uint64) { panic(cause) })
	l.At(1500, h, 17)
	func() {
		defer func() {
			p, ok := recover().(*HandlerPanic)
			if !ok {
				t.Fatal("want a *HandlerPanic")
			}
			if want := "event: at 1.5µs handler node.arrive(17): broken"; p.Error() != want {
				t.Errorf("got %q, want %q", p.Error(), want)
			}
			if !errors.Is(p, cause) || !strings.Contains(string(p.Stack), "TestPanics") {
				t.Errorf("cause or stack lost: %s", p.Stack)
			}
		}()
		l.Run()
	}()
	func() {
		defer func() {
			want := "event: node.arrive(3) scheduled in the past: 1ns is before now, 1.5µs"
			if got := recover(); got != want {
				t.Errorf("got %v, want %q", got, want)
			}
		}()
		l.At(1, h, 3)
	}()
}

func TestCall(t *testing.T) {
	l := New()
	var got []uint64
	inner := l.Handle("inner", func(arg uint64) {
		if got = append(got, arg); arg == 3 {
			panic("three")
		}
	})
	outer := l.Handle("outer", func(arg uint64) {
		l.Call(inner, arg)
		l.Call(inner, arg+1)
	})
	l.At(5, outer, 1)
	l.At(6, outer, 2)
	defer func() {
		want := "event: at 6ns handler inner(3): three"
		if p, _ := recover().(*HandlerPanic); p == nil || p.Error() != want {
			t.Errorf("got %v, want %s", p, want)
		}
		if want := []uint64{1, 2, 2, 3}; !slices.Equal(got, want) || l.Processed() != 2 {
			t.Errorf("ran %v in %d events, want %v in 2", got, l.Processed(), want)
		}
	}()
	l.Run()
}

func TestTransferTime(t *testing.T) {
	for _, c := range []struct {
		n, perSecond int64
		want         time.Duration
	}{
		{1000, 0, 0},
		{0, 1, 0},
		{125, 1_000_000, 125 * time.Microsecond},
		{1, 3_000_000_000, 0},
		{10_000_000_000, 1, math.MaxInt64}, // 10^19 ns
		{math.MaxInt64, 1, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, time.Second},
	} {
		if got := TransferTime(c.n, c.perSecond); got != c.want {
			t.Errorf("TransferTime(%d, %d) = %v, want %v", c.n, c.perSecond, got, c.want)
		}
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	l := New()
	timers := make([]Timer, 1000)
	x := uint64(1)
	idle := l.Handle("idle", func(uint64) {})
	var h HandlerID
	h = l.Handle("h", func(arg uint64) {
		x = x*6364136223846793005 + 1442695040888963407
		l.Cancel(timers[arg])
		timers[arg] = l.Schedule(l.Now().Add(time.Second), idle, 0)
		l.After(time.Duration(x>>44), h, arg)
	})
	for i := range timers {
		l.At(Time(i), h, uint64(i))
	}
	l.RunUntil(Time(time.Second))
	got := testing.AllocsPerRun(5, func() { l.RunUntil(l.Now().Add(100 * time.Millisecond)) })
	if got > 0 {
		t.Errorf("%v allocations in %d events, want none", got, l.Processed())
	}
}
