//go:build slow

package history

import "testing"

func TestAgainstPorcupineLong(t *testing.T) {
	for seed := uint64(2); seed < 6; seed++ {
		compareWithPorcupine(t, seed, 20_000)
	}
}
