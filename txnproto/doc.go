// Package txnproto says what a transaction is, to all who take part in one: the
// program that asks for operations, the session that runs it as attempts, the
// messages between clients and nodes, and the Controller that a protocol
// implements at each shard.
//
//	Workload → Generator → Program        what a request does
//	                          ↕ Result, Action
//	Clients  →  session: idle → admission → op ⇄ think → commit → idle
//	                          ↕ Msg                 └ aborted → backoff → op …
//	            a node's Host ↔ Controller          verdicts: granted, waiting, abort
//
// A request keeps its RequestID, and its FirstTS, over all its attempts; each
// attempt has a TxnID and a Timestamp of its own. At every shard that an attempt
// touches it has one branch, a Txn.
//
// Invariants: an attempt has one outcome, whoever asks and however often. The
// parts of a committed request's latency sum to it. Every message comes from the
// cluster's Pool and goes back to it. What a request's first attempt sends does
// not depend on the protocol: a Msg's Key says what the message is by client,
// count of requests, attempt and operation, so that two protocols are compared
// on the same draws.
//
// Protocols are in the packages below this one and register themselves with
// Register; the nodes, which import this package, know none of them.
package txnproto
