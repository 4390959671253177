package event

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// reference is the loop as its definition reads: a binary heap ordered by
// (time, sequence number).
type reference struct {
	now     Time
	q       refHeap
	pending map[uint64]bool // by sequence number
	seq     uint64
	run     func(arg uint64)
}

type refItem struct {
	at       Time
	seq, arg uint64
}

type refHeap []refItem

func (h refHeap) Len() int { return len(h) }
func (h refHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h refHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *refHeap) Push(x any)   { *h = append(*h, x.(refItem)) }
func (h *refHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

func (r *reference) at(at Time, arg uint64) uint64 {
	r.seq++
	r.pending[r.seq] = true
	heap.Push(&r.q, refItem{at, r.seq, arg})
	return r.seq
}

func (r *reference) cancel(seq uint64) bool {
	ok := r.pending[seq]
	delete(r.pending, seq)
	return ok
}

func (r *reference) nextAt() Time {
	for len(r.q) > 0 && !r.pending[r.q[0].seq] {
		heap.Pop(&r.q)
	}
	if len(r.q) == 0 {
		return Never
	}
	return r.q[0].at
}

func (r *reference) step() bool {
	if r.nextAt() == Never {
		return false
	}
	it := heap.Pop(&r.q).(refItem)
	delete(r.pending, it.seq)
	r.now = it.at
	r.run(it.arg)
	return true
}

// pair drives a Loop and the reference with the same calls.
type pair struct {
	l      *Loop
	h      HandlerID
	ref    *reference
	timers []struct {
		t   Timer
		seq uint64
	}
	nextArg uint64
	ran     [2][]string // what each ran: time and argument
}

func newPair() *pair {
	p := &pair{l: New(), ref: &reference{pending: map[uint64]bool{}}}
	p.h = p.l.Handle("loop", func(arg uint64) {
		p.ran[0] = append(p.ran[0], fmt.Sprint(int64(p.l.Now()), " ", arg))
		if d, child, ok := childOf(arg); ok {
			p.l.At(p.l.Now()+d, p.h, child)
		}
	})
	p.ref.run = func(arg uint64) {
		p.ran[1] = append(p.ran[1], fmt.Sprint(int64(p.ref.now), " ", arg))
		if d, child, ok := childOf(arg); ok {
			p.ref.at(p.ref.now+d, child)
		}
	}
	return p
}

// childOf says what the handler of arg schedules: half of the events have a
// child, often at the same instant. Generations are counted in the top bits.
func childOf(arg uint64) (d Time, child uint64, ok bool) {
	x := arg * 0x9e3779b97f4a7c15 >> 40
	if x&1 == 0 || arg>>60 == 3 {
		return 0, 0, false
	}
	if x&2 != 0 {
		d = Time(x >> 2 & 0xff)
	}
	return d, arg + 1<<60, true
}

func (p *pair) at(at Time, cancellable bool) {
	p.nextArg++
	at = max(at, p.l.Now())
	// Keep room for the children, which are scheduled after it.
	if at > Never-1<<20 && at != Never {
		at = Never - 1<<20
		at = max(at, p.l.Now())
	}
	seq := p.ref.at(at, p.nextArg)
	if !cancellable {
		p.l.At(at, p.h, p.nextArg)
		return
	}
	p.timers = append(p.timers, struct {
		t   Timer
		seq uint64
	}{p.l.Schedule(at, p.h, p.nextArg), seq})
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func (p *pair) cancel(t fataler, i int) {
	t.Helper()
	x := p.timers[i]
	if got, want := p.l.Cancel(x.t), p.ref.cancel(x.seq); got != want {
		t.Fatalf("Cancel: got %v, want %v", got, want)
	}
}

func (p *pair) step(t fataler) bool {
	t.Helper()
	got, want := p.l.Step(), p.ref.step()
	if got != want {
		t.Fatalf("Step: got %v, want %v at %v", got, want, p.l.Now())
	}
	return got
}

func (p *pair) runUntil(at Time) {
	p.l.RunUntil(at)
	for p.ref.nextAt() <= at && p.ref.step() {
	}
	p.ref.now = max(p.ref.now, at)
}

// compare checks that both have run the same events and say the same, and that
// the ladder's invariants hold.
func (p *pair) compare(t fataler) {
	t.Helper()
	for i := range min(len(p.ran[0]), len(p.ran[1])) {
		if p.ran[0][i] != p.ran[1][i] {
			t.Fatalf("event %d: got %s, want %s (time, argument)", i, p.ran[0][i], p.ran[1][i])
		}
	}
	if got, want := len(p.ran[0]), len(p.ran[1]); got != want {
		t.Fatalf("ran %d events, want %d", got, want)
	}
	p.ran[0], p.ran[1] = p.ran[0][:0], p.ran[1][:0]
	if got, want := p.l.Now(), p.ref.now; got != want {
		t.Fatalf("Now: got %v, want %v", got, want)
	}
	if got, want := p.l.Len(), len(p.ref.pending); got != want {
		t.Fatalf("Len: got %d, want %d", got, want)
	}
	if err := p.l.check(); err != nil {
		t.Fatalf("%v", err)
	}
}

// check verifies what the ladder's comment claims.
func (l *Loop) check() error {
	q := &l.q
	inQueue := len(q.bottom) - q.head + len(l.never)
	for i := q.head + 1; i < len(q.bottom); i++ {
		if q.bottom[i-1].at > q.bottom[i].at {
			return fmt.Errorf("bottom[%d] at %v is after its successor at %v", i-1, q.bottom[i-1].at, q.bottom[i].at)
		}
	}
	tie := q.depth > 0 && q.rungs[q.depth-1].tie
	for _, it := range q.bottom[q.head:] {
		if it.at > q.bottomMax && !(tie && it.at == q.bottomMax+1) {
			return fmt.Errorf("event at %v in bottom, which ends at %v", it.at, q.bottomMax)
		}
	}
	inner := q.bottomMax
	for d := q.depth - 1; d >= 0; d-- {
		r := &q.rungs[d]
		if r.last < inner {
			return fmt.Errorf("rung %d ends at %v, the part inside it at %v", d, r.last, inner)
		}
		for i := range r.buckets {
			b := &r.buckets[i]
			n := 0
			for c := b.head; c != nil; c = c.next {
				for _, it := range b.of(c) {
					n++
					if it.at <= inner || it.at > r.last || int(uint64(it.at-r.start)>>r.shift) != i {
						return fmt.Errorf("event at %v in bucket %d of rung %d (%v to %v, shift %d), inside which is %v",
							it.at, i, d, r.start, r.last, r.shift, inner)
					}
				}
			}
			if n != int(b.n) {
				return fmt.Errorf("bucket %d of rung %d holds %d events and counts %d", i, d, n, b.n)
			}
			if n > 0 && (i < r.cur || i >= r.used) {
				return fmt.Errorf("bucket %d of rung %d, outside %d to %d, holds events", i, d, r.cur, r.used)
			}
			inQueue += n
		}
		inner = r.last
	}
	for c := q.top.head; c != nil; c = c.next {
		for _, it := range q.top.of(c) {
			inQueue++
			if it.at <= inner || it.at < q.topMin || it.at > q.topMax {
				return fmt.Errorf("event at %v in top (%v to %v), inside which is %v", it.at, q.topMin, q.topMax, inner)
			}
		}
	}
	if inQueue != l.live+l.dead {
		return fmt.Errorf("%d events in the queue, want %d pending and %d cancelled", inQueue, l.live, l.dead)
	}
	return nil
}

// chooser is the part of a source of choices that a program of calls needs.
type chooser interface {
	below(n int) int
	bits() uint64
}

// when draws a time from now on: ties, near, far, and the ends of the range.
func (p *pair) when(c chooser) Time {
	now := p.l.Now()
	var d Time
	switch c.below(8) {
	case 0:
		return now
	case 1:
		return p.l.NextAt()
	case 2:
		d = Time(c.below(4))
	case 3:
		d = Time(c.below(1000))
	case 4:
		d = Time(1_000_000)
	case 5:
		d = Time(c.bits() >> (1 + c.below(62)))
	case 6:
		d = Time(c.bits() >> 30)
	case 7:
		if c.below(50) == 0 {
			return Never
		}
		d = Time(c.below(100_000))
	}
	if now > Never-d {
		return Never - 1
	}
	return now + d
}

// do makes one random call, or a burst of one kind of call, on both.
func (p *pair) do(t fataler, c chooser) {
	t.Helper()
	switch c.below(10) {
	case 0:
		p.at(p.when(c), false)
	case 1:
		p.at(p.when(c), true)
	case 2: // many, at one instant
		at := p.when(c)
		for range c.below(200) {
			p.at(at, c.below(4) == 0)
		}
	case 3: // many, each earlier than the one before
		at, by := p.when(c), Time(c.below(3))
		for range c.below(200) {
			p.at(at, false)
			at = max(at-by, p.l.Now())
		}
	case 4: // many, spread
		for range c.below(200) {
			p.at(p.when(c), c.below(4) == 0)
		}
	case 5:
		if len(p.timers) > 0 {
			for range c.below(60) {
				p.cancel(t, c.below(len(p.timers)))
			}
		}
	case 6:
		for range c.below(100) {
			if !p.step(t) {
				break
			}
		}
	case 7:
		at := p.when(c)
		if at < Never-1<<20 {
			p.runUntil(at)
		}
	case 8:
		if got, want := p.l.NextAt(), p.ref.nextAt(); got != want {
			t.Fatalf("NextAt: got %v, want %v", got, want)
		}
	case 9: // whatever the number cancelled
		p.l.sweep()
	}
}

type randChooser struct{ *rand.Rand }

func (r randChooser) below(n int) int { return r.IntN(n) }
func (r randChooser) bits() uint64    { return r.Uint64() }

func TestLoopAgreesWithHeap(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			p := newPair()
			r := randChooser{rand.New(rand.NewPCG(seed, 7))}
			for range 150 {
				p.do(t, r)
				p.compare(t)
			}
			for p.step(t) {
			}
			p.compare(t)
		})
	}
}

type rapidChooser struct{ *rapid.T }

func (r rapidChooser) below(n int) int { return rapid.IntRange(0, n-1).Draw(r.T, "below") }
func (r rapidChooser) bits() uint64    { return rapid.Uint64().Draw(r.T, "bits") }

func propertyLoop(t *rapid.T) {
	p := newPair()
	for range rapid.IntRange(1, 12).Draw(t, "calls") {
		p.do(t, rapidChooser{t})
		p.compare(t)
	}
	for p.step(t) {
	}
	p.compare(t)
}

func TestLoopProperty(t *testing.T) { rapid.Check(t, propertyLoop) }

func FuzzLoop(f *testing.F) { f.Fuzz(rapid.MakeFuzz(propertyLoop)) }

// Looking ahead and then scheduling before what was seen, again and again, is
// what makes rungs pile up: the order must hold, and their number must not grow
// beyond its bound.
func TestLoopManyRungs(t *testing.T) {
	p := newPair()
	at := Time(1) << 50
	deepest := 0
	for i := range 200 {
		for j := range shiftMax + 10 {
			p.at(at-Time(j), false)
		}
		if i%2 == 0 {
			for range sortMax + 1 {
				p.at(at-shiftMax-10, false)
			}
		}
		if got, want := p.l.NextAt(), p.ref.nextAt(); got != want {
			t.Fatalf("NextAt: got %v, want %v", got, want)
		}
		deepest = max(deepest, p.l.q.depth)
		p.compare(t)
		at -= shiftMax + 10
	}
	if deepest != maxRungs {
		t.Errorf("reached %d rungs, want all %d: the test no longer shows what it is for", deepest, maxRungs)
	}
	for p.step(t) {
	}
	p.compare(t)
}
