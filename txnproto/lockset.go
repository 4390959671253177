package txnproto

import "sort"

// ShardLock is one lock that a session asks for before its program begins: of
// kind LockShared or LockExclusive on a row of the shard, or, with Op.End,
// LockShared on the shard's rows of [Key, End).
type ShardLock struct {
	Op    Op
	Shard ShardID
}

// Sharding says where keys are.
type Sharding interface {
	// ShardOf is the shard that holds k; Shards how many there are.
	ShardOf(k Key) ShardID
	Shards() int
	// Covers reports whether shard may hold keys of [lo, hi).
	Covers(shard ShardID, lo, hi Key) bool
}

// LockSet appends to dst[:0] the locks that a program's declared operations need, in
// the order of shard and key in which everybody asks for them, the stronger where
// a key is declared twice. A range is cut at the keys in it that are locked
// exclusively, so no lock is strengthened later: ranges would be out of order.
//
// The order goes by shard first because a range that spans shards is locked in
// one shard after another, and its keys there interleave.
func LockSet(dst []ShardLock, declared []Op, at Sharding) []ShardLock {
	d := dst[:0]
	ranges := false
	for _, op := range declared {
		lock := Op{Kind: LockShared, Key: op.Key}
		if op.Kind.Writes() || op.Kind == ReadForUpdate {
			lock.Kind = LockExclusive
		}
		if op.Kind != Scan {
			d = append(d, ShardLock{lock, at.ShardOf(op.Key)})
			continue
		}
		lock.End = op.End
		for sh := ShardID(0); int(sh) < at.Shards(); sh++ {
			if op.Key < op.End && at.Covers(sh, op.Key, op.End) {
				ranges = true
				d = append(d, ShardLock{lock, sh})
			}
		}
	}
	if ranges {
		d = cutRanges(d)
	}
	sort.SliceStable(d, func(i, j int) bool {
		switch {
		case d[i].Shard != d[j].Shard:
			return d[i].Shard < d[j].Shard
		case d[i].Op.Key != d[j].Op.Key:
			return d[i].Op.Key < d[j].Op.Key
		default:
			return d[i].Op.Kind > d[j].Op.Kind // exclusive first
		}
	})
	n := 0
	for i := range d {
		single := d[i].Op.End == 0
		if n > 0 && single && d[n-1].Op.End == 0 && d[n-1].Op.Key == d[i].Op.Key {
			continue
		}
		d[n] = d[i]
		n++
	}
	return d[:n]
}

// cutRanges takes the keys that are locked exclusively out of the ranges.
func cutRanges(d []ShardLock) []ShardLock {
	for i := 0; i < len(d); i++ { // d grows by what is cut off
		if d[i].Op.End == 0 {
			continue
		}
		for j := 0; j < len(d); j++ {
			k := d[j].Op.Key
			if d[j].Op.Kind != LockExclusive || d[j].Shard != d[i].Shard || k < d[i].Op.Key || k >= d[i].Op.End {
				continue
			}
			if k == d[i].Op.Key {
				d[i].Op.Key++
				j = -1 // the next key may have been passed
				continue
			}
			rest := d[i]
			rest.Op.Key = k + 1
			d = append(d, rest)
			d[i].Op.End = k
		}
	}
	n := 0
	for i := range d {
		if d[i].Op.End != 0 && d[i].Op.Key >= d[i].Op.End {
			continue
		}
		d[n] = d[i]
		n++
	}
	return d[:n]
}
