package clock

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"interleave/sim/event"
	"interleave/sim/rng"
)

// TestClocksKeepTheirBound looks at random clocks at random times, moved on now and
// then: none is further off than the bound, and none goes back.
func TestClocksKeepTheirBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Bound: time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "bound")),
			Drift: rapid.Float64Range(0, MaxDrift).Draw(t, "drift"),
		}
		c := New(rng.Seed(rapid.Uint64().Draw(t, "seed")), "clocks", 3, cfg)
		var at event.Time
		last := []event.Time{-event.Time(cfg.Bound), -event.Time(cfg.Bound), -event.Time(cfg.Bound)}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			at = at.Add(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "pause")))
			i := rapid.IntRange(0, 2).Draw(t, "clock")
			if rapid.Bool().Draw(t, "moves on") {
				to := at.Add(time.Duration(rapid.Int64Range(-int64(cfg.Bound), int64(cfg.Bound)).Draw(t, "to")))
				c.MoveOn(i, at, to)
				if now := c.Read(i, at); now < to {
					t.Fatalf("clock %d was moved on to %v and shows %v", i, to, now)
				}
			}
			now := c.Read(i, at)
			if off := now.Sub(at); off > cfg.Bound || off < -cfg.Bound {
				t.Fatalf("clock %d is off by %v, the bound is %v", i, off, cfg.Bound)
			}
			if now < last[i] {
				t.Fatalf("clock %d went back from %v to %v", i, last[i], now)
			}
			last[i] = now
		}
	})
}

// TestOffsetsAreUniform counts the offsets of many clocks in ten classes, at the start
// and after a long drift: a chi-square of 9 degrees of freedom exceeds 33.7 once in
// ten thousand.
func TestOffsetsAreUniform(t *testing.T) {
	const n, classes = 20_000, 10
	c := New(7, "clocks", n, Config{Bound: time.Millisecond, Drift: 100})
	for _, at := range []event.Time{0, event.Time(time.Hour)} {
		var count [classes]int
		for i := range n {
			count[int(c.Offset(i, at)+time.Millisecond)*classes/(2*int(time.Millisecond)+1)]++
		}
		chi := 0.0
		for _, k := range count {
			d := float64(k - n/classes)
			chi += d * d / (n / classes)
		}
		if chi > 33.7 {
			t.Errorf("at %v: chi-square %.1f: %v", at, chi, count)
		}
	}
}

// TestDriftTurnsAtTheBound follows one clock by hand.
func TestDriftTurnsAtTheBound(t *testing.T) {
	c := &Clocks{bound: 10, clocks: []clock{{phase: 15, rate: 0.001}}}
	for _, w := range []struct {
		at   event.Time
		want time.Duration
	}{{0, 5}, {5000, 10}, {8000, 7}, {25000, -10}, {26000, -9}, {35000, 0}, {45000, 10}, {46000, 9}} {
		if got := c.Offset(0, w.at); got != w.want {
			t.Errorf("at %d it is off by %d, want %d", w.at, got, w.want)
		}
	}
}

// TestSkewGrowsInProportion has the same clocks slow under every bound.
func TestSkewGrowsInProportion(t *testing.T) {
	one := New(3, "clocks", 50, Config{Bound: time.Millisecond})
	ten := New(3, "clocks", 50, Config{Bound: 10 * time.Millisecond})
	none := New(3, "clocks", 50, Config{Drift: 50})
	for i := range 50 {
		a, b := one.Offset(i, 0), ten.Offset(i, 0)
		if d := b - 10*a; d < -10 || d > 10 {
			t.Errorf("clock %d is off by %v within 1 ms, by %v within 10 ms", i, a, b)
		}
		if off := none.Offset(i, event.Time(time.Hour)); off != 0 {
			t.Errorf("clock %d is off by %v within 0", i, off)
		}
	}
}
