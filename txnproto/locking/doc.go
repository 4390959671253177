// Package locking is two-phase locking: a lock table with fair queues, next-key
// range locks against phantoms, and deadlock detection within and across shards.
//
//	twophase.go    the protocol: what each operation locks, and how it goes on after a wait
//	modes.go       lock modes with their compatibility and conversion tables
//	locktable.go   holders and queues by key
//	nextkey.go     range locks: which keys a scan locks and what an insert must ask
//	deadlock.go    when a wait is looked at, the search for cycles, victims
//	victim.go      the policies that choose a victim
//	detector.go    cycles that span shards
//
// # A lock's life
//
// Locks are strict to the end for reads and writes alike (rigorous two-phase
// locking): everything is released in Finish. So a transaction's lock point, the
// moment when it holds all it ever will, is the end of its last operation, and
// transactions are equivalent to their serial order by lock points. The client asks
// for the commit after the last operation on any shard, hence a participant
// that only read may release at its prepare: no lock is asked for afterwards
// anywhere. For the same reason read locks need not survive a change of leader
// once their transaction has prepared, while the locks of its writes must, for they
// hide what is not decided; Recover takes them back.
package locking
