package nodes

import (
	"fmt"
	"math/bits"

	"interleave/txnproto"
)

// Placement says which shard holds a key.
type Placement interface {
	// ShardOf is the shard of k.
	ShardOf(k txnproto.Key) txnproto.ShardID
	// Covers reports whether shard may hold a key of [lo, hi).
	Covers(shard txnproto.ShardID, lo, hi txnproto.Key) bool
	// Next is the smallest key >= k that belongs to shard, and false when there is none.
	Next(shard txnproto.ShardID, k txnproto.Key) (txnproto.Key, bool)
	// Initial is which of the initial keys, those below keys, are in shard: first,
	// first+step, …, n of them.
	Initial(shard txnproto.ShardID, keys txnproto.Key) (first, step txnproto.Key, n uint64)
}

// PlacementNames are the placements a spec can name.
var PlacementNames = []string{"hash", "range"}

// NewPlacement returns the placement named name for the given number of shards
// and initial keys.
func NewPlacement(name string, shards int, keys uint64) (Placement, error) {
	switch name {
	case "hash":
		return striped{uint64(shards)}, nil
	case "range":
		per := (keys + uint64(shards) - 1) / uint64(shards)
		return ranged{uint64(shards), max(per, 1)}, nil
	default:
		return nil, fmt.Errorf("placement: unknown placement %q: want hash or range", name)
	}
}

// striped hashes keys by their remainder: key k is in shard k mod n. Neighbours, and
// with them the hottest keys of a ranked zipfian, stand in different shards.
type striped struct{ n uint64 }

func (p striped) ShardOf(k txnproto.Key) txnproto.ShardID {
	return txnproto.ShardID(uint64(k) % p.n)
}

func (p striped) Covers(shard txnproto.ShardID, lo, hi txnproto.Key) bool {
	k, ok := p.Next(shard, lo)
	return ok && k < hi
}

func (p striped) Next(shard txnproto.ShardID, k txnproto.Key) (txnproto.Key, bool) {
	at := uint64(k) % p.n
	d := (uint64(shard) + p.n - at) % p.n
	next, carry := bits.Add64(uint64(k), d, 0)
	return txnproto.Key(next), carry == 0
}

func (p striped) Initial(shard txnproto.ShardID, keys txnproto.Key) (first, step txnproto.Key, n uint64) {
	first, step = txnproto.Key(shard), txnproto.Key(p.n)
	if keys > first {
		n = (uint64(keys-first)-1)/p.n + 1
	}
	return first, step, n
}

// ranged gives each shard one interval of the initial keys; keys inserted after
// the last initial one belong to the last shard.
type ranged struct{ n, per uint64 }

func (p ranged) ShardOf(k txnproto.Key) txnproto.ShardID {
	return txnproto.ShardID(min(uint64(k)/p.per, p.n-1))
}

func (p ranged) Covers(shard txnproto.ShardID, lo, hi txnproto.Key) bool {
	k, ok := p.Next(shard, lo)
	return ok && k < hi
}

func (p ranged) Next(shard txnproto.ShardID, k txnproto.Key) (txnproto.Key, bool) {
	at := p.ShardOf(k)
	if at > shard {
		return 0, false
	}
	return max(k, txnproto.Key(uint64(shard)*p.per)), true
}

func (p ranged) Initial(shard txnproto.ShardID, keys txnproto.Key) (first, step txnproto.Key, n uint64) {
	first, step = txnproto.Key(uint64(shard)*p.per), 1
	if keys > first {
		n = uint64(keys - first)
		if uint64(shard) < p.n-1 {
			n = min(n, p.per)
		}
	}
	return first, step, n
}
