package txnproto

import (
	"testing"
	"time"

	"interleave/sim/event"
	"interleave/sim/rng"
)

// TestAdmission: with a multiprogramming limit requests execute in the order
// they came, and the wait for it is the admission part.
func TestAdmission(t *testing.T) {
	f := newFake(t, 1)
	f.start(always(writeKey(0), toCommit), ClientsConfig{Clients: 8, PerClient: 6, MPL: 2, Think: rng.Exponential(ms)})
	for f.loop.Step() {
		if f.clients.running > 2 {
			t.Fatalf("%d execute at once", f.clients.running)
		}
	}
	f.finish()
	if len(f.requests) != 48 {
		t.Fatalf("%d requests", len(f.requests))
	}
	byRequest := make([]*RequestRecord, 49)
	waited := 0
	for i := range f.requests {
		r := &f.requests[i]
		byRequest[r.Request] = r
		if r.Parts[PartAdmission] != r.Begin.Sub(r.Arrival) {
			t.Errorf("request %d waits from %v to %v, its admission is %v", r.Request, r.Arrival, r.Begin, r.Parts[PartAdmission])
		}
		if r.Begin > r.Arrival {
			waited++
		}
	}
	if waited < 20 {
		t.Errorf("%d requests waited", waited)
	}
	for i := 2; i < len(byRequest); i++ {
		if a, b := byRequest[i-1], byRequest[i]; a.Arrival > b.Arrival || a.Begin > b.Begin {
			t.Errorf("request %d came at %v and began at %v, the next %v and %v", i-1, a.Arrival, a.Begin, b.Arrival, b.Begin)
		}
	}
}

// TestThink: a closed loop's client pauses between its requests.
func TestThink(t *testing.T) {
	f := newFake(t, 1)
	f.start(always(writeKey(0), toCommit), ClientsConfig{Clients: 3, Think: rng.Constant(4 * ms)})
	f.run(200 * ms)
	f.finish()
	last := map[ClientID]event.Time{}
	for i := range f.requests {
		r := &f.requests[i]
		if end, ok := last[r.Client]; ok && r.Arrival.Sub(end) != 4*ms {
			t.Errorf("client %d: %v between its requests", r.Client, r.Arrival.Sub(end))
		}
		last[r.Client] = r.End
	}
	if len(last) != 3 || len(f.requests) < 60 {
		t.Errorf("%d requests of %d clients", len(f.requests), len(last))
	}
}

// TestOpenLoop: arrivals go by the clock, whatever the nodes do. What finds no
// session waits; its latency counts from its arrival.
func TestOpenLoop(t *testing.T) {
	arrivals := func(service time.Duration) ([]event.Time, *fake) {
		f := newFake(t, 1)
		f.service = service
		f.start(always(writeKey(0), toCommit), ClientsConfig{Clients: 10, Rate: 1000})
		f.run(2 * time.Second)
		at := make([]event.Time, f.clients.Requests()+1)
		for i := range f.requests {
			at[f.requests[i].Request] = f.requests[i].Arrival
		}
		return at, f
	}
	fast, ff := arrivals(10 * time.Microsecond)
	slow, sf := arrivals(20 * ms)
	for i := 1; i < len(slow) && i < len(fast); i++ {
		if slow[i] != 0 && fast[i] != 0 && slow[i] != fast[i] {
			t.Fatalf("request %d arrives at %v and, with slow nodes, at %v", i, fast[i], slow[i])
		}
	}
	if n := ff.clients.Requests(); n < 1850 || n > 2150 {
		t.Errorf("%d arrivals in 2 s at 1000 a second", n)
	}
	if len(sf.requests) > 500 {
		t.Errorf("%d requests ended: the slow nodes are not slow", len(sf.requests))
	}
	queued := 0
	open := sf.clients.Open()
	for i := range open {
		if i > 0 && open[i].Arrival < open[i-1].Arrival {
			t.Error("open requests are not in order of arrival")
		}
		if open[i].Request == 0 {
			queued++
		}
	}
	if len(open)-queued != 10 || queued < 1000 || !sf.clients.AnyOpen() {
		t.Errorf("%d requests are open, %d of them queued", len(open), queued)
	}
	if r := &sf.requests[len(sf.requests)-1]; r.Parts[PartAdmission] < 500*ms {
		t.Errorf("the last request waited for %v", r.Parts[PartAdmission])
	}
	ff.finish()
	sf.finish()
}

func TestOpenLoopTurnsAway(t *testing.T) {
	f := newFake(t, 1)
	f.service = 20 * ms
	f.start(always(writeKey(0), toCommit), ClientsConfig{Clients: 4, Rate: 1000, MaxOpen: 20})
	refused := uint64(0)
	f.clients.OnTurnedAway = func() { refused++ }
	for range 100 {
		f.run(10 * ms)
		if n := len(f.clients.Open()); n > 20 {
			t.Fatalf("%d requests are open", n)
		}
	}
	if n := f.clients.TurnedAway(); n < 500 || n != refused {
		t.Errorf("%d turned away, %d told", n, refused)
	}
	came := f.clients.Requests() + f.clients.TurnedAway() + uint64(len(f.clients.backlog)-f.clients.backHead)
	if came < 850 || came > 1150 {
		t.Errorf("%d arrivals in a second", came)
	}
	f.finish()
}

// TestClose closes the clients in every state they can be in. Nothing is left
// behind, and what the end cut off is not counted as aborted.
func TestClose(t *testing.T) {
	wait := func(k MsgKind) func(*fake) {
		return func(f *fake) {
			f.answer = func(m *Msg) bool {
				if m.Kind == k {
					return false
				}
				grant(m)
				return true
			}
		}
	}
	always2 := always(writeKey(0), pause(30*ms), writeKey(1), toCommit)
	for _, c := range []struct {
		name  string
		setup func(*fake)
		cfg   ClientsConfig
		after time.Duration
		doing string
	}{
		{"before the first request", nil, ClientsConfig{}, 0, ""},
		{"between requests", nil, ClientsConfig{PerClient: 1}, 100 * ms, ""},
		{"operation on its way", nil, ClientsConfig{}, 1100 * time.Microsecond, "update"},
		{"operation at the node", wait(MsgOp), ClientsConfig{}, 10 * ms, "update"},
		{"pausing", nil, ClientsConfig{}, 20 * ms, "thinking"},
		{"committing", wait(MsgCommit), ClientsConfig{}, 100 * ms, "committing"},
		{"backing off", func(f *fake) {
			f.answer = func(m *Msg) bool { return refuse(m, NoWait) }
		}, ClientsConfig{Retry: Retry{Policy: RetryFixed, Base: time.Second}}, 20 * ms, "backing off"},
		{"without a leader", func(f *fake) { f.leaders[0] = -1 }, ClientsConfig{}, 7 * ms, "update"},
		{"waiting for admission", wait(MsgOp), ClientsConfig{MPL: 1}, 10 * ms, "waiting for admission"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, 2)
			if c.setup != nil {
				c.setup(f)
			}
			c.cfg.Clients = 3
			f.start(always2, c.cfg)
			f.run(c.after)
			doing := ""
			for _, o := range f.clients.Open() {
				doing = o.Doing
			}
			if doing != c.doing {
				t.Fatalf("a client is %q, want %q", doing, c.doing)
			}
			attempts, requests := len(f.attempts), len(f.requests)
			f.clients.Close()
			busy := f.clients.Busy()
			if busy != (c.name == "committing") {
				t.Errorf("busy: %v", busy)
			}
			f.run(50 * ms)
			f.letGo() // what was asked before the end is answered
			f.finish()
			if busy {
				attempts, requests = attempts+3, requests+3
			}
			if len(f.attempts) != attempts || len(f.requests) != requests {
				t.Errorf("%d attempts and %d requests ended, want %d and %d", len(f.attempts), len(f.requests), attempts, requests)
			}
		})
	}
}

func TestOnRequestEnd(t *testing.T) {
	f := newFake(t, 1)
	f.start(always(writeKey(0), toCommit), ClientsConfig{Clients: 2})
	f.clients.OnRequestEnd = func(ended uint64) {
		if ended == 10 {
			f.clients.Close()
		}
	}
	f.loop.Run()
	if n := f.clients.Ended(); n != 10 { // the other had not asked to commit
		t.Errorf("%d requests ended", n)
	}
	f.finish()
}
