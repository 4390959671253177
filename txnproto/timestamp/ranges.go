package timestamp

import (
	"fmt"
	"strings"

	"interleave/txnproto"
	"interleave/txnproto/keymap"
)

// ranges is the read timestamp of scans as a function of the key, constant
// between its steps: key k was last scanned at the value of the largest step <= k.
// A scan replaces the steps in its range; as timestamps mostly grow, that merges
// them, and there are never more than two steps a scan, nor more than keys at
// which scans began or ended. So nothing need be pruned.
type ranges struct {
	steps keymap.Ordered[txnproto.Timestamp]
}

// read returns the timestamp of the youngest scan that covered k, 0 for none.
func (r *ranges) read(k txnproto.Key) txnproto.Timestamp {
	if r.steps.Len() == 0 {
		return 0
	}
	_, ts, _ := r.steps.Floor(k)
	return ts
}

// raise makes ts the least value of [lo, hi). REQUIRES: lo < hi.
func (r *ranges) raise(lo, hi txnproto.Key, ts txnproto.Timestamp) {
	before := txnproto.Timestamp(0)
	if lo > 0 {
		before = r.read(lo - 1)
	}
	// last is the old value, and value the new one, just before k.
	last := r.read(lo)
	value := max(last, ts)
	r.step(lo, before, value)
	for {
		k, old, ok := r.steps.Ceil(lo + 1)
		if !ok || k >= hi {
			break
		}
		last = old
		r.step(k, value, max(old, ts))
		value = max(old, ts)
		lo = k
	}
	// What lies beyond keeps its value.
	if _, own := r.steps.Get(hi); own {
		last = r.read(hi)
	}
	r.step(hi, value, last)
}

// step makes the function go from one value to another at k.
func (r *ranges) step(k txnproto.Key, from, to txnproto.Timestamp) {
	if from == to {
		r.steps.Delete(k)
	} else {
		r.steps.Set(k, to)
	}
}

// String shows the steps: "ranges: 3=T5 7=0".
func (r *ranges) String() string {
	if r.steps.Len() == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("ranges:")
	for k, ts, ok := r.steps.Ceil(0); ok; k, ts, ok = r.steps.Ceil(k + 1) {
		fmt.Fprintf(&b, " from %d R=%d", k, ts)
	}
	return b.String() + "\n"
}
