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

// benchHistory gives n requests to s. They run one after another, but hold of them
// wait for their commit record, and whose comes next is drawn; with ids, TxnIDs are
// handed out as much out of order. A skewed history draws half of its keys from hot
// ones.
type benchHistory struct {
	n    int
	keys int // 0: benchKeys
	hold int
	ids  bool
	hot  int
}

func (b benchHistory) feed(s Sink) {
	rng := rand.New(rand.NewPCG(1, 2))
	keys := b.keys
	if b.keys == 0 {
		keys = benchKeys
	}
	state := make([]Version, keys)
	draw := func() Key {
		if b.hot > 0 && rng.IntN(2) == 0 {
			return Key(rng.IntN(b.hot))
		}
		return Key(rng.IntN(keys))
	}
	held := make([]Commit, b.hold+1)
	ids := make([]TxnID, b.hold+1)
	for i := range ids {
		ids[i] = TxnID(i + 1)
	}
	var writes [3][]Write
	waiting := 0
	for i := range b.n {
		id := TxnID(i + 1)
		if b.ids {
			j := rng.IntN(len(ids))
			id, ids[j] = ids[j], TxnID(i+len(ids)+1)
		}
		c := &held[waiting]
		*c = Commit{
			Txn: id, Request: RequestID(i + 1), Client: uint32(rng.IntN(benchOverlap)),
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
		if waiting < b.hold {
			waiting++
			continue
		}
		j := rng.IntN(len(held))
		s.Commit(&held[j])
		held[j], held[waiting] = held[waiting], held[j]
	}
	for i := range held[:waiting] {
		s.Commit(&held[i])
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

// BenchmarkWindows records and checks in windows, making the history included.
func BenchmarkWindows(b *testing.B) {
	for b.Loop() {
		r := NewRecorder(Options{Promised: Serializable, WindowBytes: 16 << 20})
		benchHistory{n: benchRequests}.feed(r)
		if res := r.Check(); !res.OK || res.Exact {
			b.Fatal(res)
		}
	}
	perRequest(b)
}

func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct {
		name string
		h    benchHistory
		opt  Options
	}{
		{"in-order", benchHistory{n: benchRequests}, Options{Promised: Serializable}},
		{"strict", benchHistory{n: benchRequests}, Options{Promised: StrictSerializable}},
		{"20M-keys", benchHistory{n: benchRequests, keys: 20_000_000}, Options{Promised: Serializable}},
		{"by-begin", benchHistory{n: benchRequests, hold: 32}, Options{Promised: Serializable}},
		{"no-order", benchHistory{n: benchRequests, hold: 32, ids: true}, Options{Promised: Serializable}},
		{"no-order-hot-100", benchHistory{n: benchRequests, hold: 32, ids: true, hot: 100}, Options{Promised: Serializable}},
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
