//go:build slow

package optimistic

import (
	"testing"

	"interleave/sim/rng"
)

// Many more random runs.
func TestRandomRunsSlow(t *testing.T) {
	for seed := range rng.Seed(6000) {
		runWorld(t, 1+int(seed%4), 1000+seed)
	}
}

func TestFamilySlow(t *testing.T) { runSerializable(t, 3000, 1000) }
