package units

import (
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "3m": 3 * time.Minute, "1000h": 1000 * time.Hour, "1h30m": 90 * time.Minute, "1h0m5s": time.Hour + 5*time.Second,
		"10s": 10 * time.Second, "20m": 20 * time.Minute, "10h": 10 * time.Hour, "1m10s": 70 * time.Second, "1.5s": 1500 * time.Millisecond,
		"-2m": -2 * time.Minute, "100ms": 100 * time.Millisecond, "10h10m": 610 * time.Minute,
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v is written %s, want %s", d, got, want)
		}
		if back, err := time.ParseDuration(Duration(d)); err != nil || back != d {
			t.Errorf("%v comes back as %v: %v", d, back, err)
		}
	}
}
