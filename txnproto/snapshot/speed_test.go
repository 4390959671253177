package snapshot

import (
	"testing"

	"interleave/txnproto/controltest"
)

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, name := range names {
		controltest.NoAllocations(t, protocol(t, name))
	}
}

func BenchmarkUncontended(b *testing.B) {
	for _, name := range names {
		b.Run(name, func(b *testing.B) { controltest.Benchmark(b, protocol(b, name)) })
	}
}
