package nodes

import (
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

// BenchmarkInstall measures what nine replicas pay for five random rows each of
// a million: nearly all of it is waiting for memory.
func BenchmarkInstall(b *testing.B) {
	const keys, shards, replicas = 1_000_000, 3, 3
	place, _ := NewPlacement("hash", shards, keys)
	var stores []*Store
	for s := range txnproto.ShardID(shards) {
		for range replicas {
			stores = append(stores, NewStore(s, place, rowsOnly{n: keys}, txnproto.VersionLatest))
		}
	}
	for k := range txnproto.Key(keys) {
		for _, st := range stores {
			if st.shard == place.ShardOf(k) {
				st.Install(&txnproto.Put{Key: k}, 0)
			}
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
		for _, st := range stores[:replicas] {
			for i := range puts {
				puts[i].Version = st.Install(&puts[i], 0)
			}
		}
	}
}
