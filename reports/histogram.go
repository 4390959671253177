package reports

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	longestLatency = int64(1000 * time.Hour)
	mostAttempts   = int64(1) << 31
)

// histogram counts values with three significant digits, from 1 to a bound;
// values beyond count as the bound, but sum and max stay exact.
type histogram struct {
	h        *hdrhistogram.Histogram
	bound    int64
	sum, max int64
}

func newHistogram(bound int64) histogram {
	return histogram{h: hdrhistogram.New(1, bound, 3), bound: bound}
}

// record adds v. REQUIRES: v >= 0.
func (h *histogram) record(v int64) {
	if err := h.h.RecordValue(min(v, h.bound)); err != nil {
		panic("reports: " + err.Error())
	}
	h.sum += v
	h.max = max(h.max, v)
}

func (h *histogram) reset() {
	h.h.Reset()
	h.sum, h.max = 0, 0
}

func (h *histogram) add(o *histogram) {
	h.h.Merge(o.h)
	h.sum += o.sum
	h.max = max(h.max, o.max)
}

// at returns the value of a percentile, never above the exact maximum: the
// histogram answers with the upper end of a bucket.
func (h *histogram) at(percentile float64) int64 {
	return min(h.h.ValueAtPercentile(percentile), h.max)
}

func (h *histogram) count() int64 { return h.h.TotalCount() }

func (h *histogram) latencySummary() Latency {
	n := h.count()
	if n == 0 {
		return Latency{}
	}
	return Latency{
		Count: uint64(n), MeanNS: h.sum / n, SumNS: h.sum, MaxNS: h.max,
		P50NS: h.at(50), P90NS: h.at(90), P99NS: h.at(99), P999NS: h.at(99.9),
	}
}

func (h *histogram) attemptsSummary() Attempts {
	return Attempts{P50: h.at(50), P99: h.at(99), Max: h.max, Mean: ratio(h.sum, h.count())}
}

// ratio returns a/b, 0 when b is 0.
func ratio[A, B ~int | ~int64 | ~uint64](a A, b B) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
