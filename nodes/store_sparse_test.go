package nodes

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"interleave/txnproto"
)

// holes is a base in which odd keys hold no row.
type holes struct{ txnproto.Workload }

func (holes) InitialKeys() uint64                   { return 6 }
func (holes) Initial(k txnproto.Key) txnproto.Value { return txnproto.Value(k) }
func (holes) Absent(k txnproto.Key) bool            { return k%2 == 1 }

// TestStoreWithHoles: an absent initial row is not there until it is inserted, and
// is gone again when it has been deleted.
func TestStoreWithHoles(t *testing.T) {
	place, err := NewPlacement("range", 1, 6)
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(0, place, holes{}, txnproto.VersionLatest)
	keys := func() (out []txnproto.Key) {
		for k, ok := s.NextKey(0); ok; k, ok = s.NextKey(k + 1) {
			out = append(out, k)
		}
		var scanned []txnproto.Key
		for _, r := range s.Scan(0, 6, 0, nil) {
			if r.Exists {
				scanned = append(scanned, r.Key)
			}
		}
		if d := cmp.Diff(out, scanned); d != "" {
			t.Error(d)
		}
		return out
	}
	if d := cmp.Diff([]txnproto.Key{0, 2, 4}, keys()); d != "" {
		t.Error(d)
	}
	s.Install(&txnproto.Put{Key: 3, Value: 9}, 0)
	s.Install(&txnproto.Put{Key: 4, Deleted: true}, 0)
	if d := cmp.Diff([]txnproto.Key{0, 2, 3}, keys()); d != "" {
		t.Error(d)
	}
	if s.Get(1).Exists || !s.Get(3).Exists || s.Get(4).Exists {
		t.Error("the rows of keys 1, 3 and 4 are wrong")
	}
	s.Install(&txnproto.Put{Key: 3, Deleted: true}, 0)
	if d := cmp.Diff([]txnproto.Key{0, 2}, keys()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]txnproto.Key{4}, s.appendDeleted(nil)); d != "" {
		t.Errorf("deleted: key 3 held no row at the start, and has none again:\n%s", d)
	}
}
