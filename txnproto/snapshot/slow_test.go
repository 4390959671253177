//go:build slow

package snapshot

import (
	"testing"

	"interleave/sim/rng"
)

// Many more random runs.
func TestRandomRunsSlow(t *testing.T) {
	for seed := range rng.Seed(6000) {
		runWorld(t, names[seed/4%4], 1+int(seed%4), 1000+seed)
	}
	for seed := range rng.Seed(1600) {
		runManyLeaders(t, names[seed%4], 1000+seed)
	}
}
