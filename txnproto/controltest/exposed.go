package controltest

import (
	"fmt"
	"slices"

	"interleave/txnproto"
)

// RollBack, as the last operation of a program, ends it by its own will.
var RollBack = txnproto.Op{Kind: txnproto.NumOpKinds}

// see reads k, which may be exposed and uncommitted, and notes from whom.
func (s *Shard) see(b *branch, k txnproto.Key) txnproto.Row {
	r := s.control.(txnproto.Exposer).See(&b.tx, k)
	for _, w := range s.slots {
		if w == nil || w == b {
			continue
		}
		if p := w.tx.Put(k); p != nil && p.Version != 0 && p.Version == r.Version {
			if !slices.Contains(b.attempt.From, w.attempt) {
				b.attempt.From = append(b.attempt.From, w.attempt)
			}
			if x := (ReadOf{k, r.Version}); !slices.Contains(w.attempt.Exposed, x) {
				w.attempt.Exposed = append(w.attempt.Exposed, x)
			}
			return r
		}
	}
	if r != s.store.Get(k) {
		panic(fmt.Sprintf("controltest: %v finds %+v, which nobody exposes, and committed is %+v", b.tx.ID, r, s.store.Get(k)))
	}
	return r
}

// seeRange compares a scan's rows with those that were read one by one.
func (s *Shard) seeRange(b *branch) {
	if !s.d.Protocol.Exposes() {
		return
	}
	e := s.control.(txnproto.Exposer)
	var committed, want []txnproto.Row
	for k := b.op.Key; k < min(b.op.End, s.d.Keys); k++ {
		if s.d.ShardOf(k) != s {
			continue
		}
		r := s.store.Get(k)
		if r.Exists || r.Version != 0 {
			committed = append(committed, r)
		}
		if b.tx.Put(k) == nil {
			r = e.See(&b.tx, k)
		}
		if r.Exists || r.Version != 0 {
			want = append(want, r)
		}
	}
	if got := e.SeeRange(&b.tx, b.op.Key, b.op.End, committed); !slices.Equal(got, want) {
		panic(fmt.Sprintf("controltest: %v scans %v, and reads %v", b.tx.ID, got, want))
	}
}

// Shrink tells this shard that a is past its lock point, with ahead still to come.
func (s *Shard) Shrink(a *Attempt, ahead []txnproto.Op) {
	b := a.branches[s.id]
	if b == nil || b.stage != running || b.wait {
		return // it has ended, or prepares: that says the same
	}
	var here []txnproto.Op
	for _, op := range ahead {
		if s.d.ShardOf(op.Key) == s {
			here = append(here, op)
		}
	}
	s.enter(func() { s.control.(txnproto.Exposer).Shrink(&b.tx, here) })
}

// grown takes an operation that was granted, and what may still come, and tells the shards
// when a is at its lock point or, beyond it, goes on: tell is called for each.
func (d *Driver) grown(a *Attempt, op *txnproto.Op, ahead []txnproto.Op, tell func(*Shard)) {
	if !d.Protocol.Exposes() {
		return
	}
	switch b := a.branches[d.ShardOf(op.Key).id]; {
	case op.Kind == txnproto.Scan:
	case !b.op.Skip:
		a.growth.Note(op, b.found)
	}
	if !a.past {
		ahead = slices.DeleteFunc(slices.Clone(ahead), func(op txnproto.Op) bool { return op == RollBack })
		a.past = a.growth.CoversAll(ahead)
	}
	if a.past {
		for _, id := range a.participants() {
			tell(d.Shards[id])
		}
	}
}

// withoutRollBack is a program without its RollBack.
func withoutRollBack(ops []txnproto.Op) []txnproto.Op {
	if n := len(ops); n > 0 && ops[n-1] == RollBack {
		return ops[:n-1]
	}
	return ops
}
