package locking

import (
	"testing"

	"interleave/txnproto/controltest"
)

func TestSteadyStateAllocatesNothing(t *testing.T) { controltest.NoAllocations(t, protocol(t)) }

func BenchmarkUncontended(b *testing.B) { controltest.Benchmark(b, protocol(b)) }
