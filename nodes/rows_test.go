package nodes

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// TestOneTable: replicas of several shards that keep their rows in one table hold what
// they would hold each in its own, however far one is behind another, whether their
// slots go by number, by hash, or some by each.
func TestOneTable(t *testing.T) {
	for _, v := range []txnproto.Versioning{txnproto.VersionLatest, txnproto.VersionByCommit, txnproto.VersionByBegin} {
		for _, direct := range []txnproto.Key{0, tableKeys / 2, tableKeys} {
			t.Run(fmt.Sprintf("%v/direct=%d", v, direct), func(t *testing.T) { testOneTable(t, v, direct) })
		}
	}
}

const tableKeys = 400

func testOneTable(t *testing.T, v txnproto.Versioning, direct txnproto.Key) {
	const replicas, shards, steps = 3, 2, 20_000
	place, err := NewPlacement("hash", shards, tableKeys/2)
	if err != nil {
		t.Fatal(err)
	}
	table := newRows(replicas, direct)
	var shared, own [shards][replicas]*Store
	var log [shards][]txnproto.Put
	var applied [shards][replicas]int
	for i := range shards {
		for r := range replicas {
			shared[i][r] = newStoreIn(table, r, txnproto.ShardID(i), place, rowsOnly{n: tableKeys / 2}, v)
			own[i][r] = NewStore(txnproto.ShardID(i), place, rowsOnly{n: tableKeys / 2}, v)
		}
	}
	install := func(i, r int) {
		put := log[i][applied[i][r]]
		applied[i][r]++
		version := txnproto.Version(0)
		if v != txnproto.VersionLatest {
			version = txnproto.Version(applied[i][r])
		}
		if a, b := shared[i][r].Install(&put, version), own[i][r].Install(&put, version); a != b {
			t.Fatalf("shard %d, replica %d installs key %d as version %d, want %d", i, r, put.Key, a, b)
		}
	}
	compare := func() {
		differ := false
		for i := range shards {
			for r := range replicas {
				if k, ok := own[i][r].differs(shared[i][r]); ok {
					t.Fatalf("shard %d, replica %d differs at key %d from one with a table of its own", i, r, k)
				}
				o := (r + 1) % replicas
				_, want := own[i][r].differs(own[i][o])
				if _, got := shared[i][r].differs(shared[i][o]); got != want {
					t.Fatalf("shard %d: replicas %d and %d differ: %v, want %v", i, r, o, got, want)
				}
				differ = differ || want
				if d := cmp.Diff(keysOf(own[i][r]), keysOf(shared[i][r])); d != "" {
					t.Fatalf("shard %d, replica %d: rows written:\n%s", i, r, d)
				}
			}
		}
		if want := !differ && v == txnproto.VersionLatest; table.even() != want {
			t.Fatalf("the replicas are even: %v, want %v", table.even(), want)
		}
	}
	s := rng.Seed(3).Stream("rows")
	for step := range steps {
		k := txnproto.Key(s.Uint64n(tableKeys))
		i := int(place.ShardOf(k))
		log[i] = append(log[i], txnproto.Put{Key: k, Value: txnproto.Value(step), Deleted: s.Uint64n(8) == 0})
		r := int(s.Uint64n(replicas))
		for n := int(s.Uint64n(6)); n > 0 && applied[i][r] < len(log[i]); n-- {
			install(i, r)
		}
		k = txnproto.Key(s.Uint64n(tableKeys))
		i = int(place.ShardOf(k))
		if d := cmp.Diff(own[i][r].Get(k), shared[i][r].Get(k)); d != "" {
			t.Fatalf("replica %d, key %d:\n%s", r, k, d)
		}
		if step == steps/2 {
			compare()
		}
	}
	compare()
	for i := range shards { // all catch up
		for r := range replicas {
			for applied[i][r] < len(log[i]) {
				install(i, r)
			}
		}
	}
	compare()
}

func keysOf(s *Store) []txnproto.Key {
	var keys []txnproto.Key
	for _, r := range s.inKeyOrder() {
		keys = append(keys, r.key)
	}
	return keys
}
