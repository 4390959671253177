package optimistic

import (
	"testing"

	"interleave/txnproto/controltest"
)

var all = []string{"occ", "occ-parallel", "occ-forward", "occ-version", "silo", "tictoc"}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, name := range all {
		controltest.NoAllocations(t, named(t, name))
	}
}

func BenchmarkUncontended(b *testing.B) {
	for _, name := range all {
		b.Run(name, func(b *testing.B) { controltest.Benchmark(b, named(b, name)) })
	}
}
