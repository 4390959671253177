package station_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"interleave/sim/event"
	"interleave/sim/station"
)

const meanService = 100 * time.Microsecond

// markov runs jobs through M/M/c at the given load, after a warm-up of a tenth,
// and returns the window's statistics. The sequence of draws is the seed's.
func markov(seed uint64, servers int, load float64, jobs int) station.CPUStats {
	l := event.New()
	c := station.NewCPU(l, servers)
	r := rand.New(rand.NewPCG(seed, 11))
	between := float64(meanService) / (load * float64(servers))
	n := 0
	var arrive event.HandlerID
	arrive = l.Handle("arrive", func(uint64) {
		c.Submit(time.Duration(math.Round(r.ExpFloat64() * float64(meanService))))
		switch n++; n {
		case jobs / 10:
			c.ResetStats()
		case jobs/10 + jobs:
			return
		}
		l.After(time.Duration(math.Round(r.ExpFloat64()*between)), arrive, 0)
	})
	l.At(0, arrive, 0)
	l.Run()
	return c.Stats()
}

// erlangC returns the probability that a job of M/M/c waits.
func erlangC(servers int, load float64) float64 {
	// By the recursion of Erlang's B formula.
	a := load * float64(servers)
	b := 1.0
	for k := 1; k <= servers; k++ {
		b = a * b / (float64(k) + a*b)
	}
	return b / (1 - load*(1-b))
}

// The wait in M/M/1 has mean rho/(1-rho) in units of the service time, and the
// mean of n successive ones a variance of about
// rho (2 + 5 rho - 4 rho^2 + rho^3) / (1-rho)^4 / n
// (Daley, "The serial correlation coefficients of waiting times in a stationary
// single server queue", 1968). The tolerance is four such standard deviations.
func TestCPUAgreesWithMM1(t *testing.T) {
	const jobs = 400_000
	for _, rho := range []float64{0.2, 0.5, 0.8, 0.9} {
		t.Run(fmt.Sprint("load=", rho), func(t *testing.T) {
			s := markov(1, 1, rho, jobs)
			variance := rho * (2 + 5*rho - 4*rho*rho + rho*rho*rho) / math.Pow(1-rho, 4)
			tolerance := 4 * math.Sqrt(variance/jobs)
			wait := float64(s.MeanWait()) / float64(meanService)
			if want := rho / (1 - rho); math.Abs(wait-want) > tolerance {
				t.Errorf("mean wait %.4f services, want %.4f +- %.4f", wait, want, tolerance)
			}
			// Busy time is a sum of jobs services over a sum of as many
			// arrival gaps: relative variances 1/n each.
			tolerance = 4 * rho * math.Sqrt(2.0/jobs)
			if got := s.Utilization(); math.Abs(got-rho) > tolerance {
				t.Errorf("utilisation %.4f, want %.4f +- %.4f", got, rho, tolerance)
			}
		})
	}
}

// Mean wait, mean number waiting and utilisation of M/M/c, each from 20
// independent runs. The tolerance is the half width of a 99.9 % Student-t
// interval over the runs, which must not itself be so wide that it shows nothing.
func TestCPUAgreesWithErlangC(t *testing.T) {
	const (
		runs = 20
		jobs = 40_000
		t999 = 3.883 // two-sided, 19 degrees of freedom
	)
	for _, servers := range []int{1, 2, 4, 8} {
		for _, rho := range []float64{0.5, 0.7, 0.85} {
			t.Run(fmt.Sprintf("servers=%d/load=%v", servers, rho), func(t *testing.T) {
				pw := erlangC(servers, rho)
				wait := pw / (float64(servers) * (1 - rho))
				var waits, queues, uses sample
				for seed := range uint64(runs) {
					s := markov(100+seed, servers, rho, jobs)
					waits.add(float64(s.MeanWait()) / float64(meanService))
					queues.add(s.MeanQueue())
					uses.add(s.Utilization())
				}
				waits.check(t, "mean wait in services", wait, t999, 0.2)
				queues.check(t, "mean number waiting", pw*rho/(1-rho), t999, 0.2)
				uses.check(t, "utilisation", rho, t999, 0.02)
			})
		}
	}
}

// sample is the values of independent runs.
type sample []float64

func (s *sample) add(x float64) { *s = append(*s, x) }

func (s sample) check(t *testing.T, what string, want, quantile, widest float64) {
	t.Helper()
	var mean, squares float64
	for _, x := range s {
		mean += x / float64(len(s))
	}
	for _, x := range s {
		squares += (x - mean) * (x - mean)
	}
	half := quantile * math.Sqrt(squares/float64(len(s)-1)/float64(len(s)))
	if math.Abs(mean-want) > half {
		t.Errorf("%s %.5f, want %.5f +- %.5f", what, mean, want, half)
	}
	if half > widest*want {
		t.Errorf("%s is known to +- %.5f only, more than %v of %.5f", what, half, widest, want)
	}
}

// Little's law holds exactly over a span that begins and ends empty: the
// integral of the number waiting is the sum of the waits.
func TestCPULittle(t *testing.T) {
	l := event.New()
	c := station.NewCPU(l, 3)
	r := rand.New(rand.NewPCG(5, 5))
	var total, waits time.Duration
	last := event.Time(0)
	h := l.Handle("arrive", func(uint64) {
		service := time.Duration(r.IntN(1000))
		start, done := c.Submit(service)
		total += service
		waits += start.Sub(l.Now())
		last = max(last, done)
	})
	for range 5_000 {
		l.At(event.Time(r.IntN(1_200_000)), h, 0)
	}
	l.Run()
	l.RunUntil(last)
	s := c.Stats()
	if s.Queued != waits || s.Wait != waits || s.Busy != total || s.Jobs != 5_000 {
		t.Errorf("queued %v, wait %v, busy %v, %d jobs; want %v, the same, %v and 5000", s.Queued, s.Wait, s.Busy, s.Jobs, waits, total)
	}
	if s.Busy > s.Window*3 || s.MaxQueue == 0 {
		t.Errorf("busy %v in %v, longest queue %d", s.Busy, s.Window, s.MaxQueue)
	}
}

// The statistics agree at every instant with a count made by stepping through
// time, whatever the window.
func TestCPUStatsAgreeWithStepping(t *testing.T) {
	type job struct{ at, start, done event.Time }
	for seed := range uint64(20) {
		l := event.New()
		r := rand.New(rand.NewPCG(seed, 6))
		servers := 1 + r.IntN(4)
		c := station.NewCPU(l, servers)
		var jobs []job
		from := event.Time(0)
		for range 300 {
			switch r.IntN(20) {
			case 0:
				c.ResetStats()
				from = l.Now()
			case 1:
				// What was cut off did not happen.
				c.Clear()
				now := l.Now()
				for i := range jobs {
					jobs[i].start = min(jobs[i].start, now)
					jobs[i].done = min(jobs[i].done, now)
				}
			case 2, 3, 4, 5, 6:
				l.RunUntil(l.Now().Add(time.Duration(r.IntN(60))))
			default:
				start, done := c.Submit(time.Duration(r.IntN(40)))
				jobs = append(jobs, job{l.Now(), start, done})
			}
			var want station.CPUStats
			waiting := 0
			for _, j := range jobs {
				want.Busy += overlap(j.start, j.done, from, l.Now())
				want.Queued += overlap(j.at, j.start, from, l.Now())
				if j.start > l.Now() {
					waiting++
				}
			}
			got := c.Stats()
			if got.Busy != want.Busy || got.Queued != want.Queued || c.QueueLen() != waiting {
				t.Fatalf("seed %d at %v: busy %v, queued %v, %d waiting; want %v, %v and %d",
					seed, l.Now(), got.Busy, got.Queued, c.QueueLen(), want.Busy, want.Queued, waiting)
			}
			if got.Busy > got.Window*time.Duration(servers) {
				t.Fatalf("seed %d at %v: busy %v of %v on %d servers", seed, l.Now(), got.Busy, got.Window, servers)
			}
		}
		for i := 1; i < len(jobs); i++ {
			if jobs[i].start < jobs[i-1].start {
				t.Fatalf("seed %d: job %d starts at %v, before the one that came first, at %v", seed, i, jobs[i].start, jobs[i-1].start)
			}
		}
	}
}

func overlap(a, b, from, to event.Time) time.Duration {
	return max(0, min(b, to).Sub(max(a, from)))
}

func TestCPUServesAtMostItsServers(t *testing.T) {
	l := event.New()
	c := station.NewCPU(l, 2)
	want := [][2]event.Time{{0, 10}, {0, 30}, {10, 20}, {20, 20}, {20, 25}, {25, 26}}
	for i, service := range []time.Duration{10, 30, 10, 0, 5, 1} {
		start, done := c.Submit(service)
		if got := [2]event.Time{start, done}; got != want[i] {
			t.Errorf("job %d from %v to %v, want %v to %v", i, start, done, want[i][0], want[i][1])
		}
	}
}

func BenchmarkCPUSubmit(b *testing.B) {
	l := event.New()
	c := station.NewCPU(l, 4)
	left := b.N
	var h event.HandlerID
	h = l.Handle("arrive", func(uint64) {
		c.Submit(350)
		if left--; left > 0 {
			l.After(100, h, 0)
		}
	})
	l.At(0, h, 0)
	b.ReportAllocs()
	l.Run()
}
