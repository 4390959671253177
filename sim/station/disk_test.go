package station_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"interleave/sim/event"
	"interleave/sim/rng"
	"interleave/sim/station"
)

// TestDisk runs the scripts in testdata/disk. A script is one command,
//
//	run sync=DISTRIBUTION [bytes-per-second=N]
//
// followed by lines "TIME COMMAND ...", which are carried out at that time, in
// order, before what the disk does then:
//
//	write NAME BYTES, crash, slow FACTOR, reset, stats
//	on NAME write NAME BYTES | on NAME crash
//
// The last two are without a time: they happen in the handler of NAME. The
// output is each handler as it is called, with the disk time it is charged.
func TestDisk(t *testing.T) {
	datadriven.Walk(t, "testdata/disk", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "run" {
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			return runDisk(t, d)
		})
	})
}

type diskScript struct {
	loop  *event.Loop
	disk  *station.Disk
	done  event.HandlerID
	names []string
	on    map[string][]string
	out   strings.Builder
}

func runDisk(t *testing.T, d *datadriven.TestData) string {
	var cfg station.DiskConfig
	for _, arg := range d.CmdArgs {
		var err error
		switch arg.Key {
		case "sync":
			cfg.Sync, err = rng.ParseDist(arg.Vals[0])
		case "bytes-per-second":
			cfg.BytesPerSecond, err = strconv.ParseInt(arg.Vals[0], 10, 64)
		default:
			d.Fatalf(t, "unknown argument %q", arg.Key)
		}
		if err != nil {
			d.Fatalf(t, "%s: %v", arg.Key, err)
		}
	}
	s := &diskScript{loop: event.New(), on: map[string][]string{}}
	s.disk = station.NewDisk(s.loop, cfg)
	s.done = s.loop.Handle("done", func(arg uint64) {
		name := s.names[arg]
		fmt.Fprintf(&s.out, "%v %s, share %v\n", s.loop.Now(), name, s.disk.LastShare())
		if fields := s.on[name]; fields != nil {
			s.do(t, fields)
		}
	})
	for line := range strings.Lines(d.Input) {
		fields := strings.Fields(line)
		if fields[0] == "on" {
			s.on[fields[1]] = fields[2:]
			continue
		}
		at, err := time.ParseDuration(fields[0])
		if err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		// Scheduled before anything runs, it precedes the disk's events of
		// the same instant.
		h := s.loop.Handle("script", func(uint64) { s.do(t, fields[1:]) })
		s.loop.At(event.Time(at), h, 0)
	}
	s.loop.Run()
	return s.out.String()
}

func (s *diskScript) do(t *testing.T, fields []string) {
	t.Helper()
	switch fields[0] {
	case "write":
		n, err := strconv.Atoi(fields[2])
		if err != nil {
			t.Fatal(err)
		}
		s.names = append(s.names, fields[1])
		s.disk.Write(n, s.done, uint64(len(s.names)-1))
	case "crash":
		fmt.Fprintf(&s.out, "%v crash\n", s.loop.Now())
		s.disk.Crash()
	case "slow":
		f, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		s.disk.SlowBy(f)
	case "reset":
		s.disk.ResetStats()
	case "stats":
		x := s.disk.Stats()
		fmt.Fprintf(&s.out, "%v stats: window %v, syncs %d, writes %d, bytes %d, busy %v, queued %v, max queue %d, max batch %d, batches %v, waiting %d\n",
			s.loop.Now(), x.Window, x.Syncs, x.Writes, x.Bytes, x.Busy, x.Queued, x.MaxQueue, x.MaxBatch, x.Batches[:4], s.disk.QueueLen())
	default:
		t.Fatalf("unknown command %q", fields)
	}
}

// Under random writes and crashes: a write is over exactly when the first sync
// that began at or after it ends, handlers run in order of Write, shares sum to
// the time the disk was busy, and nothing is called after a crash.
func TestDiskRandom(t *testing.T) {
	for seed := range uint64(50) {
		l := event.New()
		r := rand.New(rand.NewPCG(seed, 3))
		cfg := station.DiskConfig{Sync: rng.Constant(100), BytesPerSecond: 1_000_000_000, Key: seed}
		d := station.NewDisk(l, cfg)
		type w struct {
			at, done event.Time
			bytes    int
			lost     bool
		}
		var ws []w
		var over []uint64
		var shares time.Duration
		done := l.Handle("done", func(arg uint64) {
			ws[arg].done = l.Now()
			over = append(over, arg)
			shares += d.LastShare()
		})
		crashed := false
		var act event.HandlerID
		act = l.Handle("act", func(arg uint64) {
			if seed%2 == 1 && r.IntN(40) == 0 {
				d.Crash()
				crashed = true
				for i := range ws {
					ws[i].lost = ws[i].lost || ws[i].done == 0
				}
			}
			ws = append(ws, w{at: l.Now(), bytes: r.IntN(50)})
			d.Write(ws[len(ws)-1].bytes, done, uint64(len(ws)-1))
			if arg > 0 {
				l.After(time.Duration(r.IntN(80)), act, arg-1)
			}
		})
		l.At(1, act, 400)
		l.Run()
		if !slices.IsSorted(over) {
			t.Fatalf("seed %d: handlers ran out of order", seed)
		}
		for i, x := range ws {
			if x.lost != (x.done == 0) {
				t.Fatalf("seed %d: write %d lost %v, but done at %v", seed, i, x.lost, x.done)
			}
		}
		if s := d.Stats(); !crashed {
			if shares != s.Busy || int(s.Writes) != len(ws) || s.Syncs >= s.Writes {
				t.Fatalf("seed %d: shares sum to %v, want %v; %d of %d writes in %d syncs", seed, shares, s.Busy, s.Writes, len(ws), s.Syncs)
			}
			// Replay: without crashes the batches follow from the arrivals.
			var end event.Time
			for i := 0; i < len(ws); {
				begin := max(end, ws[i].at)
				j, bytes := i, 0
				for j < len(ws) && (j == i || ws[j].at < begin) {
					bytes += ws[j].bytes
					j++
				}
				end = begin.Add(time.Duration(100 + bytes))
				// An arrival at the very instant a sync begins may fall on
				// either side: take what the disk did.
				for j < len(ws) && ws[j].at == begin && ws[j].done != 0 && ws[j].done == ws[i].done {
					end = end.Add(time.Duration(ws[j].bytes))
					j++
				}
				for k := i; k < j; k++ {
					if ws[k].done != end {
						t.Fatalf("seed %d: write %d at %v done at %v, want %v", seed, k, ws[k].at, ws[k].done, end)
					}
				}
				i = j
			}
		}
	}
}

func TestDiskConfigErrors(t *testing.T) {
	err := station.DiskConfig{BytesPerSecond: -5}.Validate()
	if want := "bytes-per-second: -5: want 0 (no limit) or more"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func BenchmarkDiskWrite(b *testing.B) {
	l := event.New()
	d := station.NewDisk(l, station.DiskConfig{Sync: rng.Constant(time.Microsecond), BytesPerSecond: 1e9})
	left := b.N
	done := l.Handle("done", func(uint64) {})
	var h event.HandlerID
	h = l.Handle("write", func(uint64) {
		d.Write(64, done, 0)
		if left--; left > 0 {
			l.After(100, h, 0)
		}
	})
	l.At(0, h, 0)
	b.ReportAllocs()
	l.Run()
}
