package vtime

import (
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"interleave/sim/event"
)

// echo starts a goroutine that answers n+1 to n, and returns how to stop it.
func echo() (in chan int, out chan int, stop func()) {
	in, out = make(chan int, 1), make(chan int, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range in {
			out <- n + 1
		}
	}()
	return in, out, func() { close(in); <-done }
}

func TestSettleWaitsForTheAnswer(t *testing.T) {
	report, err := Run(func(b *Bubble) error {
		in, out, stop := echo()
		defer stop()
		for n := range 1000 {
			b.Begin(OrderMatters)
			in <- n
			b.Settle()
			select {
			case got := <-out:
				if got != n+1 {
					t.Errorf("echo of %d is %d", n, got)
				}
			default:
				t.Fatalf("no answer to %d after Settle", n)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.Stimuli != 1000 || report.Watched != 1000 || report.Longest <= 0 != report.Blind {
		t.Errorf("report %+v", report)
	}
}

func TestAdvanceToRunsTimers(t *testing.T) {
	_, err := Run(func(b *Bubble) error {
		var fired []event.Time
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 3 {
				time.Sleep(10 * time.Millisecond)
				fired = append(fired, b.Now())
			}
		}()
		b.AdvanceTo(event.Time(9_999_999), OrderMatters)
		if len(fired) != 0 {
			t.Errorf("fired %v before its time", fired)
		}
		b.AdvanceTo(event.Time(20_000_000), OrderMatters)
		if len(fired) != 2 || fired[0] != 10_000_000 || fired[1] != 20_000_000 {
			t.Errorf("fired at %v, want 10ms and 20ms", fired)
		}
		b.AdvanceTo(event.Time(5_000_000), OrderMatters) // back: nothing
		if b.Now() != 20_000_000 {
			t.Errorf("the clock went to %v", b.Now())
		}
		b.AdvanceTo(event.Time(time.Second), OrderMatters)
		<-done
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOneRunAtATime(t *testing.T) {
	_, err := Run(func(*Bubble) error {
		_, err := Run(func(*Bubble) error { return nil })
		return err
	})
	if !errors.Is(err, ErrBusy) {
		t.Errorf("a run within a run gave %v, want ErrBusy", err)
	}
	if _, err := Run(func(*Bubble) error { return nil }); err != nil {
		t.Errorf("a run after a run gave %v", err)
	}
}

func TestRunRestoresTheProcess(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	defer debug.SetGCPercent(debug.SetGCPercent(123))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 40))
	_, err := Run(func(*Bubble) error {
		if n := runtime.GOMAXPROCS(0); n != 1 {
			t.Errorf("GOMAXPROCS is %d in the run", n)
		}
		return errors.New("as it is")
	})
	if err == nil || err.Error() != "as it is" {
		t.Errorf("error %v", err)
	}
	if n := runtime.GOMAXPROCS(0); n != 2 {
		t.Errorf("GOMAXPROCS is %d after the run, want 2", n)
	}
	if p := debug.SetGCPercent(123); p != 123 {
		t.Errorf("GC percentage is %d after the run, want 123", p)
	}
	if l := debug.SetMemoryLimit(-1); l != 1<<40 {
		t.Errorf("memory limit is %d after the run", l)
	}
}

// recovered runs f and returns what it panicked with.
func recovered(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

func TestPanicKeepsItsStack(t *testing.T) {
	cause := errors.New("broken invariant")
	v := recovered(func() {
		_, _ = Run(func(*Bubble) error {
			echo() // left behind: must not hide the panic
			deepPanic(cause)
			return nil
		})
	})
	p, ok := v.(*Panic)
	if !ok {
		t.Fatalf("panicked with %v, want a *Panic", v)
	}
	if !errors.Is(p, cause) || !strings.Contains(p.Error(), "deepPanic") {
		t.Errorf("panic lost its cause or its stack: %v", p)
	}
	if _, err := Run(func(*Bubble) error { return nil }); err != nil {
		t.Errorf("a run after a panic gave %v", err)
	}
}

func deepPanic(err error) { panic(err) }

func TestGoexitEndsTheCaller(t *testing.T) {
	returned := true
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = Run(func(*Bubble) error {
			echo()
			runtime.Goexit()
			return nil
		})
		returned = false
	}()
	<-done
	if !returned {
		t.Error("Run returned after its function's Goexit")
	}
}

func TestGoroutineLeftBehind(t *testing.T) {
	v := recovered(func() {
		_, _ = Run(func(*Bubble) error {
			echo()
			return nil
		})
	})
	if v == nil {
		t.Error("a goroutine left behind went unnoticed")
	}
	cause := errors.New("failed half-way")
	if _, err := Run(func(*Bubble) error { echo(); return cause }); !errors.Is(err, cause) {
		t.Errorf("a goroutine left behind hid the error: %v", err)
	}
}

func TestSlowStimulusIsSuspect(t *testing.T) {
	report, err := Run(func(b *Bubble) error {
		in, out, stop := echo()
		defer stop()
		b.Begin(OrderMatters)
		begin, _ := realClock()
		for now := begin; now-begin < SuspectAfter; now, _ = realClock() {
		}
		in <- 1
		b.Settle()
		<-out
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !report.Blind && report.Suspect != 1 {
		t.Errorf("report %+v, want one suspect stimulus", report)
	}
}

var sink []byte

func TestGarbageIsCollected(t *testing.T) {
	report, err := Run(func(b *Bubble) error {
		in, out, stop := echo()
		defer stop()
		for n := range 4 * collectEvery {
			sink = make([]byte, 256<<10)
			b.Begin(OrderMatters)
			in <- n
			b.Settle()
			<-out
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.Collections == 0 {
		t.Errorf("no collection in %d MB of garbage", 4*collectEvery/4)
	}
}

func TestAnyOrderIsNotWatched(t *testing.T) {
	for _, shuffled := range []bool{false, true} {
		report, err := Run(func(b *Bubble) error {
			if shuffled {
				b.Shuffle()
			}
			in, out, stop := echo()
			defer stop()
			for n := range 100 {
				b.Begin(AnyOrder)
				in <- n
				b.Settle()
				if got := <-out; got != n+1 {
					t.Errorf("echo of %d is %d", n, got)
				}
			}
			b.Begin(OrderMatters)
			in <- 1
			b.Settle()
			<-out
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if report.Stimuli != 101 || report.Watched != 1 {
			t.Errorf("shuffled %v: report %+v, want 101 stimuli, 1 watched", shuffled, report)
		}
		if n := runtime.GOMAXPROCS(0); n != runtime.NumCPU() {
			t.Errorf("shuffled %v: GOMAXPROCS is %d after the run", shuffled, n)
		}
	}
}

func BenchmarkStimulus(bm *testing.B) {
	for name, o := range map[string]Order{"watched": OrderMatters, "any-order": AnyOrder} {
		bm.Run(name, func(bm *testing.B) {
			var took time.Duration
			_, err := Run(func(b *Bubble) error {
				in, out, stop := echo()
				defer stop()
				begin, _ := realClock() // the bubble's time stands still
				for range bm.N {
					b.Begin(o)
					in <- 1
					b.Settle()
					<-out
				}
				end, _ := realClock()
				took = end - begin
				return nil
			})
			if err != nil {
				bm.Fatal(err)
			}
			bm.ReportMetric(float64(took)/float64(bm.N), "ns/stimulus")
		})
	}
}
