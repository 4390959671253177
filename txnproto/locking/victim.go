package locking

import "interleave/txnproto"

type victimPolicy uint8

// The victim policies. Ties, and there are many, go to the youngest, so that no
// policy depends on where a search began.
const (
	// victimYoungest: the request that first began last. A retry keeps its
	// request's age, so a request is not the youngest for ever.
	victimYoungest victimPolicy = iota
	// victimOldest: the request that first began first.
	victimOldest
	// victimFewestLocks: who holds and asks for the fewest locks at the shard where it waits.
	victimFewestLocks
	// victimLeastWork: who has run the fewest operations at the shard where it waits.
	victimLeastWork
	// victimSpareHit: who has been a victim least often; nobody is hit again while
	// another member of its cycle has been hit less.
	victimSpareHit
)

var victimNames = []string{"youngest", "oldest", "fewest-locks", "least-work", "spare-hit"}

func victimNamed(name string) victimPolicy {
	for i, n := range victimNames {
		if n == name {
			return victimPolicy(i)
		}
	}
	panic("locking: no such victim policy: " + name)
}

// candidate is what is known of a deadlock's member where it waits.
type candidate struct {
	txn   txnproto.TxnID
	first txnproto.Timestamp
	locks int
	ops   int
	hits  int
}

func (a candidate) younger(b candidate) bool {
	if a.first != b.first {
		return a.first > b.first
	}
	return a.txn > b.txn
}

// before reports whether a is a better victim than b.
func (p victimPolicy) before(a, b candidate) bool {
	switch p {
	case victimYoungest:
	case victimOldest:
		return b.younger(a)
	case victimFewestLocks:
		if a.locks != b.locks {
			return a.locks < b.locks
		}
	case victimLeastWork:
		if a.ops != b.ops {
			return a.ops < b.ops
		}
	case victimSpareHit:
		if a.hits != b.hits {
			return a.hits < b.hits
		}
	default:
		panic("locking: unknown victim policy")
	}
	return a.younger(b)
}
