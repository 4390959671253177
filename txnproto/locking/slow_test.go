//go:build slow

package locking

import (
	"testing"

	"interleave/sim/rng"
)

// Many more random runs of what TestRandomRunsAreSerializableAndEnd does.
func TestRandomRunsSlow(t *testing.T) {
	for seed := range rng.Seed(4000) {
		params := map[string]string{
			"victim":          victimNames[seed%5],
			"detect":          []string{"immediate", "interval", "wait"}[seed/5%3],
			"detect-interval": "3ms", "detect-after": "2ms",
			"update-lock": []string{"x", "u"}[seed/15%2],
		}
		runWorld(t, 1+int(seed/30%4), 1000+seed, params)
	}
}
