package sim_test

import (
	"context"
	"strconv"
	"testing"

	"interleave/reports"
	"interleave/sim"
)

// benchRun runs b.N requests (at least a few thousand) and reports how many a
// wall second, assembly and checker included.
func benchRun(b *testing.B, requests int, settings ...string) *reports.Result {
	b.Helper()
	s := sim.NewSpec()
	settings = append(settings, "requests", strconv.Itoa(requests))
	for i := 0; i < len(settings); i += 2 {
		if err := s.Set(settings[i], settings[i+1]); err != nil {
			b.Fatal(err)
		}
	}
	runs, err := s.Expand()
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	res, err := sim.Run(context.Background(), runs[0], sim.Options{Wall: true})
	if err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if res.Verdict != reports.VerdictOK {
		b.Fatalf("verdict %s: %s", res.Verdict, res.Why)
	}
	b.ReportMetric(res.Wall.RequestsPS, "requests/s")
	b.ReportMetric(float64(res.Wall.Events)/float64(requests), "events/request")
	return res
}

const leastRequests = 20_000

// BenchmarkQuorum is the throughput of the simulator itself on the fast model:
// YCSB of ten operations, half updates, uniform over a million keys.
//
//	go test ./sim -run '^$' -bench Quorum -benchtime 300000x
func BenchmarkQuorum(b *testing.B) {
	for _, protocol := range []string{"2pl", "to", "occ"} {
		for _, clients := range []string{"24", "100"} {
			for _, check := range []string{"true", "false"} {
				b.Run(protocol+"/clients="+clients+"/check="+check, func(b *testing.B) {
					benchRun(b, max(b.N, leastRequests), "protocol", protocol, "replication", "quorum", "distribution", "uniform",
						"keys", "1000000", "ops", "10", "update", "0.5", "clients", clients, "check", check)
				})
			}
		}
	}
}

// BenchmarkRaft is what hashicorp/raft in virtual time takes a log entry.
//
//	go test ./sim -run '^$' -bench Raft -benchtime 10000x
func BenchmarkRaft(b *testing.B) {
	for _, clients := range []string{"24", "100"} {
		b.Run("clients="+clients, func(b *testing.B) {
			requests := max(b.N, 2000)
			res := benchRun(b, requests, "protocol", "2pl", "replication", "raft", "distribution", "uniform",
				"keys", "1000000", "ops", "10", "update", "0.5", "clients", clients)
			b.ReportMetric(res.Wall.EntriesPS, "entries/s")
			b.ReportMetric(float64(res.Resources.LogEntries)/float64(requests), "entries/request")
		})
	}
}

// BenchmarkManyClients is the memory and time of a hundred thousand clients.
//
//	go test ./sim -run '^$' -bench ManyClients -benchtime 1x
func BenchmarkManyClients(b *testing.B) {
	res := benchRun(b, max(b.N, 200_000), "protocol", "2pl", "replication", "quorum", "distribution", "uniform",
		"keys", "10000000", "ops", "10", "update", "0.5", "clients", "100000", "think", "exp:10s")
	b.ReportMetric(float64(res.Wall.HeapBytes)/(1<<20), "heap-MB")
}
