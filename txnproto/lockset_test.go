package txnproto

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// modShards has key k in shard k mod n.
type modShards int

func (n modShards) ShardOf(k Key) ShardID             { return ShardID(uint64(k) % uint64(n)) }
func (n modShards) Shards() int                       { return int(n) }
func (n modShards) Covers(_ ShardID, lo, hi Key) bool { return lo < hi }

func lockSetText(locks []ShardLock) string {
	var parts []string
	for _, l := range locks {
		text := fmt.Sprintf("%v:%v %d", l.Shard, l.Op.Kind, l.Op.Key)
		if l.Op.End != 0 {
			text += fmt.Sprintf("..%d", l.Op.End)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func TestLockSet(t *testing.T) {
	rd := func(k Key) Op { return Op{Kind: Read, Key: k} }
	wr := func(k Key) Op { return Op{Kind: Write, Key: k} }
	scan := func(lo, hi Key) Op { return Op{Kind: Scan, Key: lo, End: hi} }
	for _, c := range []struct {
		shards modShards
		ops    []Op
		want   string
	}{
		{1, nil, ""},
		{1, []Op{wr(3), wr(1), wr(2)}, "s1:lock-exclusive 1, s1:lock-exclusive 2, s1:lock-exclusive 3"},
		{1, []Op{wr(3), rd(2), rd(3), rd(2)}, "s1:lock-shared 2, s1:lock-exclusive 3"},
		{1, []Op{{Kind: ReadForUpdate, Key: 4}, rd(4)}, "s1:lock-exclusive 4"},
		{2, []Op{wr(1), wr(2), rd(3)}, "s1:lock-exclusive 2, s2:lock-exclusive 1, s2:lock-shared 3"},
		{2, []Op{scan(0, 9), wr(4)}, "s1:lock-shared 0..4, s1:lock-exclusive 4, s1:lock-shared 5..9, s2:lock-shared 0..9"},
		{1, []Op{scan(0, 4), wr(0), wr(3)}, "s1:lock-exclusive 0, s1:lock-shared 1..3, s1:lock-exclusive 3"},
		{1, []Op{scan(2, 4), wr(3), wr(2)}, "s1:lock-exclusive 2, s1:lock-exclusive 3"},
		{1, []Op{scan(5, 5)}, ""},
	} {
		if got := lockSetText(LockSet(nil, c.ops, c.shards)); got != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.ops, got, c.want)
		}
	}
}

// What LockSet asks for covers every operation, locks nothing twice in two modes,
// and is in order.
func TestLockSetCoversAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := modShards(rapid.IntRange(1, 3).Draw(t, "shards"))
		key := rapid.Uint64Range(0, 9)
		var ops []Op
		for range rapid.IntRange(0, 8).Draw(t, "ops") {
			op := Op{Kind: rapid.SampledFrom([]OpKind{Read, Write, ReadForUpdate, Scan, Insert}).Draw(t, "kind"), Key: Key(key.Draw(t, "key"))}
			if op.Kind == Scan {
				op.End = Key(key.Draw(t, "end"))
			}
			ops = append(ops, op)
		}
		locks := LockSet(nil, ops, at)
		mode := func(s ShardID, k Key) (exclusive, shared bool) {
			for _, l := range locks {
				hit := l.Op.Key == k
				if l.Op.End != 0 {
					hit = l.Op.Key <= k && k < l.Op.End
				}
				if hit && l.Shard == s {
					exclusive = exclusive || l.Op.Kind == LockExclusive
					shared = shared || l.Op.Kind == LockShared
				}
			}
			return exclusive, shared
		}
		for k := Key(0); k < 10; k++ {
			var writes, reads bool
			for _, op := range ops {
				switch {
				case op.Kind == Scan:
					reads = reads || op.Key <= k && k < op.End
				case op.Key != k:
				case op.Kind == Read:
					reads = true
				default:
					writes = true
				}
			}
			x, s := mode(at.ShardOf(k), k)
			if x != writes || s != (reads && !writes) {
				t.Fatalf("key %d: exclusive %v, shared %v of %s", k, x, s, lockSetText(locks))
			}
		}
		for i := 1; i < len(locks); i++ {
			a, b := locks[i-1], locks[i]
			if a.Shard > b.Shard || a.Shard == b.Shard && a.Op.Key > b.Op.Key {
				t.Fatalf("out of order: %s", lockSetText(locks))
			}
		}
	})
}
