package nodes

import (
	"fmt"
	"testing"
)

// BenchmarkRaft gives committed log entries per second of wall time, three
// shards of three replicas. With few clients a batch is one or two entries,
// with many some tens.
func BenchmarkRaft(b *testing.B) {
	for _, files := range []bool{false, true} {
		for _, clients := range []int{6, 24, 240} {
			name := fmt.Sprintf("memory/clients=%d", clients)
			if files {
				name = fmt.Sprintf("files/clients=%d", clients)
			}
			b.Run(name, func(b *testing.B) {
				sc := lan()
				sc.clients, sc.requests = clients, 20000
				var entries, batches uint64
				for b.Loop() {
					if files {
						sc.dir = b.TempDir()
					}
					res := sc.run(b, nil)
					entries += res.stats.Entries
					batches += res.stats.Batches
				}
				b.ReportMetric(float64(entries)/b.Elapsed().Seconds(), "entries/s")
				b.ReportMetric(float64(entries)/float64(batches), "entries/batch")
			})
		}
	}
}
