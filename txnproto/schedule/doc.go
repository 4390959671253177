// Package schedule reads schedules in the notations of the textbooks and says
// what they are: serial, serializable, recoverable, producible by locking or by
// timestamps, and which anomalies they show.
//
//	text ──Parse──▶ Schedule ──Classify──▶ Classification ──▶ Report, JSON
//	                    │                        └──────────▶ GraphDOT, GraphSVG
//	                    └───────────────────────────────────▶ TimelineSVG
//
// A [Schedule] is a list of operations in the order in which they happened. The
// same list may serve as programs to be run: [Schedule.Of] gives one transaction's
// operations, and times, savepoints, lock clauses and values are kept for that.
//
// # The model behind the verdicts
//
// The schedule is taken as a single-version history: a read reads the last write
// of its item that has not been undone. An abort undoes its transaction's writes,
// a rollback to a savepoint those made since the savepoint. A scan reads every
// item of its range that the schedule names, present or not; so an insert or
// delete in the range conflicts with it, as under predicate or next-key locks.
// A read for update reads; only the tests of two-phase locking see its U lock.
//
// The tests of serializability look at the projection: the operations of all
// transactions but the aborted, without writes that a rollback to a savepoint has
// undone. A transaction that neither commits nor aborts is active; it is kept in
// the projection, as if it were to commit, and a note says so. That departs from
// Bernstein, Hadzilacos and Goodman, whose committed projection would drop it: many
// exercises leave the commits out. [Options.Complete] appends them instead.
// Recoverability and its kin look at the whole schedule.
//
// Invariant: nothing here depends on map order, time or chance. The same text
// gives the same bytes of report and picture.
package schedule
