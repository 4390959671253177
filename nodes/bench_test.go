package nodes

import (
	"runtime"
	"testing"
	"time"

	"interleave/txnproto"
)

// benchRequests runs b.N requests of two Modify operations over the quorum
// model with three replicas and reports what one of them costs.
func benchRequests(b *testing.B, s setup) {
	b.Helper()
	s.clients.Clients = 32
	s.protocol = &txnproto.Protocol{Name: "grant-all", New: newGrantAll, DropReadOnly: true}
	w := newWorld(b, s)
	w.seen.light = true
	w.clients.Start()
	w.loop.RunUntil(w.loop.Now().Add(200 * time.Millisecond)) // warm the pools
	w.net.ResetStats()
	events, ended := w.loop.Processed(), w.seen.ended
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	for w.seen.ended-ended < b.N {
		w.loop.RunUntil(w.loop.Now().Add(time.Millisecond))
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	n := float64(w.seen.ended - ended)
	b.ReportMetric(float64(b.Elapsed())/n, "ns/request")
	b.ReportMetric(float64(w.loop.Processed()-events)/n, "events/request")
	b.ReportMetric(float64(w.net.Stats().Total().Messages)/n, "messages/request")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/request")
}

func BenchmarkRequestOneShard(b *testing.B) {
	benchRequests(b, setup{shards: 1, accounts: 10_000})
}

func BenchmarkRequestTwoShards(b *testing.B) {
	benchRequests(b, setup{shards: 3, accounts: 9999})
}

func BenchmarkRequestSingleCopy(b *testing.B) {
	benchRequests(b, setup{shards: 1, accounts: 10_000, replicas: 1, machines: 1})
}
