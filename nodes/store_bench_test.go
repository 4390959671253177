package nodes

import (
	"fmt"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// rowsOnly is a workload that has rows and nothing else.
type rowsOnly struct {
	txnproto.Workload
	n uint64
}

func (w rowsOnly) InitialKeys() uint64                 { return w.n }
func (w rowsOnly) Initial(txnproto.Key) txnproto.Value { return 0 }

// BenchmarkInstall measures what three replicas pay for five random rows each of
// a million, in a table each and in one, and with asking for the memory of all
// five before: nearly all of it is waiting for memory.
func BenchmarkInstall(b *testing.B) {
	for _, oneTable := range []bool{false, true} {
		for _, ahead := range []bool{false, true} {
			b.Run(fmt.Sprintf("one-table=%v/prefetch=%v", oneTable, ahead), func(b *testing.B) { benchInstall(b, oneTable, ahead) })
		}
	}
}

func benchInstall(b *testing.B, oneTable, ahead bool) {
	const keys, shards, replicas = 1_000_000, 3, 3
	place, err := NewPlacement("hash", shards, keys)
	if err != nil {
		b.Fatal(err)
	}
	table := newRows(replicas, 0, place, keys)
	var stores []*Store
	for r := range replicas {
		if oneTable {
			stores = append(stores, newStoreIn(table, r, 0, place, rowsOnly{n: keys}, txnproto.VersionLatest))
		} else {
			stores = append(stores, NewStore(0, place, rowsOnly{n: keys}, txnproto.VersionLatest))
		}
	}
	for k := txnproto.Key(0); k < keys; k += shards {
		for _, st := range stores {
			st.Install(&txnproto.Put{Key: k}, 0)
		}
	}
	s := rng.Seed(1).Stream("keys")
	puts := make([]txnproto.Put, 5)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		for i := range puts {
			puts[i] = txnproto.Put{Key: txnproto.Key(s.Uint64n(keys/shards) * shards)}
		}
		for _, st := range stores {
			if ahead {
				for i := range puts {
					st.prefetch(puts[i].Key)
				}
			}
			for i := range puts {
				puts[i].Version = st.Install(&puts[i], 0)
			}
		}
	}
}
