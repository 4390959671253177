package reports

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"

	"interleave/txnproto"
)

// WriteJSON writes {"runs": [...]}, indented. Equal runs give equal bytes.
func WriteJSON(w io.Writer, results []*Result) error {
	if results == nil {
		results = []*Result{}
	}
	b, err := json.MarshalIndent(map[string]any{"runs": results}, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// csvSettings are the settings that a CSV row begins with.
var csvSettings = []string{
	"protocol", "workload", "distribution", "theta", "keys", "ops", "clients", "rate", "mpl",
	"shards", "replicas", "machines", "replication", "network", "retry", "seed",
	"timestamps", "clock-skew", "clock-drift", "clock-catch-up", "oracle-service",
}

// csvColumns are the figures of a CSV row, under their names in JSON.
var csvColumns = []struct {
	name string
	of   func(r *Result) string
}{
	{"verdict", func(r *Result) string { return string(r.Verdict) }},
	{"isolation_promised", func(r *Result) string { return r.Isolation.Promised }},
	{"isolation_found", func(r *Result) string { return r.Isolation.Found }},
	{"digest", func(r *Result) string { return r.Digest }},
	{"window_ns", func(r *Result) string { return itoa(r.WindowNS) }},
	{"committed", func(r *Result) string { return utoa(r.Committed) }},
	{"rolled_back", func(r *Result) string { return utoa(r.RolledBack) }},
	{"given_up", func(r *Result) string { return utoa(r.GivenUp) }},
	{"turned_away", func(r *Result) string { return utoa(r.TurnedAway) }},
	{"unfinished", func(r *Result) string { return utoa(r.Unfinished) }},
	{"throughput", func(r *Result) string { return ftoa(r.Throughput) }},
	{"throughput_half_width", func(r *Result) string { return ftoa(r.Confidence.Throughput.Half) }},
	{"attempts_per_s", func(r *Result) string { return ftoa(r.AttemptsPerS) }},
	{"abort_ratio", func(r *Result) string { return ftoa(r.AbortRatio) }},
	{"aborts_per_commit", func(r *Result) string { return ftoa(r.AbortsPerCommit) }},
	{"wasted_work", func(r *Result) string { return ftoa(r.WastedWork) }},
	{"latency_mean_ns", func(r *Result) string { return itoa(r.Latency.MeanNS) }},
	{"latency_p50_ns", func(r *Result) string { return itoa(r.Latency.P50NS) }},
	{"latency_p90_ns", func(r *Result) string { return itoa(r.Latency.P90NS) }},
	{"latency_p99_ns", func(r *Result) string { return itoa(r.Latency.P99NS) }},
	{"latency_p99.9_ns", func(r *Result) string { return itoa(r.Latency.P999NS) }},
	{"latency_max_ns", func(r *Result) string { return itoa(r.Latency.MaxNS) }},
	{"attempt_latency_p50_ns", func(r *Result) string { return itoa(r.AttemptLatency.P50NS) }},
	{"attempt_latency_p99_ns", func(r *Result) string { return itoa(r.AttemptLatency.P99NS) }},
	{"attempts_p50", func(r *Result) string { return itoa(r.Attempts.P50) }},
	{"attempts_p99", func(r *Result) string { return itoa(r.Attempts.P99) }},
	{"attempts_max", func(r *Result) string { return itoa(r.Attempts.Max) }},
	{"starved", func(r *Result) string { return ftoa(r.Starved) }},
	{"longest_wait_ns", func(r *Result) string { return itoa(r.LongestWaitNS) }},
	{"fairness_clients", func(r *Result) string { return optional(r.Fairness.Clients) }},
	{"fairness_classes", func(r *Result) string { return optional(r.Fairness.Classes) }},
	{"age_ratio", func(r *Result) string { return ftoa(r.AgeRatio) }},
	{"lock_waits", func(r *Result) string { return utoa(r.LockWaits) }},
	{"lock_wait_time_ns", func(r *Result) string { return itoa(r.LockWaitNS) }},
	{"blocking_ratio", func(r *Result) string { return ftoa(r.BlockingRatio) }},
	{"deadlocks", func(r *Result) string { return utoa(r.Deadlocks) }},
	{"false_deadlocks", func(r *Result) string { return utoa(r.FalseDeadlocks) }},
	{"messages", func(r *Result) string { return utoa(r.Resources.MessageCount) }},
	{"message_bytes", func(r *Result) string { return utoa(r.Resources.MessageBytes) }},
	{"log_entries", func(r *Result) string { return utoa(r.Resources.LogEntries) }},
	{"log_batches", func(r *Result) string { return utoa(r.Resources.LogBatches) }},
	{"fsyncs", func(r *Result) string { return utoa(r.Resources.Fsyncs) }},
	{"elections", func(r *Result) string { return utoa(r.Resources.Elections) }},
}

func utoa(n uint64) string  { return strconv.FormatUint(n, 10) }
func ftoa(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func optional(x *float64) string {
	if x == nil {
		return ""
	}
	return ftoa(*x)
}

// CSVHeader returns the column names of WriteCSV: settings, figures, aborts by
// reason, and the parts of latency. It is the same for all results.
func CSVHeader() []string {
	head := append([]string{}, csvSettings...)
	for _, c := range csvColumns {
		head = append(head, c.name)
	}
	for i := txnproto.AbortReason(1); i < txnproto.NumReasons; i++ {
		head = append(head, "aborts_"+i.String())
	}
	for p := range txnproto.NumParts {
		head = append(head, "breakdown_"+p.String()+"_ns")
	}
	return head
}

// WriteCSV writes CSVHeader and one row a result.
func WriteCSV(w io.Writer, results []*Result) error {
	out := csv.NewWriter(w)
	if err := out.Write(CSVHeader()); err != nil {
		return err
	}
	for _, r := range results {
		var row []string
		for _, n := range csvSettings {
			row = append(row, r.Setting(n))
		}
		for _, c := range csvColumns {
			row = append(row, c.of(r))
		}
		for i := txnproto.AbortReason(1); i < txnproto.NumReasons; i++ {
			row = append(row, utoa(r.Aborts[i.String()]))
		}
		for p := range txnproto.NumParts {
			row = append(row, itoa(int64(r.Breakdown[p])))
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
