// Package workloads is what the clients do: the programs of their transactions,
// the keys those touch, and what must hold of the data in the end.
//
// A Workload makes one Generator for each client (or for the arrivals of an
// open loop); a generator makes programs, which a session drives:
//
//	Workload ── Generator("client/17") ── Next ──> Program ── Start, Next, Next, … commit
//	                                        ^                        │
//	                                        └──── recycled ──────────┘
//
// Common random numbers: program number n of a generator depends on the run's
// seed, the generator's name and n, and on nothing else. It does not depend on
// results, on times, or on what other clients do, so every protocol of a
// comparison runs the same programs. Each program has streams of its own, one
// for its shape (class, operations, values) and one for its keys; a retry with
// fresh keys draws them from a third, so the programs after it stay the same.
//
// Programs are state machines filled in beforehand and reused; a draw allocates
// nothing once they have grown to their length. FuncWorkload is a convenience
// beside them: programs written as plain Go functions.
//
// A workload registers once (see Workloads); the command's flags and help, the
// lists and the schema come from that.
package workloads
