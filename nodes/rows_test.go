package nodes

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// TestOneTable: replicas that keep their rows in one table hold what they would hold
// each in its own, and what a plain map holds, however far one is behind another, while
// their slots go by hash and, once some have been written, by number.
func TestOneTable(t *testing.T) {
	for _, placement := range PlacementNames {
		for _, v := range []txnproto.Versioning{txnproto.VersionLatest, txnproto.VersionByCommit, txnproto.VersionByBegin} {
			t.Run(fmt.Sprintf("%s/%v", placement, v), func(t *testing.T) { testOneTable(t, placement, v) })
		}
	}
}

func testOneTable(t *testing.T, placement string, v txnproto.Versioning) {
	const replicas, shards, initial, keys, steps = 3, 3, 1000, 1400, 12_000
	place, err := NewPlacement(placement, shards, initial)
	if err != nil {
		t.Fatal(err)
	}
	for shard := range txnproto.ShardID(shards) {
		table := newRows(replicas, shard, place, initial)
		var shared, own [replicas]*Store
		var rows [replicas]map[txnproto.Key]txnproto.Value // what is not deleted
		for r := range replicas {
			shared[r] = newStoreIn(table, r, shard, place, rowsOnly{n: initial}, v)
			own[r] = newStoreIn(newRows(1, shard, place, 0), 0, shard, place, rowsOnly{n: initial}, v) // by hash alone
			rows[r] = map[txnproto.Key]txnproto.Value{}
		}
		var log []txnproto.Put
		var applied [replicas]int
		install := func(r int) {
			put := log[applied[r]]
			applied[r]++
			version := txnproto.Version(0)
			if v != txnproto.VersionLatest {
				version = txnproto.Version(applied[r])
			}
			if a, b := shared[r].Install(&put, version), own[r].Install(&put, version); a != b {
				t.Fatalf("shard %d, replica %d installs key %d as version %d, want %d", shard, r, put.Key, a, b)
			}
			rows[r][put.Key] = put.Value
			if put.Deleted {
				delete(rows[r], put.Key)
			}
		}
		compare := func() {
			differ := false
			for r := range replicas {
				if k, ok := own[r].differs(shared[r]); ok {
					t.Fatalf("shard %d, replica %d differs at key %d from one with a table of its own", shard, r, k)
				}
				o := (r + 1) % replicas
				_, want := own[r].differs(own[o])
				if _, got := shared[r].differs(shared[o]); got != want {
					t.Fatalf("shard %d: replicas %d and %d differ: %v, want %v", shard, r, o, got, want)
				}
				differ = differ || want
				if d := cmp.Diff(keysOf(own[r]), keysOf(shared[r])); d != "" {
					t.Fatalf("shard %d, replica %d: rows written:\n%s", shard, r, d)
				}
			}
			if want := !differ && v == txnproto.VersionLatest; table.even() != want {
				t.Fatalf("shard %d: the replicas are even: %v, want %v", shard, table.even(), want)
			}
		}
		s := rng.Seed(3).Stream("rows")
		byHash := 0 // steps before rows had slots by number
		for step := range steps {
			k, ok := place.Next(shard, txnproto.Key(s.Uint64n(keys)))
			if !ok {
				k, _ = place.Next(shard, 0)
			}
			log = append(log, txnproto.Put{Key: k, Value: txnproto.Value(step), Deleted: s.Uint64n(8) == 0})
			r := int(s.Uint64n(replicas))
			for n := int(s.Uint64n(6)); n > 0 && applied[r] < len(log); n-- {
				install(r)
			}
			if len(table.direct) == 0 {
				byHash++
			}
			k = log[s.Uint64n(uint64(len(log)))].Key
			got := shared[r].Get(k)
			if d := cmp.Diff(own[r].Get(k), got); d != "" {
				t.Fatalf("shard %d, replica %d, key %d:\n%s", shard, r, k, d)
			}
			if want, there := rows[r][k]; there && (!got.Exists || got.Value != want) {
				t.Fatalf("shard %d, replica %d, key %d: %+v, want %d", shard, r, k, got, want)
			}
			k = txnproto.Key(s.Uint64n(keys)) // maybe of another shard
			shared[r].prefetch(k)
			if d := cmp.Diff(own[r].Get(k), shared[r].Get(k)); d != "" {
				t.Fatalf("shard %d, replica %d, key %d:\n%s", shard, r, k, d)
			}
			if step%1000 == 50 {
				compare()
			}
		}
		if byHash < 5 || byHash > steps/2 {
			t.Errorf("shard %d: rows got slots by number after %d steps: the test is to see both", shard, byHash)
		}
		compare()
		for r := range replicas { // all catch up
			for applied[r] < len(log) {
				install(r)
			}
		}
		compare()
	}
}

func keysOf(s *Store) []txnproto.Key {
	var keys []txnproto.Key
	for _, r := range s.inKeyOrder() {
		keys = append(keys, r.key)
	}
	return keys
}
