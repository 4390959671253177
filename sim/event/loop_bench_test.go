package event_test

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"interleave/sim/event"
)

// The hold model (Vaucher and Duval, "A comparison of simulation event list
// algorithms", CACM 18(4), 1975): with n events pending, each event that runs
// schedules one more, an increment from now. Its distribution is what tells
// queues apart.
var holdIncrements = []struct {
	name string
	draw func(r *rand.Rand) float64 // ns
}{
	{"exponential", func(r *rand.Rand) float64 { return r.ExpFloat64() * 1e6 }},
	{"constant", func(*rand.Rand) float64 { return 1e6 }},
	{"bimodal", func(r *rand.Rand) float64 {
		if r.IntN(10) == 0 {
			return r.Float64() * 1e8
		}
		return r.Float64() * 1e5
	}},
	{"pareto", func(r *rand.Rand) float64 { return 1e4 * math.Pow(1-r.Float64(), -1/1.1) }},
}

var holdSizes = []int{10, 50, 1_000, 100_000, 1_000_000}

// increments is a table drawn beforehand, so that the queue is measured and
// not the generator; its length is a power of two.
func increments(draw func(r *rand.Rand) float64) []time.Duration {
	r := rand.New(rand.NewPCG(1, 2))
	t := make([]time.Duration, 1<<13)
	for i := range t {
		t[i] = time.Duration(draw(r))
	}
	return t
}

func BenchmarkHold(b *testing.B) {
	for _, inc := range holdIncrements {
		table := increments(inc.draw)
		for _, n := range holdSizes {
			b.Run(fmt.Sprintf("queue=loop/increments=%s/pending=%d", inc.name, n), func(b *testing.B) {
				holdLoop(b, table, n)
			})
			b.Run(fmt.Sprintf("queue=container-heap/increments=%s/pending=%d", inc.name, n), func(b *testing.B) {
				holdHeap(b, table, n)
			})
		}
	}
}

func holdLoop(b *testing.B, table []time.Duration, n int) {
	l := event.New()
	k := 0
	left := 0
	var h event.HandlerID
	h = l.Handle("hold", func(arg uint64) {
		k++
		l.After(table[k&(len(table)-1)], h, arg)
		if left--; left == 0 {
			l.Stop()
		}
	})
	for i := range n {
		l.After(table[i&(len(table)-1)], h, uint64(i))
	}
	// Reach the steady state: every initial event has run, and chunks and
	// buckets have been allocated.
	left = 3 * n
	l.Run()
	b.ReportAllocs()
	b.ResetTimer()
	left = b.N
	l.Run()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// The ordinary way to write it in Go: container/heap over pointers to events
// that hold a closure.
type closureEvent struct {
	at  event.Time
	seq uint64
	fn  func()
}

type closureHeap []*closureEvent

func (h closureHeap) Len() int { return len(h) }
func (h closureHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h closureHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *closureHeap) Push(x any)   { *h = append(*h, x.(*closureEvent)) }
func (h *closureHeap) Pop() any {
	old := *h
	n := len(old)
	e := old[n-1]
	old[n-1] = nil
	*h = old[:n-1]
	return e
}

func holdHeap(b *testing.B, table []time.Duration, n int) {
	var q closureHeap
	var now event.Time
	var seq uint64
	k := 0
	var schedule func(arg uint64)
	schedule = func(arg uint64) {
		k++
		seq++
		at := now.Add(table[k&(len(table)-1)])
		heap.Push(&q, &closureEvent{at, seq, func() { schedule(arg) }})
	}
	run := func(events int) {
		for range events {
			e := heap.Pop(&q).(*closureEvent)
			now = e.at
			e.fn()
		}
	}
	for i := range n {
		schedule(uint64(i))
	}
	run(n)
	b.ReportAllocs()
	b.ResetTimer()
	run(b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkTimeouts schedules a far timer beside each event and cancels it when
// the event runs: what a request with a timeout does.
func BenchmarkTimeouts(b *testing.B) {
	table := increments(holdIncrements[0].draw)
	l := event.New()
	const n = 1_000
	timers := make([]event.Timer, n)
	timeout := l.Handle("timeout", func(arg uint64) { b.Errorf("timer %d was not cancelled", arg) })
	k, left := 0, 0
	var h event.HandlerID
	h = l.Handle("hold", func(arg uint64) {
		l.Cancel(timers[arg])
		timers[arg] = l.Schedule(l.Now().Add(time.Minute), timeout, arg)
		k++
		l.After(table[k&(len(table)-1)], h, arg)
		if left--; left == 0 {
			l.Stop()
		}
	})
	for i := range uint64(n) {
		l.After(table[i], h, i)
	}
	left = 100 * n
	l.Run()
	b.ReportAllocs()
	b.ResetTimer()
	left = b.N
	l.Run()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
