// Package locking is two-phase locking: a lock table with fair queues, next-key
// range locks against phantoms, and deadlock detection within and across shards.
//
//	protocols.go   the members, their parameters
//	twophase.go    the controller: what each operation locks, and how it goes on after a wait
//	modes.go       lock modes with their compatibility and conversion tables
//	locktable.go   holders and queues by key
//	granularity.go the table above the rows, intention locks, escalation
//	nextkey.go     range locks: which keys a scan locks and what an insert must ask
//	ordered.go     locks that are declared beforehand; exact ranges
//	basic.go       locks that are released before the commit: cascades
//	exposed.go     the writes that others see then
//	savepoint.go   what a rollback to a savepoint releases
//	prevention.go  waits that are forbidden: no-wait, wait-die, wound-wait, NOWAIT, SKIP LOCKED
//	deadlock.go    when a wait is looked at, the search for cycles, victims
//	victim.go      the policies that choose a victim
//	detector.go    cycles that span shards, found centrally
//	probe.go       the same by edge chasing
//
// # The members
//
// They lock alike and differ in what becomes of a lock that is not free:
//
//	2pl            waits; cycles of waits are found and a member of each is aborted
//	2pl-timeout    waits, but not long
//	2pl-nowait     aborts
//	2pl-waitdie    waits for younger ones, aborts because of older ones
//	2pl-woundwait  aborts younger ones, waits for older ones
//	2pl-ordered    waits; everybody locks in one order, so there is no cycle
//	2pl-basic      as 2pl, and releases locks from the lock point on; see basic.go
//
// # A lock's life
//
// But for 2pl-basic, locks are strict to the end for reads and writes alike (rigorous two-phase
// locking): everything is released in Finish. So a transaction's lock point, the
// moment when it holds all it ever will, is the end of its last operation, and
// transactions are equivalent to their serial order by lock points. The client asks
// for the commit after the last operation on any shard, hence a participant
// that only read may release at its prepare: no lock is asked for afterwards
// anywhere. For the same reason read locks need not survive a change of leader
// once their transaction has prepared, while the locks of its writes must, for they
// hide what is not decided; Recover takes them back.
package locking
