package nodes

import (
	"bytes"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"interleave/txnproto"
)

// TestVersionsAgainstModel installs versions in any order and collects them; what
// a snapshot at or above the watermark sees is what a plain list of versions says.
func TestVersionsAgainstModel(t *testing.T) {
	place, err := NewPlacement("hash", 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(NewStore(0, place, flat{10}, txnproto.VersionByBegin))
		model := map[txnproto.Key][]txnproto.Put{}
		// Timestamps of a counter are small, those of a clock are large.
		watermark := txnproto.Version(rapid.SampledFrom([]uint64{0, 1<<32 - 20, 1<<63 - 2000}).Draw(t, "from"))
		used := map[txnproto.Version]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "installs") {
			v := txnproto.Version(rapid.Uint64Range(uint64(watermark)+1, uint64(watermark)+30).Draw(t, "version"))
			if used[v] {
				continue
			}
			used[v] = true
			p := txnproto.Put{Key: txnproto.Key(rapid.IntRange(8, 12).Draw(t, "key")), Value: txnproto.Value(v), Deleted: rapid.Bool().Draw(t, "deleted"), Version: v}
			m.store.Install(&p, v)
			model[p.Key] = append(model[p.Key], p)
			if rapid.IntRange(0, 3).Draw(t, "collect") == 0 {
				watermark += txnproto.Version(rapid.IntRange(0, 10).Draw(t, "advance"))
				m.store.Collect(watermark)
			}
		}
		for k := txnproto.Key(8); k <= 12; k++ {
			vs := model[k]
			sort.Slice(vs, func(i, j int) bool { return vs[i].Version < vs[j].Version })
			for at := max(watermark, 1); at < watermark+35; at++ {
				want := m.store.first(k)
				for _, p := range vs {
					if p.Version <= at {
						want = txnproto.Row{Key: k, Value: p.Value, Version: p.Version, Exists: !p.Deleted}
					}
				}
				if got := m.store.At(k, at); got != want {
					t.Fatalf("key %d at %d: %+v, want %+v", k, at, got, want)
				}
			}
		}
		var b bytes.Buffer
		if err := m.Snapshot(&b); err != nil {
			t.Fatal(err)
		}
		o := newMachine(NewStore(0, place, flat{10}, txnproto.VersionByBegin))
		if err := o.Restore(&b); err != nil {
			t.Fatal(err)
		}
		if d := m.differs(o); d != "" {
			t.Fatalf("restored differs: %s", d)
		}
		m.store.Collect(1 << 63)
		if m.store.old != 0 {
			t.Fatalf("%d old versions are left when nothing may be read any more", m.store.old)
		}
	})
}
