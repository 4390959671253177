package event

import (
	"math/bits"
	"slices"
)

// ladder is the set of pending events, taken out in order of time and, within
// one instant, in the order in which they were put in. It is a ladder queue
// after Tang, Goh and Thng, "Ladder queue: an O(1) priority queue structure for
// large-scale discrete event simulation", ACM TOMACS 15(3), 2005:
//
//	bottom   sorted, short; served from its head       times <= bottomMax
//	rungs    buckets of equal width, unsorted          times <= last of the rung
//	         (each rung divides what was one bucket of the rung outside it)
//	top      unsorted                                  all later times
//
// An event goes to the innermost part whose range holds its time. When bottom
// is empty, the next bucket is sorted into it if it is short, and otherwise
// divided by a new rung. So an event is copied a few times and sorted among a
// few neighbours, whatever the number pending.
//
// Where this differs from the paper:
//   - Widths are powers of two, so that finding a bucket is a shift.
//   - A rung, and bottom, cover only the times found in the bucket they came
//     from. That bucket stays open behind them and takes what lies between their
//     last time and its own end, just as top does for the outermost rung. One
//     far-off event therefore costs one rung, not the resolution of all.
//   - A long bucket of a single instant is not divided or sorted: it becomes a
//     rung of one bucket, served first in, first out.
//   - An event is inserted into bottom from the nearer end, so a short queue needs
//     nothing else.
//   - When bottom grows in the middle it is turned into a rung from now on, not
//     from its first event on; that bounds the number of rungs by the bits of a
//     time, but for callers who look ahead and then schedule before what they saw.
//     For them there is maxRungs, beyond which all goes back to top.
//
// Invariant: events of one instant are all in one part, or those scheduled
// later are further out; every list keeps the order in which it was filled and
// sorting is stable. So ties run in order of scheduling.
//
// Invariant: every pending time is at or after the time passed to push, the
// loop's now.
type ladder struct {
	bottom    []item // sorted; bottom[head:] are pending
	head      int
	bottomMax Time // events up to here belong in bottom

	rungs []rung // outermost first; those in use are rungs[:depth]
	depth int

	top            bucket
	topMin, topMax Time // the times in top; meaningless while it is empty

	pool chunkPool
}

// rung divides the times from start to last into buckets of 1<<shift. Those
// before cur have been served.
type rung struct {
	start, last Time
	shift       uint8
	tie         bool // all of one instant, start == last, and long
	cur         int
	used        int
	buckets     []bucket
}

const (
	// sortMax is the longest bucket that is sorted rather than divided.
	sortMax = 32
	// smallMax is the number pending up to which bottom alone holds them: what a
	// run of some tens of clients has.
	smallMax = 96
	// shiftMax is how many places an insertion into bottom may shift, towards its
	// nearer end, before bottom is turned into a rung: about where the shifting
	// costs what a rung does.
	shiftMax = 32
	// bucketEvents is how many events a bucket should hold. Those of top thin
	// out the further off they are, so where most are the buckets fill several
	// times higher; a part of a bucket is close to uniform.
	bucketEvents    = 8
	bucketEventsTop = 2
	// rungBuckets bounds the buckets of one rung: their tails should stay in
	// the nearer caches while a long list is dealt out.
	rungBuckets = 1024
	// rungBucketsMin keeps the number of rungs low: each narrows the range at
	// least 32 times.
	rungBucketsMin = 64
	maxRungs       = 20
)

func newLadder() ladder {
	return ladder{bottomMax: -1, rungs: make([]rung, maxRungs)}
}

// push adds it. REQUIRES: it.at >= now, and it.at > q.bottomMax.
func (q *ladder) push(now Time, it item) {
	for i := q.depth - 1; i >= 0; i-- {
		r := &q.rungs[i]
		if it.at <= r.last {
			r.buckets[uint64(it.at-r.start)>>r.shift].add(&q.pool, it)
			return
		}
	}
	if q.depth == 0 && q.top.n == 0 && len(q.bottom)-q.head < smallMax {
		q.bottomMax = it.at
		q.insertFar(now, it)
		return
	}
	q.pushTop(it)
}

func (q *ladder) pushTop(it item) {
	if q.top.n == 0 {
		q.topMin, q.topMax = it.at, it.at
	} else {
		q.topMin = min(q.topMin, it.at)
		q.topMax = max(q.topMax, it.at)
	}
	q.top.add(&q.pool, it)
}

// insert puts it into bottom after all that are not later: those before its place move
// up, or those behind it down, whichever are fewer. It reports false, and changes
// nothing, when these are too many or bottom has no room; then insertFar will do.
//
// Nearly every event of a small simulation passes here: it calls nothing, so all that
// it works with stays in registers.
func (q *ladder) insert(it item) bool {
	b, head := q.bottom, q.head
	n := len(b)
	if mid := int(uint(head+n) / 2); head > 0 && mid < n && it.at < b[mid].at {
		if far := head + shiftMax; far < mid && b[far].at <= it.at {
			return false
		}
		i := head - 1 // free
		for i+1 < len(b) && b[i+1].at <= it.at {
			b[i] = b[i+1]
			i++
		}
		b[i] = it
		q.head = head - 1
		return true
	}
	if n == cap(b) {
		return false
	}
	if far := n - 1 - shiftMax; far >= head && b[far].at > it.at {
		return false
	}
	b = b[:n+1]
	q.bottom = b
	i := n // free
	for i > head && b[i-1].at > it.at {
		b[i] = b[i-1]
		i--
	}
	b[i] = it
	return true
}

// insertFar is insert that makes room, and gives bottom up where too many would move.
func (q *ladder) insertFar(now Time, it item) {
	if len(q.bottom) == cap(q.bottom) {
		q.makeRoom()
	}
	if !q.insert(it) {
		q.spill(now, it)
	}
}

// makeRoom lets bottom take another event. Where it can it slides them down: a chain
// of short delays would otherwise lengthen the array for ever.
func (q *ladder) makeRoom() {
	if q.head > cap(q.bottom)/2 {
		q.bottom = q.bottom[:copy(q.bottom, q.bottom[q.head:])]
		q.head = 0
		return
	}
	q.bottom = slices.Grow(q.bottom, 1)
}

// spill turns bottom, which has become long, into the innermost rung, and adds it.
func (q *ladder) spill(now Time, it item) {
	q.returnTie()
	if q.depth == maxRungs {
		q.flatten(now)
		q.pushTop(it)
		return
	}
	r := q.enter(now, q.bottomMax, rungBucketsMin)
	for _, x := range q.bottom[q.head:] {
		r.buckets[uint64(x.at-r.start)>>r.shift].add(&q.pool, x)
	}
	r.buckets[uint64(it.at-r.start)>>r.shift].add(&q.pool, it)
	q.bottom, q.head = q.bottom[:0], 0
	q.bottomMax = now - 1
}

// returnTie gives back to the innermost rung, when it is a tie, what bottom
// took from it and has not served.
func (q *ladder) returnTie() {
	if q.depth == 0 || !q.rungs[q.depth-1].tie {
		return
	}
	k := len(q.bottom)
	for k > q.head && q.bottom[k-1].at > q.bottomMax {
		k--
	}
	q.rungs[q.depth-1].buckets[0].prepend(&q.pool, q.bottom[k:])
	q.bottom = q.bottom[:k]
}

// flatten moves everything to top.
func (q *ladder) flatten(now Time) {
	var all bucket
	for _, x := range q.bottom[q.head:] {
		all.add(&q.pool, x)
	}
	q.bottom, q.head = q.bottom[:0], 0
	for q.depth > 0 {
		r := &q.rungs[q.depth-1]
		for i := r.cur; i < r.used; i++ {
			all.join(&r.buckets[i])
		}
		q.depth--
	}
	all.join(&q.top)
	q.top = all
	q.topMin, q.topMax = q.top.span()
	q.bottomMax = now - 1
}

// enter makes a new innermost rung over lo to hi of at most n buckets.
func (q *ladder) enter(lo, hi Time, n int) *rung {
	r := &q.rungs[q.depth]
	q.depth++
	span := uint64(hi - lo)
	r.start, r.last, r.cur, r.tie = lo, hi, 0, false
	r.shift = uint8(max(0, bits.Len64(span)-bits.Len64(uint64(n-1))))
	r.used = int(span>>r.shift) + 1
	if r.used > len(r.buckets) {
		// The old buckets are all empty: a rung is entered anew only after
		// it was served to its end.
		r.buckets = make([]bucket, max(1<<bits.Len(uint(r.used-1)), rungBucketsMin))
	}
	return r
}

// refill brings the next events into bottom, which must be empty. It reports
// false when none is pending.
func (q *ladder) refill() bool {
	q.bottom, q.head = q.bottom[:0], 0
	for {
		var b *bucket
		var lo, hi Time
		if q.depth == 0 {
			if q.top.n == 0 {
				return false
			}
			b = &q.top
			lo, hi = q.topMin, q.topMax
		} else {
			r := &q.rungs[q.depth-1]
			for r.cur < r.used && r.buckets[r.cur].n == 0 {
				r.cur++
			}
			if r.cur == r.used {
				q.depth--
				continue
			}
			b = &r.buckets[r.cur]
			if r.tie {
				q.serveTie(b, r.start)
				return true
			}
		}
		if b.n <= sortMax || q.depth == maxRungs {
			q.sortIn(b)
			return true
		}
		if q.depth > 0 {
			lo, hi = b.span()
		}
		q.divide(b, lo, hi)
	}
}

// serveTie moves the first chunk of a tie at time at into bottom. Events of
// that instant scheduled meanwhile go to the end of the tie, not of bottom.
func (q *ladder) serveTie(b *bucket, at Time) {
	c, n := b.popChunk()
	q.bottom = append(q.bottom, c.items[:n]...)
	q.pool.put(c)
	q.bottomMax = at - 1
}

// sortIn moves b into bottom, sorted.
func (q *ladder) sortIn(b *bucket) {
	old := *b
	*b = bucket{}
	s := q.bottom[:0]
	for c := old.head; c != nil; {
		s = append(s, old.of(c)...)
		next := c.next
		q.pool.put(c)
		c = next
	}
	q.bottom = s
	if len(s) > sortMax {
		slices.SortStableFunc(s, func(a, b item) int {
			switch {
			case a.at < b.at:
				return -1
			case a.at > b.at:
				return 1
			default:
				return 0
			}
		})
	} else {
		insertionSort(s)
	}
	q.bottomMax = s[len(s)-1].at
}

func insertionSort(s []item) {
	for i := 1; i < len(s); i++ {
		x := s[i]
		j := i
		for ; j > 0 && s[j-1].at > x.at; j-- {
			s[j] = s[j-1]
		}
		s[j] = x
	}
}

// divide moves b, whose times go from lo to hi, into a new innermost rung.
func (q *ladder) divide(b *bucket, lo, hi Time) {
	old := *b
	*b = bucket{}
	if lo == hi {
		r := q.enter(lo, hi, 1)
		r.tie = true
		r.buckets[0] = old
		return
	}
	perBucket := uint32(bucketEvents)
	if b == &q.top {
		perBucket = bucketEventsTop
	}
	n := min(max(1<<bits.Len32(old.n/perBucket), rungBucketsMin), rungBuckets)
	r := q.enter(lo, hi, n)
	buckets, start, shift := r.buckets, r.start, r.shift
	for c := old.head; c != nil; {
		items := old.of(c)
		for i := range items {
			buckets[uint64(items[i].at-start)>>(shift&63)].add(&q.pool, items[i])
		}
		next := c.next
		q.pool.put(c)
		c = next
	}
}

// sweep removes the items for which dead says so.
func (q *ladder) sweep(dead func(item) bool) {
	k := q.head
	for _, x := range q.bottom[q.head:] {
		if !dead(x) {
			q.bottom[k] = x
			k++
		}
	}
	q.bottom = q.bottom[:k]
	for d := range q.rungs[:q.depth] {
		r := &q.rungs[d]
		for i := r.cur; i < r.used; i++ {
			if r.buckets[i].n > 0 {
				r.buckets[i].sweep(&q.pool, dead)
			}
		}
	}
	if q.top.n > 0 {
		q.top.sweep(&q.pool, dead)
	}
}
