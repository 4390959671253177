package vtime

import (
	"math"
	"runtime"
	"runtime/metrics"
)

const (
	noMemoryLimit = math.MaxInt64

	// collectEvery is how many stimuli pass between two looks at the heap.
	collectEvery = 512
	// collectAfter is how much must have been allocated since the last collection
	// at the least; beyond it, as much as was live then.
	collectAfter = 64 << 20
)

// collector decides when garbage is collected. It does what a percentage of
// 100 does, but between stimuli.
type collector struct {
	sample [2]metrics.Sample
	base   uint64 // allocated in the process's life up to the last collection
	live   uint64 // live after it
}

func (c *collector) reset() {
	c.sample[0].Name = "/gc/heap/allocs:bytes"
	c.sample[1].Name = "/gc/heap/live:bytes"
	c.note()
}

// due reports whether enough was allocated since the last collection.
func (c *collector) due() bool {
	metrics.Read(c.sample[:1])
	return c.sample[0].Value.Uint64()-c.base >= max(collectAfter, c.live)
}

func (c *collector) collect() {
	runtime.GC()
	c.note()
}

func (c *collector) note() {
	metrics.Read(c.sample[:])
	c.base = c.sample[0].Value.Uint64()
	c.live = c.sample[1].Value.Uint64()
}
