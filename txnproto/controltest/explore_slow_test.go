//go:build slow

package controltest_test

import "testing"

// The same for the rest of the optimistic family.
func TestEveryInterleavingOfMoreIsSerializable(t *testing.T) {
	exploreAll(t, "occ-parallel", "occ-forward", "silo", "tictoc")
}
