package history

import (
	"math/rand/v2"
	"runtime"
	"testing"
)

// The measured history: requests of ten operations, five reads and five writes, of
// uniform keys, on three shards, by clients that overlap.
const (
	benchRequests = 1_000_000
	benchKeys     = 1_000_000
	benchOverlap  = 32 // transactions in flight
)

// benchHistory gives n requests to s. Transactions run one after another in commit
// order, except that with swap > 0 every swap-th pair of neighbours commits in the
// other order; a skewed history draws from few keys half of the time.
type benchHistory struct {
	n    int
	swap int
	hot  int
}

func (b benchHistory) feed(s Sink) {
	rng := rand.New(rand.NewPCG(1, 2))
	state := make([]Version, benchKeys)
	draw := func() Key {
		if b.hot > 0 && rng.IntN(2) == 0 {
			return Key(rng.IntN(b.hot))
		}
		return Key(rng.IntN(benchKeys))
	}
	var cs [2]Commit
	var writes [3][]Write
	held := 0
	for i := range b.n {
		c := &cs[held]
		*c = Commit{
			Txn: TxnID(i + 1), Request: RequestID(i + 1), Client: uint32(rng.IntN(benchOverlap)),
			Begin: Time(i) * 25_000, End: Time(i+benchOverlap) * 25_000, Writes: 5, Reads: c.Reads[:0],
		}
		for range 5 {
			k := draw()
			c.Reads = append(c.Reads, Read{k, state[k]})
		}
		for j := range writes {
			writes[j] = writes[j][:0]
		}
		for range 5 {
			k := draw()
			state[k]++
			writes[k%3] = append(writes[k%3], Write{Key: k, Version: state[k], Value: int64(i)})
		}
		for j := range writes {
			if len(writes[j]) > 0 {
				s.Install(c.Txn, ShardID(j), writes[j])
			}
		}
		if b.swap > 0 && held == 0 && i%b.swap == 0 && i+1 < b.n {
			held = 1
			continue
		}
		s.Commit(c)
		if held == 1 {
			s.Commit(&cs[0])
			held = 0
		}
	}
}

// nothing is a sink to measure the making of the history alone.
type nothing struct{}

func (nothing) Commit(*Commit)                  {}
func (nothing) Abort(TxnID)                     {}
func (nothing) Install(TxnID, ShardID, []Write) {}
func (nothing) MarkUnfinished()                 {}

func BenchmarkMakeHistory(b *testing.B) {
	for b.Loop() {
		benchHistory{n: benchRequests}.feed(nothing{})
	}
	perRequest(b)
}

func perRequest(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRequests, "ns/request")
}

// BenchmarkRecord includes the making of the history; take BenchmarkMakeHistory away.
func BenchmarkRecord(b *testing.B) {
	var bytes int64
	for b.Loop() {
		r := NewRecorder(Options{})
		benchHistory{n: benchRequests}.feed(r)
		bytes = r.Bytes()
	}
	perRequest(b)
	b.ReportMetric(float64(bytes)/benchRequests, "B/request")
}

func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct {
		name string
		h    benchHistory
		opt  Options
	}{
		{"in-order", benchHistory{n: benchRequests}, Options{Promised: Serializable}},
		{"strict", benchHistory{n: benchRequests}, Options{Promised: StrictSerializable}},
		{"pairs-swapped", benchHistory{n: benchRequests, swap: 50}, Options{Promised: Serializable}},
		{"hot-100", benchHistory{n: benchRequests, swap: 7, hot: 100}, Options{Promised: Serializable}},
		{"windows-16MiB", benchHistory{n: benchRequests}, Options{Promised: Serializable, WindowBytes: 16 << 20}},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := NewRecorder(c.opt)
			c.h.feed(r)
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			b.ResetTimer()
			for b.Loop() {
				if res := r.Check(); !res.OK {
					b.Fatal(res)
				}
			}
			b.StopTimer()
			runtime.ReadMemStats(&after)
			perRequest(b)
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/(1<<20), "MiB/check")
		})
	}
}
