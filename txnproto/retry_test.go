package txnproto

import (
	"strings"
	"testing"
	"time"

	"interleave/sim/rng"
)

func TestRetryDelay(t *testing.T) {
	exp := Retry{Policy: RetryExponential, Base: 2 * ms, Max: 10 * ms}
	for _, c := range []struct {
		name string
		r    Retry
		next int
		want time.Duration
	}{
		{"immediate", Retry{Policy: RetryImmediate, Base: ms}, 2, 0},
		{"fixed", Retry{Policy: RetryFixed, Base: 3 * ms}, 9, 3 * ms},
		{"exponential 1", exp, 2, 2 * ms},
		{"exponential 2", exp, 3, 4 * ms},
		{"exponential 3", exp, 4, 8 * ms},
		{"exponential at its bound", exp, 5, 10 * ms},
		{"exponential far on", exp, 1_000_000, 10 * ms},
	} {
		for u := range uint64(50) {
			if got := c.r.Delay(c.next, time.Second, rng.Hash(1, u)); got != c.want {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		}
	}
}

// TestRetryJitter: the random share is taken off, evenly distributed.
func TestRetryJitter(t *testing.T) {
	r := Retry{Policy: RetryFixed, Base: 8 * ms, Jitter: 0.25}
	var sum, least, most time.Duration
	least = time.Hour
	const n = 20_000
	for u := range uint64(n) {
		d := r.Delay(2, 0, rng.Hash(7, u))
		sum, least, most = sum+d, min(least, d), max(most, d)
	}
	if least < 6*ms || least > 6010*time.Microsecond || most > 8*ms || most < 7990*time.Microsecond {
		t.Errorf("from %v to %v, want 6ms to 8ms", least, most)
	}
	if mean := sum / n; mean < 6980*time.Microsecond || mean > 7020*time.Microsecond {
		t.Errorf("mean %v, want 7ms", mean)
	}
}

// TestRetryAdaptive: the wait has the mean of the latency so far.
func TestRetryAdaptive(t *testing.T) {
	r := Retry{Policy: RetryAdaptive, Base: 5 * ms, Max: time.Minute}
	for u := range uint64(1000) {
		if d := (Retry{Policy: RetryAdaptive, Base: ms, Max: 7 * ms}).Delay(2, time.Hour, rng.Hash(4, u)); d > 7*ms {
			t.Fatalf("waits for %v, more than the longest wait", d)
		}
	}
	for _, mean := range []time.Duration{0, 20 * ms} {
		var sum time.Duration
		const n = 50_000
		for u := range uint64(n) {
			sum += r.Delay(2, mean, rng.Hash(3, u))
		}
		want := mean
		if want == 0 {
			want = r.Base
		}
		if got := sum / n; got < want*97/100 || got > want*103/100 {
			t.Errorf("mean latency %v: waits for %v on average", mean, got)
		}
	}
}

func TestParseRetryPolicy(t *testing.T) {
	for i, n := range RetryPolicyNames {
		if p, err := ParseRetryPolicy(n); err != nil || p != RetryPolicy(i) {
			t.Errorf("%s: %v %v", n, p, err)
		}
	}
	_, err := ParseRetryPolicy("often")
	if err == nil || !strings.Contains(err.Error(), "often") || !strings.Contains(err.Error(), "adaptive") {
		t.Errorf("error %v", err)
	}
}
