package nodes

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// TestOneTable: replicas that keep their rows in one table hold what they would
// hold each in its own, however far one is behind another.
func TestOneTable(t *testing.T) {
	const replicas, keys, steps = 3, 400, 20_000
	for _, v := range []txnproto.Versioning{txnproto.VersionLatest, txnproto.VersionByCommit, txnproto.VersionByBegin} {
		place, err := NewPlacement("hash", 1, keys/2)
		if err != nil {
			t.Fatal(err)
		}
		table := newRows(replicas)
		var shared, own []*Store
		for r := range replicas {
			shared = append(shared, newStoreIn(table, r, 0, place, rowsOnly{n: keys / 2}, v))
			own = append(own, NewStore(0, place, rowsOnly{n: keys / 2}, v))
		}
		s := rng.Seed(3).Stream("rows")
		var log []txnproto.Put
		applied := [replicas]int{}
		for range steps {
			log = append(log, txnproto.Put{Key: txnproto.Key(s.Uint64n(keys)), Value: txnproto.Value(len(log)), Deleted: s.Uint64n(8) == 0})
			r := int(s.Uint64n(replicas))
			for n := int(s.Uint64n(6)); n > 0 && applied[r] < len(log); n-- {
				put := log[applied[r]]
				applied[r]++
				version := txnproto.Version(0)
				if v != txnproto.VersionLatest {
					version = txnproto.Version(applied[r])
				}
				if a, b := shared[r].Install(&put, version), own[r].Install(&put, version); a != b {
					t.Fatalf("replica %d installs key %d as version %d, want %d", r, put.Key, a, b)
				}
			}
			k := txnproto.Key(s.Uint64n(keys))
			if d := cmp.Diff(own[r].Get(k), shared[r].Get(k)); d != "" {
				t.Fatalf("replica %d, key %d:\n%s", r, k, d)
			}
		}
		for r := range replicas {
			if k, ok := own[r].differs(shared[r]); ok {
				t.Errorf("replica %d differs at key %d from one with a table of its own", r, k)
			}
			o := (r + 1) % replicas
			_, want := own[r].differs(own[o])
			if _, got := shared[r].differs(shared[o]); got != want {
				t.Errorf("replicas %d and %d differ: %v, want %v", r, o, got, want)
			}
		}
		if len(shared[0].inKeyOrder()) != shared[0].written || shared[0].written > keys {
			t.Errorf("%d rows written, listed %d", shared[0].written, len(shared[0].inKeyOrder()))
		}
	}
}
