//go:build slow

package history

import "testing"

func TestAgainstBruteForceLong(t *testing.T) {
	for seed := uint64(2); seed < 7; seed++ {
		compareWithBruteForce(t, seed, 100_000)
	}
}
