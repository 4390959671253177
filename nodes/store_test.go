package nodes

import (
	"fmt"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// flat is a workload of rows only: key k holds 10k at the start.
type flat struct{ keys uint64 }

func (flat) Classes() []string                     { return nil }
func (f flat) InitialKeys() uint64                 { return f.keys }
func (flat) Initial(k txnproto.Key) txnproto.Value { return txnproto.Value(10 * k) }
func (flat) ValueBytes() int                       { return 8 }
func (flat) Check(txnproto.View) error             { return nil }
func (flat) Generator(rng.Seed, string, txnproto.ClientID) txnproto.Generator {
	panic("flat has no programs")
}

// plainStore is the model that a Store is compared with: every row in a map.
type plainStore struct {
	rows  map[txnproto.Key]txnproto.Row // all that ever were
	order []txnproto.Key
}

func newPlainStore(shard txnproto.ShardID, place Placement, f flat) *plainStore {
	m := &plainStore{rows: map[txnproto.Key]txnproto.Row{}}
	for k := range txnproto.Key(f.keys) {
		if place.ShardOf(k) == shard {
			m.put(txnproto.Row{Key: k, Value: f.Initial(k), Exists: true})
		}
	}
	return m
}

func (m *plainStore) put(r txnproto.Row) {
	if _, ok := m.rows[r.Key]; !ok {
		m.order = append(m.order, r.Key)
		sort.Slice(m.order, func(i, j int) bool { return m.order[i] < m.order[j] })
	}
	m.rows[r.Key] = r
}

func (m *plainStore) install(p txnproto.Put) txnproto.Version {
	v := m.rows[p.Key].Version + 1
	r := txnproto.Row{Key: p.Key, Value: p.Value, Version: v, Exists: !p.Deleted}
	m.put(r)
	return v
}

func (m *plainStore) get(k txnproto.Key) txnproto.Row {
	if r, ok := m.rows[k]; ok {
		return r
	}
	return txnproto.Row{Key: k}
}

func (m *plainStore) next(k txnproto.Key) (txnproto.Key, bool) {
	for _, o := range m.order {
		if o >= k && m.rows[o].Exists {
			return o, true
		}
	}
	return 0, false
}

func (m *plainStore) scan(lo, hi txnproto.Key) string {
	s := ""
	for _, o := range m.order {
		if o >= lo && o < hi {
			s += fmt.Sprintf("%+v ", m.rows[o])
		}
	}
	return s
}

// TestStoreAgainstMap drives a store and a map with the same random writes and
// compares all that can be asked, for both placements, with keys beyond the
// initial ones and with tombstones.
func TestStoreAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := flat{rapid.Uint64Range(0, 40).Draw(t, "initial keys")}
		shards := rapid.IntRange(1, 4).Draw(t, "shards")
		shard := txnproto.ShardID(rapid.IntRange(0, shards-1).Draw(t, "shard"))
		place, err := NewPlacement(rapid.SampledFrom(PlacementNames).Draw(t, "placement"), shards, f.keys)
		if err != nil {
			t.Fatal(err)
		}
		s, m := NewStore(shard, place, f, txnproto.VersionLatest), newPlainStore(shard, place, f)
		key := rapid.Custom(func(t *rapid.T) txnproto.Key { return txnproto.Key(rapid.Uint64Range(0, 70).Draw(t, "k")) })
		t.Repeat(map[string]func(*rapid.T){
			"install": func(t *rapid.T) {
				k, ok := place.Next(shard, key.Draw(t, "key"))
				if !ok {
					t.Skip("no such key in the shard")
				}
				p := txnproto.Put{Key: k, Value: txnproto.Value(rapid.Int64Range(-9, 9).Draw(t, "v")), Deleted: rapid.Bool().Draw(t, "deleted")}
				if p.Deleted {
					p.Value = 0
				}
				if got, want := s.Install(&p, 0), m.install(p); got != want {
					t.Fatalf("Install(%+v) = %d, want %d", p, got, want)
				}
			},
			"scan": func(t *rapid.T) {
				lo, hi := key.Draw(t, "lo"), key.Draw(t, "hi")
				got := ""
				for _, r := range s.Scan(lo, hi, 0, nil) {
					got += fmt.Sprintf("%+v ", r)
				}
				if want := m.scan(lo, hi); got != want {
					t.Fatalf("Scan(%d, %d)\n got %s\nwant %s", lo, hi, got, want)
				}
			},
			"": func(t *rapid.T) {
				for k := range txnproto.Key(75) {
					if place.ShardOf(k) == shard {
						if got, want := s.Get(k), m.get(k); got != want {
							t.Fatalf("Get(%d) = %+v, want %+v", k, got, want)
						} else if s.Present(k) != want.Exists {
							t.Fatalf("Present(%d) = %v, want %v", k, s.Present(k), want.Exists)
						}
					}
					got, ok := s.NextKey(k)
					want, there := m.next(k)
					if ok != there || ok && got != want {
						t.Fatalf("NextKey(%d) = %d %v, want %d %v", k, got, ok, want, there)
					}
				}
			},
		})
	})
}

func TestStoreGrows(t *testing.T) {
	place, err := NewPlacement("range", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(0, place, flat{1 << 40}, txnproto.VersionLatest)
	const n = 20_000
	for round := range 2 {
		for i := range n {
			k := txnproto.Key(i * 7919)
			if v := s.Install(&txnproto.Put{Key: k, Value: txnproto.Value(i)}, 0); v != txnproto.Version(round+1) {
				t.Fatalf("round %d: key %d has version %d", round, k, v)
			}
		}
	}
	for i := range n {
		if r := s.Get(txnproto.Key(i * 7919)); r.Value != txnproto.Value(i) || r.Version != 2 {
			t.Fatalf("key %d: %+v", i*7919, r)
		}
	}
	if w := s.inKeyOrder(); len(w) != n {
		t.Errorf("%d rows are written, want %d", len(w), n)
	}
	if slots := len(s.rows.tags); slots > 4*n {
		t.Errorf("%d slots for %d rows: memory is to follow the rows written", slots, n)
	}
	// A million of millions of declared rows take nothing until they are written.
	if r := s.Get(1 << 39); !r.Exists || r.Version != 0 {
		t.Errorf("an initial row: %+v", r)
	}
}

func TestPlacementIsAPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.Uint64Range(0, 60).Draw(t, "keys")
		shards := rapid.IntRange(1, 5).Draw(t, "shards")
		place, err := NewPlacement(rapid.SampledFrom(PlacementNames).Draw(t, "placement"), shards, keys)
		if err != nil {
			t.Fatal(err)
		}
		lo := txnproto.Key(rapid.Uint64Range(0, 80).Draw(t, "lo"))
		hi := lo + txnproto.Key(rapid.Uint64Range(0, 20).Draw(t, "width"))
		for s := range txnproto.ShardID(shards) {
			var first txnproto.Key
			found := false
			for k := lo; k < hi && !found; k++ {
				if place.ShardOf(k) == s {
					first, found = k, true
				}
			}
			if got := place.Covers(s, lo, hi); got != found {
				t.Fatalf("Covers(%v, %d, %d) = %v, want %v", s, lo, hi, got, found)
			}
			if got, ok := place.Next(s, lo); found && (!ok || got != first) {
				t.Fatalf("Next(%v, %d) = %d %v, want %d", s, lo, got, ok, first)
			}
			var own, initial []txnproto.Key
			for k := range hi {
				if place.ShardOf(k) == s {
					own = append(own, k)
				}
			}
			at, step, n := place.Initial(s, hi)
			for range n {
				initial = append(initial, at)
				at += step
			}
			if d := cmp.Diff(own, initial); d != "" {
				t.Fatalf("Initial(%v, %d):\n%s", s, hi, d)
			}
		}
	})
}

func TestUnknownPlacement(t *testing.T) {
	if _, err := NewPlacement("round", 2, 10); err == nil {
		t.Error("no error for an unknown placement")
	}
}
