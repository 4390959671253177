package keymap

import (
	"slices"

	"interleave/txnproto"
)

// Ordered is a map in key order. It keeps sorted runs of at most chunkMax keys,
// so a change moves one run's tail and a look-up is two binary searches. The
// zero Ordered is empty.
type Ordered[V any] struct {
	chunks []*chunk[V] // none empty, in key order
	free   []*chunk[V]
	n      int
}

type chunk[V any] struct {
	keys []txnproto.Key
	vals []V
}

const chunkMax = 256

// Len returns the number of keys.
func (o *Ordered[V]) Len() int { return o.n }

// seek returns the place of the smallest key >= k: a chunk and an index in it,
// or len(chunks) when there is none.
func (o *Ordered[V]) seek(k txnproto.Key) (c, i int) {
	lo, hi := 0, len(o.chunks)
	for lo < hi {
		mid := (lo + hi) / 2
		keys := o.chunks[mid].keys
		if keys[len(keys)-1] < k {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(o.chunks) {
		return lo, 0
	}
	i, _ = slices.BinarySearch(o.chunks[lo].keys, k)
	return lo, i
}

// Get returns k's value and whether it has one.
func (o *Ordered[V]) Get(k txnproto.Key) (v V, ok bool) {
	if c, i := o.seek(k); c < len(o.chunks) && o.chunks[c].keys[i] == k {
		return o.chunks[c].vals[i], true
	}
	return v, false
}

// Ceil returns the smallest key >= k with its value, and false when there is none.
func (o *Ordered[V]) Ceil(k txnproto.Key) (key txnproto.Key, v V, ok bool) {
	c, i := o.seek(k)
	if c == len(o.chunks) {
		return 0, v, false
	}
	return o.chunks[c].keys[i], o.chunks[c].vals[i], true
}

// Floor returns the largest key <= k with its value, and false when there is none.
func (o *Ordered[V]) Floor(k txnproto.Key) (key txnproto.Key, v V, ok bool) {
	c, i := o.seek(k)
	if c < len(o.chunks) && o.chunks[c].keys[i] == k {
		return k, o.chunks[c].vals[i], true
	}
	if i == 0 {
		if c == 0 {
			return 0, v, false
		}
		c--
		i = len(o.chunks[c].keys)
	}
	return o.chunks[c].keys[i-1], o.chunks[c].vals[i-1], true
}

// Set gives k the value v.
func (o *Ordered[V]) Set(k txnproto.Key, v V) {
	c, i := o.seek(k)
	if c == len(o.chunks) {
		if c == 0 {
			o.insertChunk(0)
		} else {
			c--
			i = len(o.chunks[c].keys)
		}
	}
	c = min(c, len(o.chunks)-1)
	ch := o.chunks[c]
	if i < len(ch.keys) && ch.keys[i] == k {
		ch.vals[i] = v
		return
	}
	o.n++
	if len(ch.keys) == chunkMax {
		ch, i = o.split(c, i)
	}
	ch.keys = slices.Insert(ch.keys, i, k)
	ch.vals = slices.Insert(ch.vals, i, v)
}

// split makes room in the full chunk c and returns where its place i has gone.
// A chunk that is appended to stays full: keys that only grow leave no half-empty runs.
func (o *Ordered[V]) split(c, i int) (*chunk[V], int) {
	from := chunkMax / 2
	if i == chunkMax {
		from = chunkMax
	}
	right := o.insertChunk(c + 1)
	ch := o.chunks[c]
	right.keys = append(right.keys, ch.keys[from:]...)
	right.vals = append(right.vals, ch.vals[from:]...)
	clear(ch.vals[from:])
	ch.keys, ch.vals = ch.keys[:from], ch.vals[:from]
	if i > from || from == chunkMax {
		return right, i - from
	}
	return ch, i
}

func (o *Ordered[V]) insertChunk(at int) *chunk[V] {
	var ch *chunk[V]
	if n := len(o.free); n > 0 {
		ch = o.free[n-1]
		o.free = o.free[:n-1]
	} else {
		ch = &chunk[V]{make([]txnproto.Key, 0, chunkMax), make([]V, 0, chunkMax)}
	}
	o.chunks = slices.Insert(o.chunks, at, ch)
	return ch
}

// Delete removes k and reports whether it was there.
func (o *Ordered[V]) Delete(k txnproto.Key) bool {
	c, i := o.seek(k)
	if c == len(o.chunks) || o.chunks[c].keys[i] != k {
		return false
	}
	o.n--
	ch := o.chunks[c]
	ch.keys = slices.Delete(ch.keys, i, i+1)
	ch.vals = slices.Delete(ch.vals, i, i+1)
	if len(ch.keys) == 0 {
		o.chunks = slices.Delete(o.chunks, c, c+1)
		o.free = append(o.free, ch)
	}
	return true
}
