package history

import (
	"bytes"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
)

// log keeps what a Sink was given.
type log struct {
	records []any
	cut     bool
}

type install struct {
	txn    TxnID
	shard  ShardID
	writes []Write
}

func (l *log) Commit(c *Commit) {
	d := *c
	d.Reads = append([]Read(nil), c.Reads...)
	d.Scans = append([]Scan(nil), c.Scans...)
	for i := range d.Scans {
		d.Scans[i].Seen = append([]Read(nil), c.Scans[i].Seen...)
	}
	l.records = append(l.records, d)
}
func (l *log) Abort(txn TxnID) { l.records = append(l.records, txn) }
func (l *log) MarkUnfinished() { l.cut = true }
func (l *log) Install(txn TxnID, shard ShardID, writes []Write) {
	l.records = append(l.records, install{txn, shard, append([]Write(nil), writes...)})
}

// extremes gives records with the greatest and least values.
func extremes(s Sink) {
	s.Install(math.MaxUint64, math.MaxInt32-1, []Write{
		{Key: math.MaxUint64, Version: 1<<63 - 1, Value: math.MinInt64},
		{Key: 0, Version: 1, Value: math.MaxInt64},
		{Key: 1 << 63, Version: 1, Tombstone: true},
	})
	s.Commit(&Commit{
		Txn: math.MaxUint64, Request: math.MaxUint64, Client: math.MaxUint32, Class: math.MaxUint16,
		Begin: math.MinInt64 / 2, End: math.MaxInt64 / 2, Writes: 3,
		Reads: []Read{{math.MaxUint64, 0}, {0, 1<<63 - 1}},
		Scans: []Scan{
			{Lo: 0, Hi: math.MaxUint64, Shard: math.MaxInt32 - 1, Seen: []Read{{5, 6}, {math.MaxUint64 - 1, 7}}},
			{Lo: 7, Hi: 7, Shard: AllShards},
			{Lo: 9, Hi: 3, Shard: 0},
		},
	})
	s.Abort(1)
	s.Install(2, AllShards, []Write{{Key: 3, Version: 1}})
	s.Commit(&Commit{Txn: 2, Writes: WritesUnknown})
	s.Commit(&Commit{Txn: 3})
	s.MarkUnfinished()
}

// TestRoundTrips sends records through a recorder and a file and compares.
func TestRoundTrips(t *testing.T) {
	feeds := []func(Sink){extremes, func(s Sink) { benchHistory{n: 3000, hold: 5, ids: true}.feed(s) }}
	for seed := range uint64(20) {
		g := generator{rand.New(rand.NewPCG(seed, 5))}
		h := g.serial(100, 10)
		g.mutate(h)
		feeds = append(feeds, func(s Sink) { generator{rand.New(rand.NewPCG(seed, 6))}.shuffled(h, s) })
	}
	for i, feed := range feeds {
		var want, played, read log
		feed(&want)

		r := NewRecorder(Options{})
		feed(r)
		if err := r.Replay(&played); err != nil {
			t.Fatal(err)
		}
		if d := diff(&want, &played); d != "" {
			t.Fatalf("feed %d: recorder (-want +got):\n%s", i, d)
		}

		var buf bytes.Buffer
		head := Header{Protocol: "2pl", Level: Serializable, Seed: 7, BaseKeys: 9, Spec: "keys: 9\nops: \"10\"\n"}
		w, err := NewWriter(&buf, head)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Replay(w); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		fr, err := NewReader(&buf)
		if err != nil {
			t.Fatal(err)
		}
		if err := fr.ReadAll(&read); err != nil {
			t.Fatal(err)
		}
		if d := diff(&want, &read); d != "" {
			t.Fatalf("feed %d: file (-want +got):\n%s", i, d)
		}
		head.Format = FormatVersion
		if fr.Header != head {
			t.Errorf("header: got %+v, want %+v", fr.Header, head)
		}
	}
}

func diff(want, got *log) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, cmp.AllowUnexported(log{}, install{}))
}

var update = flag.Bool("update", false, "write the golden file anew")

// TestGoldenFile holds the format still.
func TestGoldenFile(t *testing.T) {
	var buf bytes.Buffer
	w, err := NewWriter(&buf, Header{Protocol: "occ", Level: Snapshot, Seed: 1, BaseKeys: 4, Spec: "seed: 1\n"})
	if err != nil {
		t.Fatal(err)
	}
	extremes(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/golden.jsonl", buf.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/golden.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), buf.String()); d != "" {
		t.Errorf("testdata/golden.jsonl (-want +got):\n%s", d)
	}
}

// TestReader reads hand-written files:
//
//	read
//
// prints the records as the writer writes them, or the error.
func TestReader(t *testing.T) {
	datadriven.RunTest(t, "testdata/reader", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd != "read" || len(d.CmdArgs) != 0 {
			d.Fatalf(t, "want: read")
		}
		r, err := NewReader(strings.NewReader(d.Input))
		if err != nil {
			return err.Error() + "\n"
		}
		var out bytes.Buffer
		w, err := NewWriter(&out, r.Header)
		if err != nil {
			return err.Error() + "\n"
		}
		if err := r.ReadAll(w); err != nil {
			return err.Error() + "\n"
		}
		if err := w.Close(); err != nil {
			return err.Error() + "\n"
		}
		return out.String()
	})
}

// broken is a writer or reader that fails after n bytes.
type broken struct{ n int }

var errBroken = errors.New("device full")

func (b *broken) Write(p []byte) (int, error) {
	if b.n -= len(p); b.n < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func (b *broken) Read(p []byte) (int, error) {
	if b.n == 0 {
		return 0, errBroken
	}
	b.n--
	return copy(p, "{\"history\":1,\"level\":\"none\"}\n"), nil
}

func TestDeviceErrors(t *testing.T) {
	w, err := NewWriter(&broken{100_000}, Header{})
	if err != nil {
		t.Fatal(err)
	}
	benchHistory{n: 5000}.feed(w)
	if err := w.Close(); !errors.Is(err, errBroken) {
		t.Errorf("writer: %v", err)
	}
	r, err := NewReader(&broken{1})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.ReadAll(&log{}); !errors.Is(err, errBroken) {
		t.Errorf("reader: %v", err)
	}
}

// FuzzReader checks that no file makes the reader or the checker panic, and that
// what is read is written and read again the same.
func FuzzReader(f *testing.F) {
	golden, err := os.ReadFile("testdata/golden.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(golden))
	f.Add("{\"history\":1,\"level\":\"serializable\"}\n{\"install\":1,\"writes\":[[1,1,5],[1,2,null]]}\n" +
		"{\"commit\":1,\"begin_ns\":-5,\"end_ns\":9,\"reads\":[[1,1]],\"scans\":[{\"lo\":0,\"hi\":9}]}\n{\"records\":2}\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := NewReader(strings.NewReader(text))
		if err != nil {
			return
		}
		var first, second log
		rec := NewRecorder(Options{Promised: StrictSerializable, Present: r.Header.Present()})
		if r.ReadAll(rec) != nil {
			return
		}
		rec.Check()
		if err := rec.Replay(&first); err != nil {
			t.Fatal(err)
		}
		var buf bytes.Buffer
		w, err := NewWriter(&buf, r.Header)
		if err != nil {
			t.Fatal(err)
		}
		if err := rec.Replay(w); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := NewReader(&buf)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.ReadAll(&second); err != nil {
			t.Fatal(err)
		}
		if d := diff(&first, &second); d != "" {
			t.Error(d)
		}
	})
}
