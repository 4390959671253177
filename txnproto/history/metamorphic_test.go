package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSerialHistoriesPass checks that what ran serially, recorded in any order, is
// never flagged, whole or in windows.
func TestSerialHistoriesPass(t *testing.T) {
	for seed := range uint64(60) {
		g := generator{rand.New(rand.NewPCG(seed, 0))}
		h := g.serial(300, 1+g.IntN(40))
		for _, window := range []int64{0, 500, 3000} {
			opt := h.options(StrictSerializable)
			opt.WindowBytes = window
			r := NewRecorder(opt)
			g.shuffled(h, r)
			if res := r.Check(); !res.OK || len(res.Anomalies) > 0 || res.Exact != (window == 0) {
				t.Fatalf("seed %d, window %d: %v", seed, window, res)
			}
		}
	}
}

// TestSnapshotHistoriesKeepSnapshot runs transactions on snapshots, first committer
// wins: snapshot isolation must be kept, and in many histories not more.
func TestSnapshotHistoriesKeepSnapshot(t *testing.T) {
	skews := 0
	for seed := range uint64(200) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		h := g.onSnapshots(100, 2+g.IntN(30))
		r := NewRecorder(h.options(Snapshot))
		g.shuffled(h, r)
		res := r.Check()
		if !res.OK {
			t.Fatalf("seed %d: %v", seed, res)
		}
		if !res.Keeps(Serializable) {
			skews++
		}
		if err := witnessed(res); err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, res)
		}
	}
	if skews < 50 {
		t.Errorf("only %d of 200 histories show what snapshots allow", skews)
	}
}

// onSnapshots draws transactions that overlap, each on the state at its start.
func (g generator) onSnapshots(txns, keys int) *testHistory {
	h := &testHistory{base: map[Key]bool{}}
	state := make([]Version, keys)
	type running struct {
		t    testTxn
		snap []Version
		keys []int
	}
	var open []running
	for next := 1; next <= txns || len(open) > 0; {
		if next <= txns && (len(open) == 0 || len(open) < 6 && g.IntN(2) == 0) {
			x := running{t: testTxn{id: TxnID(next), begin: Time(next), end: Time(2 * txns), installs: -1}, snap: slices.Clone(state)}
			for range 1 + g.IntN(3) {
				k := g.IntN(keys)
				x.t.reads = append(x.t.reads, Read{Key(k), x.snap[k]})
			}
			if g.IntN(4) == 0 {
				s := Scan{Lo: Key(g.IntN(keys)), Hi: Key(keys), Shard: AllShards}
				for k := s.Lo; k < s.Hi; k++ {
					if x.snap[k] != 0 {
						s.Seen = append(s.Seen, Read{k, x.snap[k]})
					}
				}
				x.t.scans = append(x.t.scans, s)
			}
			for range g.IntN(3) {
				if k := g.IntN(keys); !slices.Contains(x.keys, k) {
					x.keys = append(x.keys, k)
				}
			}
			open = append(open, x)
			next++
			continue
		}
		i := g.IntN(len(open))
		x := open[i]
		open = slices.Delete(open, i, i+1)
		if slices.ContainsFunc(x.keys, func(k int) bool { return state[k] != x.snap[k] }) {
			continue // first committer wins
		}
		for _, k := range x.keys {
			state[k]++
			x.t.writes = append(x.t.writes, Write{Key: Key(k), Version: state[k], Tombstone: g.IntN(4) == 0})
		}
		x.t.committed = true
		h.txns = append(h.txns, x.t)
	}
	return h
}

// disguise returns the same history under other names: ids far apart and out of
// order, keys far apart, versions far apart.
func (g generator) disguise(h *testHistory) *testHistory {
	const spread = 1 << 40
	apart := []Key{1, 50, spread}[g.IntN(3)] // for each form of the key table
	key := func(k Key) Key { return k*apart + 7 }
	version := func(v Version) Version { return v * (spread + 1) }
	reads := func(rs []Read) (out []Read) {
		for _, r := range rs {
			out = append(out, Read{key(r.Key), version(r.Version)})
		}
		return out
	}
	perm := g.Perm(len(h.txns))
	d := &testHistory{base: map[Key]bool{}}
	for k, ok := range h.base {
		d.base[key(k)] = ok
	}
	for i, t := range h.txns {
		id := TxnID(perm[i]+1) * spread
		x := t
		x.id, x.reads, x.scans, x.writes = id, reads(t.reads), nil, nil
		for _, s := range t.scans {
			x.scans = append(x.scans, Scan{Lo: key(s.Lo), Hi: key(s.Hi), Shard: s.Shard, Seen: reads(s.Seen)})
		}
		for _, w := range t.writes {
			x.writes = append(x.writes, Write{Key: key(w.Key), Version: version(w.Version), Tombstone: w.Tombstone})
		}
		d.txns = append(d.txns, x)
	}
	return d
}

// TestNamesAndOrderDoNotMatter checks histories twice: as drawn, and with other ids,
// keys, versions and another order of records. The verdicts must be equal.
func TestNamesAndOrderDoNotMatter(t *testing.T) {
	broken := 0
	for seed := range uint64(150) {
		g := generator{rand.New(rand.NewPCG(seed, 2))}
		var h *testHistory
		switch keys := 3 + g.IntN(60); g.IntN(3) {
		case 0:
			h = g.onSnapshots(100, keys)
		case 1:
			h = g.serial(100, keys)
			h.spoil(g, 1+g.IntN(3))
		default:
			h = g.serial(40, keys)
			g.mutate(h)
		}
		a, b := verdictOf(g, h), verdictOf(g, g.disguise(h))
		if a != b {
			t.Fatalf("seed %d: as drawn:\n%s\ndisguised:\n%s\n%v", seed, a, b, h)
		}
		if a != verdictOf(g, &testHistory{}) {
			broken++
		}
	}
	if broken < 75 {
		t.Errorf("only %d of 150 histories break a level", broken)
	}
}

// spoil has n reads see the version before theirs.
func (h *testHistory) spoil(g generator, n int) {
	for range 1000 {
		x := &h.txns[g.IntN(len(h.txns))]
		if len(x.reads) == 0 || n == 0 {
			continue
		}
		r := &x.reads[g.IntN(len(x.reads))]
		prev := Version(0)
		for i := range h.txns {
			for _, w := range h.txns[i].writes {
				if w.Key == r.Key && w.Version < r.Version {
					prev = max(prev, w.Version)
				}
			}
		}
		if prev > 0 {
			r.Version = prev
			n--
		}
	}
}

// verdictOf records the history in a drawn order and describes the levels kept.
func verdictOf(g generator, h *testHistory) string {
	r := NewRecorder(h.options(StrictSerializable))
	g.shuffled(h, r)
	res := r.Check()
	s := ""
	if err := witnessed(res); err != nil {
		s = err.Error()
	}
	for _, l := range Levels() {
		s += fmt.Sprintf("%v: %v\n", l, res.Keeps(l))
	}
	return s
}
