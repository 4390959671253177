// Package deterministic is Calvin (Thomson, Diamond, Weng, Ren, Shao, Abadi: "Calvin:
// Fast Distributed Transactions for Partitioned Database Systems", SIGMOD 2012): the
// order of transactions is agreed on before they run, and locks are granted in it.
//
//	register.go    the protocol and its parameter
//	controller.go  one shard's controller: what is asked of it
//	sequencer.go   collects what begins at the shard into batches, epoch by epoch
//	scheduler.go   puts everybody's batches in order and asks for their locks
//	locktable.go   a queue for each row, ranges
//	describe.go    the state in text
//
// # A transaction's way
//
//	client ─ reconnaissance ─► shards it scans       unprotected: which rows are there?
//	client ─ sequence, claims ─► sequencer           collects until the epoch ends
//	                            sequencer ─► its log one entry for the batch
//	client ◄─ place ─────────── sequencer ─ batch ─► every scheduler, its part
//	client ─ operations ─► schedulers                each runs when the transaction has
//	                                                 all its locks there
//	client ─ commit ─► coordinator                   one entry with the writes of all shards
//
// Time is cut into epochs. A place is (epoch, sequencer, number in the batch). A
// scheduler takes an epoch when every sequencer has said what it has in it, be it
// nothing, and asks for the locks of its transactions in the order of their places:
// first come, first served at each row, so that whoever waits waits for earlier ones
// only. There is no cycle, in a shard or across them, and nobody is aborted because of
// others, but for reconnaissance, when others have added or removed rows in what it
// scans, and for lost leaders.
//
// # Where this is not the paper's Calvin
//
// There, a transaction's logic runs at the nodes, each of which has read the same log and
// comes to the same result. Here programs run at their clients, as under every other
// protocol of the project, so that they can be compared. What follows from that:
//
//   - Commit. The paper needs no vote: who is sequenced commits, and a node that has
//     failed runs its log again. Here the log of a sequencer tells which locks were asked
//     for and not what was computed, so a node could not come to the result again. What
//     was computed has to be in a log when the client hears of the commit: it is in
//     one entry of the coordinator's, with the writes of all shards (coordinator log:
//     Stamos, Cristian 1990, 1993). Participants are asked for their writes, a message to and
//     fro, and log nothing before the decision. Nobody answers no, but for a lost leader.
//     With commit=two-phase they log a prepare first, as under the other protocols.
//   - A change of leader loses the shard's queue of locks, and the batches that it has not
//     sent. Attempts that relied on them abort with leader-change and are sequenced
//     again; those prepared keep the locks of their writes: see nodes/coordinatorlog.go. New leaders take no part in
//     epochs before their own, and everybody else goes on without what they lost.
//   - The paper's transactions finish without the client; here one that thinks in between
//     keeps its locks meanwhile.
//   - Batches hold what is claimed; the values written come into the log with the commit.
//
// Ranges: the paper's locks are on records. Its OLLP (optimistic lock location
// prediction) finds the records of a transaction that depends on what is there by a
// reconnaissance query, sequences it with them, and restarts it when at its turn they are
// others. Here a program declares the ranges that it scans; the reconnaissance finds their
// rows, which are claimed one by one, and the range is claimed too, shared, for no row
// must come into it between the check and the commit. The check is the scheduler's, at the
// scan; a transaction whose rows have changed aborts with the reason reconnaissance.
//
// In the paper, sequencers end their epochs every 10 ms, whatever there is. Here an epoch
// nobody begins in costs nothing: who takes the first transaction of an epoch tells the
// other sequencers, and these close it too. A message more for each and epoch, and
// the same order of events unless links are slower than log and epoch together.
//
// Wait clauses (NOWAIT, SKIP LOCKED) have no effect: locks are asked for before the
// operation that has the clause.
//
// # Serializable, and strictly so
//
// Locks are held until the outcome is carried out, and all were asked for before the
// first operation: the argument is that of two-phase locking, and the serial order that
// of the lock points. Who begins after another has committed is sequenced after it.
// So a participant that only read may let go when it prepares: see package locking.
package deterministic
