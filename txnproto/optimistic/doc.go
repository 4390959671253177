// Package optimistic is optimistic concurrency control: transactions run without
// locks on private copies and are validated when they commit.
//
//	serial.go    the protocol: Kung and Robinson's backward validation, serial
//	records.go   the validated transactions that are still of interest
//	index.go     which of them wrote, or has read, a key
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
package optimistic
