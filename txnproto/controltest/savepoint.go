package controltest

import (
	"fmt"

	"interleave/txnproto"
)

// undoPut is the workspace's row before a write under a savepoint.
type undoPut struct {
	save int
	had  bool
	old  txnproto.Put // if had
}

// put writes to the workspace so that a rollback to a savepoint can undo it.
func (b *branch) put(p txnproto.Put) {
	if b.tx.Save > 0 {
		u := undoPut{save: b.tx.Save}
		if old := b.tx.Put(p.Key); old != nil {
			u.had, u.old = true, *old
		}
		b.undo = append(b.undo, u)
	}
	b.tx.SetPut(p)
}

// Savepoint sets the attempt's next savepoint; their numbers count from 1.
func (a *Attempt) Savepoint() {
	a.save++
	a.marks = append(a.marks, len(a.Reads))
	a.grown = append(a.grown, a.growth.Mark())
}

// forgetReads drops what was read since a savepoint. The savepoints after it are gone,
// and stand for the same place.
func (a *Attempt) forgetReads(save int) {
	n := a.marks[save-1]
	a.Reads = a.Reads[:n]
	a.growth.Undo(a.grown[save-1])
	for i := save; i < len(a.marks); i++ {
		a.marks[i] = n
		a.grown[i] = a.grown[save-1]
	}
}

// RollbackTo undoes what a did at this shard since a savepoint.
func (s *Shard) RollbackTo(a *Attempt, save int) {
	b := a.branches[s.id]
	if b == nil || b.stage == ended {
		return
	}
	if b.stage != running || b.wait {
		panic(fmt.Sprintf("controltest: %v is not ready to roll back to a savepoint", a.ID))
	}
	for n := len(b.undo); n > 0 && b.undo[n-1].save >= save; n-- {
		if u := &b.undo[n-1]; u.had {
			b.tx.SetPut(u.old)
		} else {
			b.tx.DropLastPut()
		}
		b.undo = b.undo[:n-1]
	}
	if p, ok := s.control.(txnproto.Savepointer); ok {
		s.enter(func() { p.RollbackTo(&b.tx, save) })
	}
}

// lockSet returns what a program must lock beforehand, under protocols that want that.
func (d *Driver) lockSet(ops []txnproto.Op) []txnproto.ShardLock {
	if !d.Protocol.Declares {
		return nil
	}
	return txnproto.LockSet(nil, withoutRollBack(ops), d.sharding())
}

// sharding says where the driver's keys are.
func (d *Driver) sharding() txnproto.Sharding { return modulo(len(d.Shards)) }

type modulo int

func (n modulo) ShardOf(k txnproto.Key) txnproto.ShardID {
	return txnproto.ShardID(uint64(k) % uint64(n))
}
func (n modulo) Shards() int                                         { return int(n) }
func (n modulo) Covers(_ txnproto.ShardID, lo, hi txnproto.Key) bool { return lo < hi }
