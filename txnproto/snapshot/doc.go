// Package snapshot is multiversion concurrency control by snapshots: reads find the
// versions of one moment and wait for no lock, writes lock their rows.
//
//	register.go     the protocols: rc, si, ssi and mv2pl
//	controller.go   how an operation goes: snapshot, row lock, checks, waits
//	rowlocks.go     the lock table behind it, which is that of 2pl
//	prepared.go     rows whose newest version is being decided
//	ssi.go          what ssi adds: who read before whom, and dangerous structures
//	records.go      transactions as ssi remembers them, their reads, writes and conflicts
//
// # Snapshots over several shards
//
// Begins and decisions to commit draw timestamps from one counter. A transaction's
// versions are numbered by its commit timestamp c, on all shards alike, and a
// reader of snapshot s sees the versions with c <= s. c is drawn when every branch has
// prepared, so at a shard, for a reader of snapshot s and a writer W of the same row:
//
//   - W has ended here: its version is in the store, and its number tells.
//   - W has not prepared here: it will be decided later than now, hence c > s: not seen.
//   - W has prepared here: c may be on either side of s, so the reader waits for
//     W's end, unless s is not above the newest timestamp drawn when W prepared
//     here, for c is above that.
//
// That wait is short, a commit's, and cannot be part of a deadlock: who has prepared
// has no operation under way on any shard and waits for nobody.
//
// Locks of rows are another matter: writers wait for each other in any order, and
// cycles are found and broken by the detection of 2pl, within and across shards.
//
// # Loose clocks
//
// With --timestamps clock si is Clock-SI (Du, Elnikety, Zwaenepoel 2013): s is the reading
// of the client's clock; each branch prepares at the reading of its machine's, and c is
// the greatest of these. The wait for W is the same, with the reading at which it
// prepared here as the lower bound. What "later than now" says of W that has not
// prepared holds because an operation that comes before its machine's clock shows s
// waits until it does: the hosts see to that, and to a new leader's readings being
// beyond the snapshots served by the one before, whose clock may have been ahead.
// Ours differs in that the client reads the clock, not a partition, and in that a
// client's next snapshot is beyond its own last commit, so it sees that.
//
// rc, ssi and mv2pl rely on the order of real time in more than this and need a counter
// or an oracle.
//
// # Leaders
//
// Row locks of prepared writers are taken back from the log. What protects reads
// (ssi's traces, mv2pl's read locks) is lost with a leader, although a transaction that
// relied on it may still commit. So a new leader of these two turns away, with
// leader-change, whoever could conflict with such a one: until every transaction
// begun before its time has ended, and after that those begun before that moment.
package snapshot
