// Package optimistic is optimistic concurrency control: transactions run without
// locks on private copies and are validated when they commit.
//
//	serial.go    occ, occ-parallel: Kung and Robinson's backward validation
//	records.go   the validated transactions that are still of interest
//	index.go     which of them wrote, or has read, a key
//	shared.go    what the others have in common: who runs, who is pending, who waits
//	member.go    a branch there, and the rows that came and went
//	forward.go   occ-forward: Härder's forward validation
//	version.go   occ-version: a version column
//	silo.go      silo: lock the writes, then look at the reads
//	tictoc.go    tictoc: commit timestamps from what was accessed
//	rows.go      its timestamps
//
// # Kung and Robinson's scheme and a replicated log
//
// In the paper (ACM TODS 6(2), 1981, sec. 4) a transaction T has a read phase, then,
// in a critical section, it is validated, writes, and gets the next transaction
// number. T remembers at its start the highest number given, and is valid when no
// transaction with a number since then wrote what T read. Numbers thereby say
// both in which order transactions are equivalent to, and in which they wrote.
//
// Here the write phase is a trip through the shard's log, too long for a
// critical section. The number is given at validation instead, and the host
// proposes the writes to the log at once: the log has them in order of number, so
// they take effect in the order of the paper. What changes is the start: a
// number may have been given to a transaction whose writes are not visible yet. A
// branch therefore starts at the highest number up to which all are finished; it
// is validated against everything later, finished or not, except what had
// finished before it began, which it saw. On one shard nothing else differs.
//
// # What several shards force
//
// A transaction on several shards is validated on each and decided on by two-phase
// commit. Two of them can be validated in opposite orders:
//
//	T1 reads x and writes y, T2 reads y and writes x; x on shard A, y on B.
//	A: T1 valid (read x), T2 valid (writes x, read nothing here): T1 before T2.
//	B: T2 valid (read y), T1 valid (writes y, read nothing here): T2 before T1.
//
// Each shard's order is serial and there is no order for both. So between its
// validation and its end, while it is pending, a transaction protects what it read
// and wrote: another that would write it, or has read what it writes, is in
// conflict with it. Then conflicting transactions are never pending together on any
// shard, every dependency goes from one whose decision was earlier to one whose
// decision was later, and the order of decisions is the serial order.
//
// It follows that a participant that only read must stay pending until the
// decision (DropReadOnly is false). In the schedule above T1 only reads at A and T2
// only at B; if they dropped out when prepared, nothing would be pending when the
// other's write came.
//
// In a conflict with a pending transaction the older (by first begin) waits for the
// younger's end and is validated again; the younger aborts. Waits lead from older
// to younger only, so there is no deadlock within or across shards, and the
// pending, which cannot be undone by us, are never waited for in a circle. The other
// direction would be as free of deadlocks, but then the oldest could be aborted by
// newcomers for ever; this way nobody pending ever aborts the oldest request. Always aborting
// would let two transactions that meet on two shards abort each other, and with
// equal delays again on every retry.
//
// # Change of leader
//
// The log holds a prepared transaction's writes, not what it read. A new leader
// takes a recovered one to have read everything: who writes anything on the
// shard is in conflict with it until it ends. Participants that only read must be in
// the log and be recovered too: the host owes this to a protocol without DropReadOnly.
// The protocols on shared do the same.
//
// # Parallel validation
//
// In section 5 of the paper only the test is a critical section. Who has passed it is
// active until its write phase is over and gets its number then. T must be apart, as
// before, from what those read who got a number since it began; from those that are
// active when it asks it must be apart in what it read and in what it wrote, as their
// write phases overlap. Here a test takes no virtual time in either variant, and the
// log keeps the writes in order in both; occ-parallel shows the price of the third
// condition. It never waits: also on several shards a conflict is an abort, as in the
// paper, and rests on the backoff of retries.
//
// # Forward validation
//
// T is tested against those that run: none may have read what T writes. Either T
// gives way, or they do, which is safe while they are not validated themselves.
// The paper has test and write phase in one critical section. Here a row that a pending
// transaction writes cannot be read until that one's end: the reader waits. Who
// waits so is not pending and nobody waits for it, so these waits close no circle.
// Against the pending of other shards the rules above hold.
//
// # Silo
//
// Phase 1 locks the rows written, phase 2 tests the rows read, phase 3 writes and
// unlocks. Phases 1 and 2 are one step at Prepare, and what phase 1 locks stays locked
// until the end. Differences:
//
//   - A TID word is the row's version number and whether a pending member writes it.
//     Silo's words carry the epoch, by which logs become durable and results are let
//     go together. Durability is the replicated log's business here, entry by entry,
//     so there are no epochs.
//   - Silo spins on a lock with those of smaller keys in hand, in order of key. Here
//     all are taken in one step, or none and the transaction waits for the
//     first that is taken; it holds nothing meanwhile and needs no order.
//   - Nodes of the index are runs of node-keys consecutive keys, and only rows that
//     come and go change them; there are no splits.
//   - Phase 2 of one shard is not at the same moment as that of another. In the
//     schedule of "What several shards force" T1 would find x unlocked on A before T2
//     locks it, T2 would find y so on B, and both commit. So what a transaction of
//     several shards has read is protected from phase 2 until its end.
//
// # TicToc
//
// Each version is known to be valid from its wts to its rts. T commits at the
// smallest timestamp that is not before the wts of anything it read and after the rts of
// anything it overwrites; a version read that ends before that is extended, when it
// still is the newest and not locked, else T aborts. Every dependency then leads
// to a commit timestamp that is not smaller, and that is larger but for a reader
// after its writer; so there is no cycle, in whatever order they committed. In particular
// a reader of an old version commits in the past of who has overwritten it.
//
// On several shards the timestamp must be the same on all. Each votes with the
// interval that will do there, from the smallest timestamp to the first rts that
// cannot be extended; the coordinator takes the smallest number in all of them or
// aborts. Versions that can be extended are protected until the decision, and
// extended to what was agreed.
//
// Scans, which the paper leaves to the index, are treated as rows are: a range that
// was scanned has an rts, which a row that comes or goes there must be after; the wts
// of an absent row is that of its deletion; and a scan is valid until before the first
// row that has come or gone there since.
//
// Timestamps are volatile. A new leader takes every version of its shard to be valid
// up to one more than the newest start timestamp of the run, as all are up to 1 at first:
// this is not less than any commit timestamp, because each commit adds at most one to the
// largest, and where a former
// change of leader has made it otherwise, who would commit later than that aborts.
// What was agreed on may be lost with its coordinator; then the first and the last
// timestamp that it can have been stand in, each where it is on the safe side.
package optimistic
