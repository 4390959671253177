package reports

import (
	"cmp"
	"slices"
	"time"

	"interleave/txnproto"
)

const (
	hotKeysTracked = 512 // kept while the run goes on
	hotKeysShown   = 10  // in the result
)

// hotKeys finds the keys with the most conflicts (waits and aborts) in memory
// that does not grow: Space-Saving (Metwally, Agrawal, El Abbadi 2005). When
// all places are taken, a new key takes that of the key with the fewest
// conflicts and inherits their number as the bound of what it may have had
// before. Ties go to the place that was filled first, so that the list depends
// on the sequence of conflicts only.
//
// The places form an implicit binary heap, the fewest conflicts on top.
type hotKeys struct {
	heap  []int32 // places by rank
	rank  []int32 // of each place in heap
	place []hotPlace
	at    map[txnproto.Key]int32 // place of each key; never ranged over
}

type hotPlace struct {
	key           txnproto.Key
	count         uint64 // conflicts, inherited ones included
	inherited     uint64
	waits, aborts uint64
	wait          time.Duration
}

func newHotKeys(places int) *hotKeys {
	return &hotKeys{
		heap:  make([]int32, 0, places),
		rank:  make([]int32, 0, places),
		place: make([]hotPlace, 0, places),
		at:    make(map[txnproto.Key]int32, places),
	}
}

func (h *hotKeys) reset() {
	h.heap, h.rank, h.place = h.heap[:0], h.rank[:0], h.place[:0]
	clear(h.at)
}

func (h *hotKeys) waited(k txnproto.Key, d time.Duration) {
	p := h.conflict(k)
	p.waits++
	p.wait += d
}

func (h *hotKeys) aborted(k txnproto.Key) { h.conflict(k).aborts++ }

// conflict counts one conflict at k and returns its place.
func (h *hotKeys) conflict(k txnproto.Key) *hotPlace {
	i, known := h.at[k]
	switch {
	case known:
	case len(h.place) < cap(h.place):
		i = int32(len(h.place))
		h.place = append(h.place, hotPlace{key: k})
		h.rank = append(h.rank, i)
		h.heap = append(h.heap, i)
		h.at[k] = i
		h.up(len(h.heap) - 1)
	default:
		i = h.heap[0]
		p := &h.place[i]
		delete(h.at, p.key)
		*p = hotPlace{key: k, count: p.count, inherited: p.count}
		h.at[k] = i
	}
	p := &h.place[i]
	p.count++
	h.down(int(h.rank[i]))
	return p
}

func (h *hotKeys) less(a, b int32) bool {
	pa, pb := &h.place[a], &h.place[b]
	if pa.count != pb.count {
		return pa.count < pb.count
	}
	return a < b
}

func (h *hotKeys) swap(i, j int) {
	h.heap[i], h.heap[j] = h.heap[j], h.heap[i]
	h.rank[h.heap[i]], h.rank[h.heap[j]] = int32(i), int32(j)
}

func (h *hotKeys) up(i int) {
	for i > 0 && h.less(h.heap[i], h.heap[(i-1)/2]) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (h *hotKeys) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h.heap) {
			return
		}
		if c+1 < len(h.heap) && h.less(h.heap[c+1], h.heap[c]) {
			c++
		}
		if !h.less(h.heap[c], h.heap[i]) {
			return
		}
		h.swap(i, c)
		i = c
	}
}

// hottest returns the keys with the most conflicts that were surely theirs.
func (h *hotKeys) hottest(n int) []HotKey {
	all := slices.Clone(h.place)
	slices.SortFunc(all, func(a, b hotPlace) int {
		return cmp.Or(cmp.Compare(b.waits+b.aborts, a.waits+a.aborts), cmp.Compare(a.key, b.key))
	})
	out := make([]HotKey, 0, n)
	for _, p := range all[:min(n, len(all))] {
		out = append(out, HotKey{
			Key: uint64(p.key), Waits: p.waits, WaitNS: int64(p.wait), Aborts: p.aborts, MissedAtMost: p.inherited,
		})
	}
	return out
}
