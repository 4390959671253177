package reports

import (
	"math"
	"time"

	"interleave/sim/event"
)

const (
	maxBatches   = 64
	minBatches   = 10               // fewer give no interval
	minPerBatch  = 10               // commits in a batch, on average, for an interval
	firstBatchNS = time.Microsecond // doubled as the window grows
)

// batches cuts the window into at most maxBatches parts of equal length for
// confidence intervals by batch means. Its length being unknown in advance, the
// parts start short, and when there are too many, neighbours are merged.
type batches struct {
	start  event.Time
	length time.Duration
	n      int // batches begun
	b      [maxBatches]batch
}

type batch struct {
	commits, finished, aborted uint64
	latency                    time.Duration
}

func (s *batches) init(start event.Time) { *s = batches{start: start, length: firstBatchNS} }

func (s *batches) at(t event.Time) *batch {
	i := int64(t.Sub(s.start)) / int64(s.length)
	for i >= maxBatches {
		s.merge()
		i = int64(t.Sub(s.start)) / int64(s.length)
	}
	s.n = max(s.n, int(i)+1)
	return &s.b[i]
}

func (s *batches) merge() {
	for i := range maxBatches / 2 {
		x, y := s.b[2*i], s.b[2*i+1]
		s.b[i] = batch{x.commits + y.commits, x.finished + y.finished, x.aborted + y.aborted, x.latency + y.latency}
	}
	clear(s.b[maxBatches/2:])
	s.length *= 2
	s.n = (s.n + 1) / 2
}

func (s *batches) attempt(t event.Time, aborted bool) {
	b := s.at(t)
	b.finished++
	if aborted {
		b.aborted++
	}
}

func (s *batches) commit(t event.Time, latency time.Duration) {
	b := s.at(t)
	b.commits++
	b.latency += latency
}

// confidence returns the intervals of the window that ends at now. Batches are
// merged while they hold too few commits; the last, partial one is left out. s is
// a copy.
func (s batches) confidence(now event.Time) Confidence {
	var full int
	var commits uint64
	for {
		full, commits = min(int(int64(now.Sub(s.start))/int64(s.length)), maxBatches), 0
		for _, b := range s.b[:full] {
			commits += b.commits
		}
		if commits >= uint64(full*minPerBatch) || full < 2*minBatches {
			break
		}
		s.merge()
	}
	if full < minBatches || commits < uint64(full*minPerBatch) {
		return Confidence{}
	}
	c := Confidence{Batches: full, BatchNS: int64(s.length)}
	var throughput, latency, aborts []float64
	for _, b := range s.b[:full] {
		throughput = append(throughput, float64(b.commits)/s.length.Seconds())
		if b.commits > 0 {
			latency = append(latency, float64(b.latency)/float64(b.commits))
		}
		if b.finished > 0 {
			aborts = append(aborts, float64(b.aborted)/float64(b.finished))
		}
	}
	c.Throughput, c.LatencyNS, c.AbortRatio = intervalOf(throughput), intervalOf(latency), intervalOf(aborts)
	return c
}

// intervalOf returns the mean of independent values with the half width of its
// 95 % interval, which takes two values or more and is 0 for fewer.
func intervalOf(values []float64) Interval {
	n := float64(len(values))
	switch len(values) {
	case 0:
		return Interval{}
	case 1:
		return Interval{Mean: values[0]}
	}
	var sum, squares float64
	for _, x := range values {
		sum += x
	}
	mean := sum / n
	for _, x := range values {
		d := x - mean
		squares += float64(d * d)
	}
	sd := math.Sqrt(squares / (n - 1))
	return Interval{Mean: mean, Half: float64(student95(len(values)-1)*sd) / math.Sqrt(n)}
}

// studentTable holds the 97.5 % quantiles of Student's t for 1 to 30 degrees of
// freedom. A table, because the functions that compute them differ in the last
// bit between processors.
var studentTable = [...]float64{
	12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
	2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
	2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
}

// student95 returns the factor of a two-sided 95 % interval. Above 30 degrees of
// freedom it uses the first terms of the quantile's expansion in 1/df.
func student95(df int) float64 {
	if df <= len(studentTable) {
		return studentTable[df-1]
	}
	return 1.95996 + 2.3722/float64(df) + 2.8225/float64(df*df)
}
