package txnproto

import (
	"cmp"
	"fmt"
	"slices"
)

// Place is a transaction's position in the global order of a protocol that sequences:
// by epoch, then by sequencer, then by its number in the sequencer's batch. Places
// compare as numbers; 0 is none.
type Place uint64

const (
	placeIndexBits     = 24
	placeSequencerBits = 10
)

// MaxEpoch is the highest epoch that a Place can have.
const MaxEpoch = 1<<(64-placeIndexBits-placeSequencerBits) - 1

// NewPlace returns the place of the index-th transaction, from 0, of a sequencer's batch
// of an epoch, from 1.
func NewPlace(epoch uint64, sequencer ShardID, index int) Place {
	if epoch == 0 || epoch > MaxEpoch ||
		sequencer < 0 || sequencer >= 1<<placeSequencerBits || index < 0 || index >= 1<<placeIndexBits {
		panic(fmt.Sprintf("txnproto: no place for transaction %d of %v in epoch %d", index, sequencer, epoch))
	}
	return Place(epoch<<(placeIndexBits+placeSequencerBits) | uint64(sequencer)<<placeIndexBits | uint64(index))
}

// Epoch is the epoch, from 1.
func (p Place) Epoch() uint64 { return uint64(p) >> (placeIndexBits + placeSequencerBits) }

// Sequencer is the shard whose sequencer gave the place.
func (p Place) Sequencer() ShardID {
	return ShardID(uint64(p) >> placeIndexBits & (1<<placeSequencerBits - 1))
}

// Index is the number in the batch, from 0.
func (p Place) Index() int { return int(uint64(p) & (1<<placeIndexBits - 1)) }

// String returns the place for people: e3.s1.2 is the third transaction of s1's batch
// of epoch 3.
func (p Place) String() string {
	return fmt.Sprintf("e%d.%v.%d", p.Epoch(), p.Sequencer(), p.Index())
}

// Claim is a lock that a transaction will want at a shard, known before it is
// sequenced: of the row Key or, when End is not 0, of the shard's rows of [Key, End),
// present or not, which is always shared.
type Claim struct {
	Key, End  Key
	Shard     ShardID
	Rows      int32 // of a range: how many rows the reconnaissance found in it
	Exclusive bool
}

// Ranged reports whether c claims a range.
func (c *Claim) Ranged() bool { return c.End != 0 }

// Claims appends to dst[:0] what a program's declared operations need, in the order in
// which they are declared; a range once for each shard that may hold keys of it. Use
// SortClaims when the reconnaissance has added the rows it found.
func Claims(dst []Claim, declared []Op, at Sharding) []Claim {
	d := dst[:0]
	for i := range declared {
		op := &declared[i]
		switch op.Kind {
		case Read:
			d = append(d, Claim{Key: op.Key, Shard: at.ShardOf(op.Key)})
		case ReadForUpdate, Write, Modify, Insert, Delete:
			d = append(d, Claim{Key: op.Key, Shard: at.ShardOf(op.Key), Exclusive: true})
		case Scan:
			for sh := ShardID(0); int(sh) < at.Shards(); sh++ {
				if op.Key < op.End && at.Covers(sh, op.Key, op.End) {
					d = append(d, Claim{Key: op.Key, End: op.End, Shard: sh})
				}
			}
		case RollbackTo: // asks for nothing
		case LockShared, LockExclusive, Sequence, Reconnoitre, NumOpKinds:
			panic("txnproto: not an operation to declare: " + op.Kind.String())
		default:
			panic("txnproto: unknown operation")
		}
	}
	return d
}

// SortClaims puts claims in order of shard and key, a row before ranges that begin
// with it, and keeps the stronger of two for one row.
func SortClaims(claims []Claim) []Claim {
	slices.SortFunc(claims, func(a, b Claim) int {
		switch {
		case a.Shard != b.Shard:
			return cmp.Compare(a.Shard, b.Shard)
		case a.Key != b.Key:
			return cmp.Compare(a.Key, b.Key)
		case a.End != b.End:
			return cmp.Compare(a.End, b.End)
		case a.Exclusive != b.Exclusive:
			if a.Exclusive {
				return -1
			}
			return 1
		default:
			return cmp.Compare(a.Rows, b.Rows)
		}
	})
	n := 0
	for i := range claims {
		if n > 0 {
			if last := &claims[n-1]; last.Shard == claims[i].Shard && last.Key == claims[i].Key && last.End == claims[i].End {
				continue
			}
		}
		claims[n] = claims[i]
		n++
	}
	return claims[:n]
}

// Batch is transactions with their claims, in the order of their places.
type Batch struct {
	Txns   []BatchTxn
	Claims []Claim // of the first transaction, then of the next, and so on
}

// BatchTxn is one transaction of a batch.
type BatchTxn struct {
	ID     TxnID // 0: it has been withdrawn
	Place  Place
	Slot   int32 // of its branch at the sequencer's host
	Claims int32 // how many claims it has
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() { b.Txns, b.Claims = b.Txns[:0], b.Claims[:0] }

// Add appends a transaction.
func (b *Batch) Add(t BatchTxn, claims []Claim) {
	t.Claims = int32(len(claims))
	b.Txns = append(b.Txns, t)
	b.Claims = append(b.Claims, claims...)
}

// Set makes b a copy of o.
func (b *Batch) Set(o *Batch) {
	b.Txns = append(b.Txns[:0], o.Txns...)
	b.Claims = append(b.Claims[:0], o.Claims...)
}

// Bytes is what the batch weighs in a message or a log entry.
func (b *Batch) Bytes() int { return BatchTxnBytes*len(b.Txns) + ClaimBytes*len(b.Claims) }

// What a transaction and a claim weigh, in bytes.
const (
	BatchTxnBytes = 24
	ClaimBytes    = 25
)
