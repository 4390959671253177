package history

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestKeyTables compares the three forms with a sorted list.
func TestKeyTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := Key(rapid.SampledFrom([]uint64{0, 1, 63, 1 << 40, 1<<64 - 5000}).Draw(t, "base"))
		span := rapid.Uint64Range(1, 4000).Draw(t, "span")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var keys []Key
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			keys = append(keys, base+Key(rng.Uint64N(span)))
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)
		lo, hi := keys[0], keys[len(keys)-1]

		var interval, marked, listed keyTable
		if !interval.tryInterval(lo, hi, 4000) || !marked.tryBits(lo, hi, 4000) {
			t.Fatalf("an interval of %d keys is not taken", hi-lo)
		}
		for _, k := range keys {
			marked.mark(k)
		}
		marked.marked()
		listed.list(slices.Clone(keys))
		if marked.n != len(keys) || listed.n != len(keys) || interval.n != int(hi-lo)+1 {
			t.Fatalf("sizes %d, %d, %d", marked.n, listed.n, interval.n)
		}
		probes := append(slices.Clone(keys), 0, lo-1, hi+1, ^Key(0))
		for range 100 {
			probes = append(probes, base+Key(rng.Uint64N(span)))
		}
		for _, k := range probes {
			at, has := slices.BinarySearch(keys, k)
			for _, table := range []*keyTable{&marked, &listed} {
				if id, ok := table.id(k); ok != has || ok && (int(id) != at || table.key(id) != k) {
					t.Fatalf("key %d: number %d, %v; want %d, %v", k, id, ok, at, has)
				}
				if got := table.lower(k); int(got) != at {
					t.Fatalf("lower(%d) is %d, want %d", k, got, at)
				}
			}
			if id, ok := interval.id(k); ok != (lo <= k && k <= hi) || ok && interval.key(id) != k {
				t.Fatalf("key %d in the interval: %d, %v", k, id, ok)
			}
			if got, want := interval.lower(k), min(max(k, lo)-lo, hi-lo+1); Key(got) != want {
				t.Fatalf("lower(%d) in the interval is %d, want %d", k, got, want)
			}
		}
	})
}

func TestKeyTablesRefuseWideIntervals(t *testing.T) {
	var k keyTable
	if k.tryInterval(0, 1<<20, 1000) || k.tryBits(0, 1<<40, 1000) {
		t.Error("an interval far wider than the writes is taken")
	}
}
