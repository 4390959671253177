// Package history records what the transactions of a run read and wrote, and
// judges afterwards which isolation level the run kept.
//
// The package is the independent judge: it imports no protocol, no node and not
// even the vocabulary of package txnproto. It has its own ids, and the caller
// converts.
//
//	event loop ── Commit, Abort, Install ──▶ Recorder ── Check ──▶ Result
//	                                          │    ▲
//	                                   Replay │    │ Reader.ReadAll
//	                                          ▼    │
//	                                     history file (JSON lines)
//
// # What is recorded
//
// Every attempt of a transaction has its own TxnID. Every write that a store
// installs makes a version of its key, and within one key the numeric order of
// versions is the version order; version 0 is the initial state, present or
// absent. The store reports versions as it installs them, in pieces and in any
// order relative to commit records. A committed attempt reports the version
// that each of its reads saw, and for each scan the versions of the keys in its
// range that were past version 0, tombstones included: a key of the range that
// is not listed was seen at version 0. Reads of a transaction's own writes are
// not reported; if they are, they are ignored. Aborted attempts matter only
// when they had installed versions that others could see.
//
// # The graph
//
// The checker builds the direct serialization graph of Adya ("Weak Consistency:
// A Generalized Theory and Optimistic Implementations for Distributed
// Transactions", MIT 1999; Adya, Liskov, O'Neil, ICDE 2000). Its nodes are the
// committed transactions, its edges
//
//   - ww: T2 installed the version that follows T1's;
//   - wr: T2 read T1's version;
//   - rw: T1 read a version and T2 installed the one that follows it;
//   - predicate rw: T1 scanned a range and T2 installed, for a key in it, the
//     version that follows the one the scan saw, and so inserted or deleted a row
//     of the range. An overwrite of a row that stays is an ordinary rw.
//
// A version's order and place are recorded, so nothing is guessed and the graph
// is exact. Versions of aborted transactions, and those that their own
// transaction overwrote, have no place in the version order. A delete of an
// absent row counts as a write, as it does in the store.
//
// # Levels
//
// A history keeps a level when it shows none of the phenomena the level rules out:
//
//	read-uncommitted     G0
//	read-committed       G0, G1a, G1b, G1c
//	snapshot             those, and every cycle without two rw edges in a row
//	repeatable-read      those of read-committed, and every cycle free of predicate rw
//	serializable         those of read-committed, and every cycle
//	strict-serializable  those of serializable, and every cycle with real-time edges
//
// Snapshot isolation is judged by the theorem of Cerone and Gotsman ("Analysing
// Snapshot Isolation", JACM 2018): a graph can come from snapshots if and only
// if every cycle has two adjacent anti-dependencies. Which snapshot a
// transaction took is not asked, so a snapshot older than the transaction's
// begin is accepted (generalized snapshot isolation); Adya's G-SIa, which
// compares start and commit times, is not judged. G-single and lost update are
// special cases of what this rules out.
//
// Whether a level was kept is decided exactly, by strongly connected
// components. Which cycles are shown and counted is a bounded search; Count
// says by what rule.
//
// # Cost
//
// Recording encodes into chunks without pointers, about 100 bytes for a
// transaction of ten operations. Checking is linear: two orders of the
// transactions are tried (commit order, then order of begin), and when every
// edge goes forward in one of them the graph has no cycle and is never stored.
// Otherwise only the stretches of the order that backward edges span are built
// and searched, since a cycle cannot leave them.
package history
