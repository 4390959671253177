package history

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// feedWithAnomalies records n serial transactions and, every gap of them, a pair
// that shows one of four anomalies, on that many keys.
func feedWithAnomalies(s Sink, n, gap, keys int) {
	rng := rand.New(rand.NewPCG(3, 4))
	state := make([]Version, keys)
	now := Time(0)
	txn := TxnID(0)
	feed := func(reads []Read, writes ...Key) {
		txn++
		var ws []Write
		for _, k := range writes {
			state[k]++
			ws = append(ws, Write{Key: k, Version: state[k]})
		}
		if len(ws) > 0 {
			s.Install(txn, 0, ws)
		}
		s.Commit(&Commit{Txn: txn, Request: RequestID(txn), Begin: now, End: now + 10, Writes: len(ws), Reads: reads})
		now += 10
	}
	read := func(k Key) Read { return Read{k, state[k]} }
	for i := range n {
		if i%gap != gap-1 {
			k := Key(rng.IntN(keys))
			feed([]Read{read(k), read(Key(rng.IntN(keys)))}, k)
			continue
		}
		x := Key(rng.IntN(keys / 2))
		y := x + Key(keys/2)
		oldX, oldY := read(x), read(y)
		switch i / gap % 4 {
		case 0: // write skew
			feed([]Read{oldX, oldY}, x)
			feed([]Read{oldX, oldY}, y)
		case 1: // lost update
			feed([]Read{oldX}, x)
			feed([]Read{oldX}, x)
		case 2: // read skew
			feed(nil, x, y)
			feed([]Read{oldX, read(y)})
		case 3: // aborted read
			txn++
			state[x]++
			s.Install(txn, 0, []Write{{Key: x, Version: state[x]}})
			s.Abort(txn)
			feed([]Read{read(x)})
			state[x]++
			txn++
			s.Install(txn, 0, []Write{{Key: x, Version: state[x]}})
			s.Commit(&Commit{Txn: txn, Begin: now, End: now, Writes: 1})
		}
	}
}

// TestWindowsFindWhatIsLocal checks a history whose anomalies are local as a whole
// and in windows of several sizes: what was planted must be found, and the counts
// be equal. With many keys they lie in several buckets.
func TestWindowsFindWhatIsLocal(t *testing.T) {
	for _, keys := range []int{500, 100_000} {
		const n, gap = 20_000, 97
		planted := n / gap / 4
		whole := NewRecorder(Options{Promised: Serializable})
		feedWithAnomalies(whole, n, gap, keys)
		want := whole.Check()
		if len(want.Counts) != 4 || !want.Exact || want.Windows != 1 || want.Note != "" || want.Transactions != whole.Commits() {
			t.Fatalf("whole: %v", want)
		}
		for _, c := range want.Counts {
			if c.N < planted || c.N > planted+1 || c.AtLeast {
				t.Errorf("%d keys: %d of each were planted; found %v", keys, planted, c)
			}
		}
		for _, window := range []int64{4 << 10, 30 << 10, 200 << 10} {
			r := NewRecorder(Options{Promised: Serializable, WindowBytes: window})
			feedWithAnomalies(r, n, gap, keys)
			got := r.Check()
			if !reflect.DeepEqual(got.Counts, want.Counts) || got.Found != want.Found || got.Transactions != want.Transactions {
				t.Errorf("window %d: got %v\nwant %v", window, got, want)
			}
			if got.Exact || got.Windows < 3 || !strings.Contains(got.Note, fmt.Sprintf("%d windows", got.Windows)) {
				t.Errorf("window %d: exact %v, %d windows, note %q", window, got.Exact, got.Windows, got.Note)
			}
			if r.Bytes() > 2*window {
				t.Errorf("window %d: %d bytes are kept", window, r.Bytes())
			}
			if err := r.Replay(nothing{}); err != ErrReleased {
				t.Errorf("window %d: replay: %v", window, err)
			}
		}
	}
}

// TestWindowsMissWhatIsFar shows the limit that the note speaks of.
func TestWindowsMissWhatIsFar(t *testing.T) {
	feed := func(s Sink) {
		s.Install(1, 0, []Write{{Key: 1000, Version: 1}, {Key: 1001, Version: 1}})
		s.Commit(&Commit{Txn: 1, Writes: 2})
		feedWithAnomalies(offset{s, 1}, 5000, 1<<30, 500)
		s.Commit(&Commit{Txn: 100_000, Reads: []Read{{1000, 0}, {1001, 1}}})
	}
	whole := NewRecorder(Options{Promised: Serializable})
	feed(whole)
	if res := whole.Check(); res.OK || res.Verdict() != "G-single" {
		t.Errorf("whole: %v", res)
	}
	r := NewRecorder(Options{Promised: Serializable, WindowBytes: 10 << 10})
	feed(r)
	if res := r.Check(); !res.OK {
		t.Errorf("in windows: %v", res)
	}
}

// offset adds to the TxnIDs of what passes through it.
type offset struct {
	Sink
	by TxnID
}

func (o offset) Commit(c *Commit) {
	d := *c
	d.Txn += o.by
	d.Request = 0
	o.Sink.Commit(&d)
}

func (o offset) Install(txn TxnID, shard ShardID, w []Write) { o.Sink.Install(txn+o.by, shard, w) }

// TestCheckMayBeRepeated checks in the middle of a recording and at its end.
func TestCheckMayBeRepeated(t *testing.T) {
	for _, window := range []int64{0, 8 << 10} {
		r := NewRecorder(Options{Promised: Serializable, WindowBytes: window})
		feedWithAnomalies(r, 3000, 50, 500)
		a, b := r.Check().String(), r.Check().String()
		if a != b {
			t.Errorf("window %d: first %s\nthen %s", window, a, b)
		}
	}
}

// TestBounds checks that counting and searching stop at their bounds and say so,
// and that witnesses are the smallest.
func TestBounds(t *testing.T) {
	r := NewRecorder(Options{Promised: Serializable, MaxCount: 10, Witnesses: 2})
	feedWithAnomalies(r, 10_000, 20, 500)
	res := r.Check()
	if len(res.Counts) != 4 || len(res.Anomalies) != 8 {
		t.Fatalf("%v", res)
	}
	atLeast := 0
	for _, c := range res.Counts {
		if c.N > 10 {
			t.Errorf("counted %v", c)
		}
		if c.AtLeast {
			atLeast++
		}
	}
	if atLeast != 4 {
		t.Errorf("%d of %v say that there may be more", atLeast, res.Counts)
	}

	r = NewRecorder(Options{Promised: Serializable, SearchEdges: 1})
	feedWithAnomalies(r, 10_000, 20, 500)
	res = r.Check()
	if res.OK {
		t.Fatalf("%v", res)
	}
	if err := witnessed(res); err != nil {
		t.Error(err)
	}
}

// TestRecorderAllocatesChunksOnly measures the allocations of a recording.
func TestRecorderAllocatesChunksOnly(t *testing.T) {
	r := NewRecorder(Options{})
	c := Commit{Reads: make([]Read, 5), Scans: []Scan{{Lo: 1, Hi: 9, Seen: make([]Read, 3)}}}
	writes := make([]Write, 5)
	for range 100_000 { // past the small chunks
		c.Txn++
		r.Commit(&c)
	}
	allocs := testing.AllocsPerRun(2000, func() {
		c.Txn++
		r.Install(c.Txn, 0, writes)
		r.Commit(&c)
	})
	if allocs != 0 {
		t.Errorf("%v allocations a request", allocs)
	}
}
