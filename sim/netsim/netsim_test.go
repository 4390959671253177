package netsim_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"interleave/sim/event"
	"interleave/sim/netsim"
	"interleave/sim/rng"
)

const (
	msgRead netsim.Kind = iota
	msgReply
)

// plain is a network of two zones of two sites, 1 ms one way between zones and
// 100 us within.
func plain() netsim.Config {
	near, far := rng.Constant(100*time.Microsecond), rng.Constant(time.Millisecond)
	return netsim.Config{
		Zones:             []string{"a", "b"},
		Sites:             []netsim.Zone{0, 0, 1, 1},
		Machines:          4,
		Latency:           [][]rng.Dist{{near, far}, {far, near}},
		Loopback:          rng.Constant(time.Microsecond),
		RetransmitTimeout: 200 * time.Millisecond,
		Kinds:             []string{"read", "reply"},
	}
}

type arrival struct {
	at  event.Time
	arg uint64
}

// rig is a network whose messages all go to one handler.
type rig struct {
	loop *event.Loop
	net  *netsim.Net
	h    event.HandlerID
	got  []arrival
}

func newRig(t testing.TB, seed rng.Seed, cfg netsim.Config) *rig {
	t.Helper()
	r := &rig{loop: event.New()}
	var err error
	if r.net, err = netsim.New(r.loop, seed, cfg); err != nil {
		t.Fatal(err)
	}
	r.h = r.loop.Handle("got", func(arg uint64) { r.got = append(r.got, arrival{r.loop.Now(), arg}) })
	return r
}

func (r *rig) send(from, to netsim.Site, bytes int, key uint64, fifo bool) event.Time {
	return r.net.Send(&netsim.Message{From: from, To: to, Kind: msgRead, Bytes: bytes, Key: key, FIFO: fifo, Handler: r.h, Arg: key})
}

func TestLatencyByZone(t *testing.T) {
	r := newRig(t, 1, plain())
	for _, c := range []struct {
		from, to netsim.Site
		want     event.Time
	}{{0, 1, 100_000}, {0, 2, 1_000_000}, {3, 1, 1_000_000}, {2, 2, 1_000}} {
		if got := r.send(c.from, c.to, 10, uint64(c.want), false); got != c.want {
			t.Errorf("from %d to %d: arrives at %v, want %v", c.from, c.to, got, c.want)
		}
	}
	r.loop.Run()
	for _, a := range r.got {
		if uint64(a.at) != a.arg {
			t.Errorf("arrived at %v, want %v as Send said", a.at, event.Time(a.arg))
		}
	}
	if len(r.got) != 4 || r.net.InFlight() != 0 {
		t.Errorf("%d arrivals, %d in flight; want 4 and none", len(r.got), r.net.InFlight())
	}
}

// What a message meets is its own: other traffic, and the order of sending,
// change nothing.
func TestLatencyDependsOnTheMessageOnly(t *testing.T) {
	cfg := plain()
	cfg.Latency[0][1] = rng.Exponential(time.Millisecond)
	cfg.Loss = 0.3
	flight := func(r *rig, kind netsim.Kind, key uint64) time.Duration {
		return r.net.Send(&netsim.Message{From: 0, To: 2, Kind: kind, Key: key, Handler: r.h}).Sub(r.loop.Now())
	}
	a, b, other := newRig(t, 7, cfg), newRig(t, 7, cfg), newRig(t, 8, cfg)
	b.loop.RunUntil(12345)
	same, kinds := 0, 0
	for key := range uint64(1000) {
		first := flight(a, msgRead, key)
		b.send(0, 3, 10, key, true)
		b.send(2, 0, 10, key, false)
		if second := flight(b, msgRead, key); second != first {
			t.Fatalf("message %d takes %v alone and %v among others", key, first, second)
		}
		if flight(other, msgRead, key) == first {
			same++
		}
		if flight(a, msgReply, key) == first {
			kinds++
		}
	}
	if same > 2 || kinds > 2 {
		t.Errorf("of 1000 messages %d take the same under another seed and %d of another kind", same, kinds)
	}
}

func TestFIFO(t *testing.T) {
	cfg := plain()
	cfg.Latency[0][1] = rng.Exponential(time.Millisecond)
	for _, fifo := range []bool{true, false} {
		r := newRig(t, 3, cfg)
		for key := range uint64(200) {
			r.send(0, 2, 10, key, fifo)
			r.loop.RunUntil(r.loop.Now() + 1000)
		}
		r.loop.Run()
		inOrder := slices.IsSortedFunc(r.got, func(a, b arrival) int { return int(a.arg) - int(b.arg) })
		if inOrder != fifo {
			t.Errorf("FIFO %v: arrived in order %v", fifo, inOrder)
		}
		if !fifo {
			continue
		}
		for i := 1; i < len(r.got); i++ {
			if r.got[i].at <= r.got[i-1].at {
				t.Errorf("FIFO messages %d and %d arrive at %v and %v", i-1, i, r.got[i-1].at, r.got[i].at)
			}
		}
	}
	// Links do not hold each other up.
	cfg.Latency[1][0] = rng.Constant(time.Hour)
	r := newRig(t, 3, cfg)
	r.send(2, 0, 10, 1, true)
	if got := r.send(3, 2, 10, 2, true); got != 100_000 {
		t.Errorf("arrives at %v, want 100µs", got)
	}
}

func TestTransmitter(t *testing.T) {
	cfg := plain()
	cfg.BytesPerSecond = 1_000_000
	r := newRig(t, 1, cfg)
	want := []event.Time{1_500_000, 2_000_000, 2_100_000}
	for i, bytes := range []int{500, 500, 100} {
		if got := r.send(0, 2, bytes, uint64(i), false); got != want[i] {
			t.Errorf("message %d arrives at %v, want %v", i, got, want[i])
		}
	}
	// The other direction, and another link, have transmitters of their own.
	if got := r.send(2, 0, 100, 9, false); got != 1_100_000 {
		t.Errorf("arrives at %v, want 1.1ms", got)
	}
	if got := r.send(0, 1, 100, 9, false); got != 200_000 {
		t.Errorf("arrives at %v, want 200µs", got)
	}
	if got := r.send(0, 0, 1_000_000, 9, false); got != 1_000 {
		t.Errorf("a loopback arrives at %v, want 1µs", got)
	}
	// After a pause the transmitter is idle.
	r.loop.RunUntil(10_000_000)
	if got := r.send(0, 2, 1000, 10, false); got != 12_000_000 {
		t.Errorf("arrives at %v, want 12ms", got)
	}
}

// A lost transmission costs the timeout, 200 ms and the round trip of 2 ms, the
// next one twice that, and so on up to 64 times. The number of losses is geometric.
func TestLoss(t *testing.T) {
	cfg := plain()
	const n, loss = 200_000, 0.2
	cfg.Loss = loss
	r := newRig(t, 5, cfg)
	var count [4]int
	retransmissions := uint64(0)
	for key := range uint64(n) {
		delay := r.send(0, 2, 1, key, false).Sub(r.loop.Now()) - time.Millisecond
		lost := 0
		for sum := time.Duration(0); sum < delay; lost++ {
			sum += 202 * time.Millisecond << min(lost, 6)
			if sum > delay {
				t.Fatalf("message %d is delayed by %v", key, delay)
			}
		}
		retransmissions += uint64(lost)
		count[min(lost, 3)]++
	}
	for k, want := range []float64{1 - loss, loss * (1 - loss), loss * loss * (1 - loss), loss * loss * loss} {
		tolerance := 4 * math.Sqrt(want*(1-want)/n)
		if got := float64(count[k]) / n; math.Abs(got-want) > tolerance {
			t.Errorf("share with %d losses %.4f, want %.4f +- %.4f", k, got, want, tolerance)
		}
	}
	if got := r.net.Stats().Total(); got.Retransmissions != retransmissions || got.Dropped != 0 {
		t.Errorf("counted %+v, want %d retransmissions and none dropped", got, retransmissions)
	}
}

// Almost always lost: the transport gives up, and says so.
func TestLossGivesUp(t *testing.T) {
	cfg := plain()
	cfg.Loss = 0.99
	r := newRig(t, 5, cfg)
	dropped := uint64(0)
	for key := range uint64(1000) {
		if r.send(0, 2, 1, key, true) == event.Never {
			dropped++
		}
	}
	r.loop.Run()
	// 0.99^16 is 0.851; its standard deviation over 1000 is 0.011.
	if got := r.net.Stats().Total(); got.Dropped != dropped || dropped < 800 || dropped > 900 || len(r.got) != 1000-int(dropped) {
		t.Errorf("%d dropped, counted %+v, %d arrived; want about 851 and the rest", dropped, got, len(r.got))
	}
}

func TestCut(t *testing.T) {
	r := newRig(t, 1, plain())
	r.send(0, 2, 5, 1, false) // under way when 2 is cut off
	r.send(2, 0, 5, 2, false) // the same, from it
	r.send(0, 1, 5, 3, false) // not concerned
	r.loop.RunUntil(500_000)
	r.net.Cut(2)
	r.net.Cut(2)
	if !r.net.IsCut(2) || r.net.IsCut(1) {
		t.Error("want site 2 cut off, and no other")
	}
	for _, m := range [][2]netsim.Site{{0, 2}, {2, 0}, {2, 2}} {
		if got := r.send(m[0], m[1], 5, 4, false); got != event.Never {
			t.Errorf("a message from %d to %d would arrive at %v, want never", m[0], m[1], got)
		}
	}
	r.loop.RunUntil(600_000)
	// Back before they would arrive: they are lost all the same.
	r.net.Heal(2)
	if at := r.send(0, 2, 5, 5, false); at != 1_600_000 {
		t.Errorf("arrives at %v, want 1.6ms", at)
	}
	r.loop.Run()
	want := []arrival{{100_000, 3}, {1_600_000, 5}}
	if !slices.Equal(r.got, want) {
		t.Errorf("got %v, want %v", r.got, want)
	}
	if got := r.net.Stats().Kinds[msgRead]; got.Messages != 7 || got.Bytes != 35 || got.Dropped != 5 || got.Name != "read" {
		t.Errorf("counted %+v, want 7 messages, 35 bytes, 5 dropped", got)
	}
}

// TestNeverCut: without the record of what is under way all arrives when it did
// with it, in the same order, and a cut is refused.
func TestNeverCut(t *testing.T) {
	play := func(never bool) []arrival {
		cfg := plain()
		cfg.NeverCut, cfg.Loss = never, 0.1
		r := newRig(t, 7, cfg)
		for i := range uint64(500) {
			r.send(netsim.Site(i%3), netsim.Site((i+1)%3), int(i), i, i%2 == 0)
		}
		r.loop.Run()
		return r.got
	}
	if a, b := play(false), play(true); !slices.Equal(a, b) {
		t.Errorf("%v, without the record %v", a, b)
	}
	cfg := plain()
	cfg.NeverCut = true
	defer func() {
		if recover() == nil {
			t.Error("a cut was taken")
		}
	}()
	newRig(t, 7, cfg).net.Cut(1)
}

func TestStatsWindow(t *testing.T) {
	r := newRig(t, 1, plain())
	r.send(0, 1, 10, 1, false)
	r.loop.RunUntil(1000)
	r.net.ResetStats()
	r.send(0, 1, 20, 2, false)
	r.net.Send(&netsim.Message{From: 1, To: 0, Kind: msgReply, Bytes: 7, Handler: r.h})
	r.loop.RunUntil(51_000)
	got := r.net.Stats()
	want := []netsim.KindStats{{Name: "read", Messages: 1, Bytes: 20}, {Name: "reply", Messages: 1, Bytes: 7}}
	if !slices.Equal(got.Kinds, want) || got.Window != 50*time.Microsecond {
		t.Errorf("got %+v, want %+v in 50µs", got, want)
	}
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(c *netsim.Config)
		want   string
	}{
		{"no zones", func(c *netsim.Config) { c.Zones = nil }, "network: zones: none: want at least one"},
		{"rows", func(c *netsim.Config) { c.Latency = c.Latency[:1] }, "network: latency: 1 rows: want one for each of 2 zones"},
		{"columns", func(c *netsim.Config) { c.Latency[1] = nil }, "network: latency: 0 columns from zone b: want one for each of 2 zones"},
		{"site", func(c *netsim.Config) { c.Sites[3] = 2 }, "network: sites: site 3 is in zone 2: want 0 to 1"},
		{"machines", func(c *netsim.Config) { c.Machines = 5 }, "network: machines: 5: want 0 to the 4 sites"},
		{"loss", func(c *netsim.Config) { c.Loss = 1 }, "network: loss: 1: want a probability from 0 to below 1"},
		{"loss NaN", func(c *netsim.Config) { c.Loss = math.NaN() }, "network: loss: NaN: want a probability from 0 to below 1"},
		{"timeout", func(c *netsim.Config) { c.RetransmitTimeout = -1 }, "network: retransmit-timeout: -1ns: want 0s to 1h"},
		{"speed", func(c *netsim.Config) { c.BytesPerSecond = -1 }, "network: bytes-per-second: -1: want 0 (no limit) or more"},
		{"kinds", func(c *netsim.Config) { c.Kinds = make([]string, 33) }, "network: kinds: 33: want at most 32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := plain()
			c.change(&cfg)
			if _, err := netsim.New(event.New(), 1, cfg); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestPresets(t *testing.T) {
	for _, p := range netsim.Presets() {
		t.Run(p.Name, func(t *testing.T) {
			if p.Help == "" || len(p.Zones) == 0 {
				t.Error("want a line of help and zones")
			}
			cfg, err := netsim.Preset(p.Name, 7)
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, 1, cfg)
			for i := range 7 {
				if got := r.net.Zone(cfg.Machine(i)); int(got) != i%len(p.Zones) {
					t.Errorf("machine %d is in zone %d, want %d", i, got, i%len(p.Zones))
				}
			}
			for z := range p.Zones {
				if got := r.net.Zone(cfg.Client(netsim.Zone(z))); int(got) != z {
					t.Errorf("the clients of zone %d are in zone %d", z, got)
				}
			}
			if len(cfg.Sites) != 7+len(p.Zones) {
				t.Errorf("%d sites, want 7 machines and %d of clients", len(cfg.Sites), len(p.Zones))
			}
			// There and back takes about as long as back and there, and a
			// detour by way of a third zone no less than about half the
			// direct way: no number of the table has slipped.
			for a := range p.Zones {
				for b := range p.Zones {
					ab, ba := cfg.Latency[a][b].Mean(), cfg.Latency[b][a].Mean()
					if d := (ab - ba).Abs(); d > time.Millisecond {
						t.Errorf("%s to %s takes %v, and back %v", p.Zones[a], p.Zones[b], ab, ba)
					}
					if a != b && ab <= cfg.Latency[a][a].Mean() {
						t.Errorf("%s to %s takes %v, no longer than within a zone", p.Zones[a], p.Zones[b], ab)
					}
					for c := range p.Zones {
						if via := cfg.Latency[a][c].Mean() + cfg.Latency[c][b].Mean(); a != c && b != c && 2*via < ab {
							t.Errorf("%s to %s takes %v, by way of %s %v", p.Zones[a], p.Zones[b], ab, p.Zones[c], via)
						}
					}
				}
			}
		})
	}
}

// Washington to London is 75 ms and back: the mean one-way latency is half of
// that, times the mean of the jitter.
func TestFiveRegionsLatency(t *testing.T) {
	cfg, err := netsim.Preset("five-regions", 5)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, 1, cfg)
	const n, sigma = 20_000, 0.05
	median := float64(37500 * time.Microsecond)
	sum := 0.0
	for key := range uint64(n) {
		sum += float64(r.send(1, 2, 0, key, false)) / n
	}
	want := median * math.Exp(sigma*sigma/2)
	if tolerance := 4 * median * sigma / math.Sqrt(n); math.Abs(sum-want) > tolerance {
		t.Errorf("mean %v, want %v +- %v", time.Duration(sum), time.Duration(want), time.Duration(tolerance))
	}
}

func TestUnknownPreset(t *testing.T) {
	_, err := netsim.Preset("five-region", 3)
	if want := `network: "five-region" is unknown (did you mean "five-regions"?): want one of lan, three-zones, five-regions`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := netsim.Preset("lan", 0); err == nil || !strings.Contains(err.Error(), "machines: 0: want at least 1") {
		t.Errorf("got %v, want an error about the machines", err)
	}
}

func BenchmarkSend(b *testing.B) {
	cfg, err := netsim.Preset("three-zones", 9)
	if err != nil {
		b.Fatal(err)
	}
	cfg.Kinds = []string{"read"}
	l := event.New()
	n, err := netsim.New(l, 1, cfg)
	if err != nil {
		b.Fatal(err)
	}
	left := 0
	var h event.HandlerID
	h = l.Handle("ping", func(arg uint64) {
		if left--; left < 0 {
			return
		}
		from := netsim.Site(arg % 9)
		n.Send(&netsim.Message{From: from, To: (from + 1) % 9, Bytes: 100, Key: arg, FIFO: true, Handler: h, Arg: arg + 1})
	})
	run := func(messages int) {
		left = messages
		for i := range uint64(100) {
			l.After(0, h, i*1_000_000)
		}
		l.Run()
	}
	run(10_000)
	b.ReportAllocs()
	b.ResetTimer()
	run(b.N)
}
