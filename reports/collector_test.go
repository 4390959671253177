package reports

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"interleave/sim/event"
	"interleave/txnproto"
)

const ms = time.Millisecond

// at is a point in virtual time in milliseconds.
func at(t int) event.Time { return event.Time(t) * event.Time(ms) }

func newTestCollector(clients int, classes ...string) *Collector {
	return NewCollector(Config{Classes: classes, Clients: clients, StarvationAttempts: 10})
}

// script plays a small run: client 0 commits at once, client 1 on its third
// attempt, client 2 gives up, client 3 rolls back.
func script(c *Collector) {
	c.AttemptEnded(&txnproto.AttemptRecord{Txn: 1, Request: 1, Outcome: txnproto.Committed, Begin: at(0), End: at(10), Ops: 4})
	c.RequestEnded(&txnproto.RequestRecord{
		Request: 1, Txn: 1, Attempts: 1, Ops: 4, End: at(10),
		Parts: txnproto.Parts{txnproto.PartNetwork: 4 * ms, txnproto.PartDisk: 6 * ms},
	})
	for i, key := range []txnproto.Key{7, 7} {
		c.Waited(0, key, 2*ms)
		c.AttemptEnded(&txnproto.AttemptRecord{
			Request: 2, Client: 1, Outcome: txnproto.Aborted, Reason: txnproto.Deadlock, Key: key, KeyKnown: true, End: at(12 + i), Ops: 1,
		})
	}
	c.AttemptEnded(&txnproto.AttemptRecord{Request: 2, Client: 1, Outcome: txnproto.Committed, End: at(40), Ops: 4})
	c.RequestEnded(&txnproto.RequestRecord{
		Request: 2, Client: 1, Txn: 4, Attempts: 3, Ops: 4, LastTry: at(20), End: at(40), Reason: txnproto.Deadlock,
		Parts: txnproto.Parts{txnproto.PartLostAttempts: 18 * ms, txnproto.PartBackoff: 2 * ms, txnproto.PartCPUService: 20 * ms},
	})
	c.AttemptEnded(&txnproto.AttemptRecord{Request: 3, Client: 2, Outcome: txnproto.Aborted, Reason: txnproto.Validation, End: at(50)})
	c.RequestEnded(&txnproto.RequestRecord{
		Request: 3, Client: 2, Attempts: 1, Ending: txnproto.EndGivenUp, End: at(50), Reason: txnproto.Validation,
		Parts: txnproto.Parts{txnproto.PartLostAttempts: 50 * ms},
	})
	c.AttemptEnded(&txnproto.AttemptRecord{Request: 4, Client: 3, Outcome: txnproto.Aborted, End: at(60), Ops: 1})
	c.RequestEnded(&txnproto.RequestRecord{
		Request: 4, Client: 3, Attempts: 1, Ending: txnproto.EndRolledBack, Arrival: at(20), End: at(60),
		Parts: txnproto.Parts{txnproto.PartThink: 40 * ms},
	})
	c.Work(true, 30*ms)
	c.Work(false, 10*ms)
}

func TestFiguresByHand(t *testing.T) {
	c := newTestCollector(4, "all")
	script(c)
	r := c.Finish(at(100), []Open{{Request: 5, Client: 0, Attempts: 1, Arrival: at(70)}})
	r.SetOperations(12)
	want := map[string]any{
		"committed": uint64(2), "rolled back": uint64(1), "given up": uint64(1), "unfinished": uint64(1), "oldest": int64(30 * ms),
		"throughput": 20.0, "attempts/s": 60.0, "abort ratio": 0.6, "aborts per commit": 1.5, "wasted": 0.25,
		"aborts": map[string]uint64{"deadlock": 2, "validation": 1},
		"mean":   int64(25 * ms), "max": int64(40 * ms), "sum": int64(50 * ms), "attempt max": int64(20 * ms),
		"starved": 0.2, "lock waits": uint64(2), "lock wait": int64(4 * ms),
		// 11 operations decided at once, and one that waited.
		"operations": uint64(12), "blocking": 2.0 / 12, "attempts": Attempts{1, 3, 3, 2},
		"hot": []HotKey{{Key: 7, Waits: 2, WaitNS: int64(4 * ms), Aborts: 2}},
		// Commits 1, 1, 0, 0.
		"fair": 0.5,
		// Client 2 was never served: 50 ms.
		"longest wait": int64(50 * ms),
	}
	got := map[string]any{
		"committed": r.Committed, "rolled back": r.RolledBack, "given up": r.GivenUp, "unfinished": r.Unfinished, "oldest": r.OldestNS,
		"throughput": r.Throughput, "attempts/s": r.AttemptsPerS, "abort ratio": r.AbortRatio, "aborts per commit": r.AbortsPerCommit, "wasted": r.WastedWork,
		"aborts": r.Aborts, "mean": r.Latency.MeanNS, "max": r.Latency.MaxNS, "sum": r.Latency.SumNS, "attempt max": r.AttemptLatency.MaxNS,
		"starved": r.Starved, "lock waits": r.LockWaits, "lock wait": r.LockWaitNS, "operations": r.Operations, "blocking": r.BlockingRatio, "attempts": r.Attempts,
		"hot": r.HottestKeys, "fair": *r.Fairness.Clients, "longest wait": r.LongestWaitNS,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if r.Fairness.Classes != nil {
		t.Error("fairness between classes, of which there is one")
	}
	for _, l := range r.Laws {
		if !l.OK {
			t.Errorf("broken: %+v", l)
		}
	}
}

func TestWindowForgetsTheWarmUp(t *testing.T) {
	c, fresh := newTestCollector(4, "all"), newTestCollector(4, "all")
	script(c)
	digest := c.digest.sum()
	c.ResetWindow(at(100))
	fresh.ResetWindow(at(100))
	got, want := c.Finish(at(200), nil), fresh.Finish(at(200), nil)
	if got.Digest != digest {
		t.Error("the digest lost the warm-up")
	}
	got.Digest, want.Digest = "", ""
	got.Laws, want.Laws = nil, nil
	if d := cmp.Diff(want, got, cmp.AllowUnexported(Result{})); d != "" {
		t.Error(d)
	}
}

func TestDigestCoversEverything(t *testing.T) {
	base := txnproto.RequestRecord{Request: 1, Txn: 2, Attempts: 3, Arrival: 4, Begin: 5, End: 6, Parts: txnproto.Parts{2}}
	digests := map[string]string{}
	add := func(name string, feed func(c *Collector)) {
		c := newTestCollector(4, "all")
		feed(c)
		d := c.Finish(at(1), nil).Digest
		if len(d) != 64 {
			t.Fatalf("digest %q", d)
		}
		if other, ok := digests[d]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		digests[d] = name
	}
	request := func(change func(*txnproto.RequestRecord)) func(*Collector) {
		return func(c *Collector) {
			r := base
			change(&r)
			c.RequestEnded(&r)
		}
	}
	add("nothing", func(*Collector) {})
	add("base", request(func(*txnproto.RequestRecord) {}))
	add("id", request(func(r *txnproto.RequestRecord) { r.Request++ }))
	add("txn", request(func(r *txnproto.RequestRecord) { r.Txn++ }))
	add("outcome", request(func(r *txnproto.RequestRecord) { r.Ending = txnproto.EndRolledBack }))
	add("attempts", request(func(r *txnproto.RequestRecord) { r.Attempts++ }))
	add("arrival", request(func(r *txnproto.RequestRecord) { r.Arrival-- }))
	add("begin", request(func(r *txnproto.RequestRecord) { r.Begin++ }))
	add("end", request(func(r *txnproto.RequestRecord) { r.End++ }))
	add("install", func(c *Collector) { c.Installed(1, 2, 3, 4, 5) })
	add("install elsewhere", func(c *Collector) { c.Installed(0, 2, 3, 4, 5) })
	add("install at another index", func(c *Collector) { c.Installed(1, 1, 3, 4, 5) })
	add("install of another", func(c *Collector) { c.Installed(1, 2, 2, 4, 5) })
	add("install of another key", func(c *Collector) { c.Installed(1, 2, 3, 3, 5) })
	add("install of another version", func(c *Collector) { c.Installed(1, 2, 3, 4, 4) })
	add("install twice", func(c *Collector) { c.Installed(1, 2, 3, 4, 5); c.Installed(1, 2, 3, 4, 5) })
}

func TestTraceFollowsTheDigest(t *testing.T) {
	var b strings.Builder
	c := NewCollector(Config{Classes: []string{"all"}, Clients: 4, StarvationAttempts: 10, Trace: func(l []byte) { b.Write(l) }})
	c.Installed(1, 2, 3, 4, 5)
	c.RequestEnded(&txnproto.RequestRecord{Request: 1, Txn: 3, Client: 2, Attempts: 1, End: 9, Parts: txnproto.Parts{9}})
	want := "install s2 index 2 T3 key 4 version 5\nrequest 1 client 2 committed T3 attempts 1 last-abort none arrival 0 begin 0 end 9\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestBrokenPartsAreNoticed(t *testing.T) {
	c := newTestCollector(1, "all")
	c.AttemptEnded(&txnproto.AttemptRecord{Outcome: txnproto.Committed, End: 10})
	c.RequestEnded(&txnproto.RequestRecord{Attempts: 1, End: 10, Parts: txnproto.Parts{9}})
	broken := 0
	for _, l := range c.Finish(10, nil).Laws {
		if !l.OK {
			broken++
		}
	}
	if broken != 2 {
		t.Errorf("%d laws broken, want the two about parts", broken)
	}
}

// TestMoreWaitThanThereWasIsNoticed: a wait before the window counts for a request that
// ends in it; one that nobody was told of breaks a law.
func TestMoreWaitThanThereWasIsNoticed(t *testing.T) {
	broken := func(wait time.Duration) bool {
		c := newTestCollector(1, "all")
		c.Waited(0, 7, 2*ms)
		c.WaitedForPlace(0, 3*ms)
		c.ResetWindow(at(6))
		c.AttemptEnded(&txnproto.AttemptRecord{Outcome: txnproto.Committed, End: at(10)})
		c.RequestEnded(&txnproto.RequestRecord{Attempts: 1, End: at(10), Parts: txnproto.Parts{txnproto.PartLockWait: wait, txnproto.PartDisk: 10*ms - wait}})
		for _, l := range c.Finish(at(10), nil).Laws {
			if strings.HasPrefix(l.Name, "no latency has more of lock waits") {
				return !l.OK
			}
		}
		t.Fatal("there is no such law")
		return false
	}
	if broken(5 * ms) {
		t.Error("5 ms of waits, and as much in the latency, break the law")
	}
	if !broken(5*ms + 1) {
		t.Error("5 ms of waits, and more in the latency, break no law")
	}
}

// TestLittle feeds the requests of clients that are always busy or thinking,
// and then the same with every other one lost.
func TestLittle(t *testing.T) {
	for _, c := range []struct {
		lose bool
		want bool
	}{{false, true}, {true, false}} {
		col := NewCollector(Config{Classes: []string{"all"}, Clients: 3, StarvationAttempts: 10, Think: 3 * ms})
		for step := range 1000 {
			if step == 10 {
				col.ResetWindow(at(100))
			}
			for client := range 3 {
				if c.lose && client > 0 {
					continue
				}
				arrival := at(step*10 + 3)
				col.RequestEnded(&txnproto.RequestRecord{
					Client: txnproto.ClientID(client), Attempts: 1, Arrival: arrival, Begin: arrival, End: at(step*10 + 10), Parts: txnproto.Parts{7 * ms},
				})
				col.AttemptEnded(&txnproto.AttemptRecord{Outcome: txnproto.Committed, End: at(step*10 + 10)})
			}
		}
		for _, l := range col.Finish(at(10_000), nil).Laws {
			if strings.HasPrefix(l.Name, "clients =") && l.OK != c.want {
				t.Errorf("requests lost %v: %+v", c.lose, l)
			}
		}
	}
}

// TestArrivalsWithoutAClient are counted as unfinished, and waited for.
func TestArrivalsWithoutAClient(t *testing.T) {
	c := NewCollector(Config{Classes: []string{"all"}, Clients: 2, OpenLoop: true, StarvationAttempts: 10})
	c.RequestEnded(&txnproto.RequestRecord{Attempts: 1, End: at(1), Parts: txnproto.Parts{ms}})
	r := c.Finish(at(100), []Open{{Client: -1, Arrival: at(30)}, {Client: 1, Arrival: at(60)}})
	if r.Unfinished != 2 || r.LongestWaitNS != int64(70*ms) || r.StarvedCount != 2 || r.Fairness.Clients != nil {
		t.Errorf("%d unfinished, longest wait %d, %d starved", r.Unfinished, r.LongestWaitNS, r.StarvedCount)
	}
	if lines := Explain(r); len(lines) != 2 || !strings.Contains(lines[1], "no client was free") {
		t.Errorf("%q", lines)
	}
}

func TestUtilisationLaw(t *testing.T) {
	for _, c := range []struct {
		busy, work time.Duration
		want       bool
	}{{100 * ms, 100 * ms, true}, {100 * ms, 99 * ms, true}, {100 * ms, 70 * ms, false}, {70 * ms, 100 * ms, false}} {
		if l := UtilisationLaw(c.busy, c.work, 10_000, 20); l.OK != c.want {
			t.Errorf("%+v", l)
		}
	}
}

func TestStarvedAreListedWorstFirst(t *testing.T) {
	c := newTestCollector(20, "short", "long")
	for i := range 12 {
		c.RequestEnded(&txnproto.RequestRecord{
			Request: txnproto.RequestID(i), Class: txnproto.ClassID(i % 2), Attempts: 5 + i, End: at(10), Parts: txnproto.Parts{10 * ms},
			Reason: txnproto.TSOrder,
		})
	}
	open := []Open{
		{Request: 100, Class: 1, Attempts: 2, Arrival: at(0)},   // older than ten medians
		{Request: 101, Class: 1, Attempts: 2, Arrival: at(950)}, // not
		{Request: 102, Class: 0, Attempts: 11, Arrival: at(999)},
	}
	r := c.Finish(at(1000), open)
	if r.StarvedCount != 8 || r.Starved != 8.0/15 {
		t.Errorf("%d starved, share %v", r.StarvedCount, r.Starved)
	}
	var order []uint64
	for _, s := range r.StarvedBy {
		order = append(order, s.Request)
	}
	if d := cmp.Diff([]uint64{11, 10, 9, 8, 7}, order); d != "" {
		t.Error(d)
	}
	if r.Classes[0].Starved != 4 || r.Classes[1].Starved != 4 {
		t.Errorf("by class: %d and %d", r.Classes[0].Starved, r.Classes[1].Starved)
	}
}

// TestHotKeys offers many keys of which few are hot; Space-Saving must find
// these, and its bounds must hold.
func TestHotKeys(t *testing.T) {
	h := newHotKeys(64)
	truth := map[txnproto.Key]uint64{}
	x := uint64(1)
	for i := range 100_000 {
		x = x*6364136223846793005 + 1442695040888963407
		k := txnproto.Key(x >> 40 % 10_000)
		if i%4 == 0 {
			k = txnproto.Key(i / 4 % 8)
		}
		truth[k]++
		if i%2 == 0 {
			h.waited(k, 3)
		} else {
			h.aborted(k)
		}
	}
	top := h.hottest(8)
	for _, k := range top {
		if k.Key >= 8 {
			t.Errorf("key %d is not hot", k.Key)
		}
		seen, all := k.Waits+k.Aborts, truth[txnproto.Key(k.Key)]
		if seen > all || seen+k.MissedAtMost < all {
			t.Errorf("key %d: %d conflicts counted, %d missed at most, %d in truth", k.Key, seen, k.MissedAtMost, all)
		}
		if k.WaitNS != int64(3*k.Waits) {
			t.Errorf("key %d: waited %d ns in %d waits", k.Key, k.WaitNS, k.Waits)
		}
	}
	for i := 1; i < len(h.heap); i++ {
		if h.less(h.heap[i], h.heap[(i-1)/2]) {
			t.Fatalf("no heap at rank %d", i)
		}
	}
}

func TestBatchMeans(t *testing.T) {
	c := newTestCollector(1, "all")
	// One commit a millisecond for ten seconds: no variance at all.
	for i := range 10_000 {
		c.batches.commit(at(i)+1, 2*ms)
		c.batches.attempt(at(i)+1, i%4 == 0)
	}
	got := c.batches.confidence(at(10_000))
	if got.Batches < minBatches || got.Batches > maxBatches {
		t.Fatalf("%d batches", got.Batches)
	}
	near := func(name string, x, want, tolerance float64) {
		if math.Abs(x-want) > tolerance {
			t.Errorf("%s is %v, want %v", name, x, want)
		}
	}
	near("throughput", got.Throughput.Mean, 1000, 5)
	near("its half width", got.Throughput.Half, 0, 3)
	near("latency", got.LatencyNS.Mean, 2e6, 1)
	near("abort ratio", got.AbortRatio.Mean, 0.25, 0.01)
	some := newTestCollector(1, "all")
	for i := range 300 {
		some.batches.commit(at(i)+1, ms)
	}
	if got := some.batches.confidence(at(300)); got.Batches < minBatches || got.Batches > 30 {
		t.Errorf("300 commits in %d batches", got.Batches)
	}
	if few := newTestCollector(1, "all").batches.confidence(at(10)); few != (Confidence{}) {
		t.Errorf("an interval from nothing: %+v", few)
	}
}

func TestStudent(t *testing.T) {
	// Quantiles from a printed table.
	for df, want := range map[int]float64{1: 12.706, 10: 2.228, 30: 2.042, 40: 2.021, 60: 2.000, 63: 1.998} {
		if got := student95(df); math.Abs(got-want) > 0.001 {
			t.Errorf("%d degrees of freedom: %v, want %v", df, got, want)
		}
	}
}

func TestIntervalByHand(t *testing.T) {
	// Deviation 1.29099, 3 degrees of freedom.
	got := intervalOf([]float64{1, 2, 3, 4})
	if got.Mean != 2.5 || math.Abs(got.Half-3.182*1.2909944487/2) > 1e-9 {
		t.Errorf("got %+v", got)
	}
}

func TestJain(t *testing.T) {
	for _, c := range []struct {
		x    []uint64
		want string
	}{{[]uint64{5, 5, 5}, "1"}, {[]uint64{9, 0, 0, 0}, "0.25"}, {[]uint64{1, 2, 3}, "0.857143"}, {[]uint64{0, 0}, "none"}, {nil, "none"}} {
		got := "none"
		if j := jain(c.x); j != nil {
			got = fmt.Sprintf("%.6g", *j)
		}
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.x, got, c.want)
		}
	}
}

func TestHistogramKeepsThreeDigits(t *testing.T) {
	h := newHistogram(longestLatency)
	for i := range int64(100_000) {
		h.record(i * 1000)
	}
	for p, want := range map[float64]float64{50: 5e7, 90: 9e7, 99: 9.9e7, 99.9: 9.99e7} {
		if got := float64(h.at(p)); math.Abs(got-want) > want/1000+1000 {
			t.Errorf("p%v is %v, want %v", p, got, want)
		}
	}
	h.record(2 * longestLatency)
	if h.max != 2*longestLatency || h.at(100) < longestLatency*999/1000 {
		t.Errorf("beyond the bound: max %d, p100 %d", h.max, h.at(100))
	}
}

// feedRequest is what a collector is given for one request of a benchmark.
func feedRequest(c *Collector, i int) {
	end := event.Time(i) * event.Time(100*time.Microsecond)
	a := txnproto.AttemptRecord{Txn: txnproto.TxnID(i), Client: txnproto.ClientID(i % 50), Outcome: txnproto.Committed, End: end, Ops: 10}
	c.AttemptEnded(&a)
	for w := range 5 {
		c.Installed(txnproto.ShardID(w%3), uint64(i), txnproto.TxnID(i), txnproto.Key(i*7919%1_000_000), txnproto.Version(i))
	}
	c.Waited(0, txnproto.Key(i*7919%1_000_000), ms)
	r := txnproto.RequestRecord{
		Request: txnproto.RequestID(i), Txn: txnproto.TxnID(i), Client: a.Client, Attempts: 1, Ops: 10,
		Arrival: end, End: end.Add(5 * ms), Parts: txnproto.Parts{5 * ms},
	}
	c.RequestEnded(&r)
}

func TestFeedingAllocatesNothing(t *testing.T) {
	c := newTestCollector(50, "all")
	i := 0
	for ; i < 10_000; i++ {
		feedRequest(c, i)
	}
	if n := testing.AllocsPerRun(10_000, func() { feedRequest(c, i); i++ }); n > 0.01 {
		t.Errorf("%v allocations a request", n)
	}
}

func BenchmarkCollector(b *testing.B) {
	c := newTestCollector(50, "all")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		feedRequest(c, i)
	}
}
