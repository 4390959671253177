package txnproto

import "strconv"

// TxnID names one attempt of a transaction. Ids are dense and grow in order of
// begin over the whole run; 0 names no transaction.
type TxnID uint64

// String returns the id as reports print it: T17.
func (t TxnID) String() string { return "T" + strconv.FormatUint(uint64(t), 10) }

// RequestID names one logical transaction that a client wants done. It keeps
// its id over all its attempts. Ids are dense from 1 in order of arrival.
type RequestID uint64

// ClientID names a client: the session that runs one request at a time. Dense from 0.
type ClientID int32

// ClassID names a transaction class of the workload (short, long, audit). Dense from 0.
type ClassID uint8

// NodeID names a machine that stores data. Dense from 0.
type NodeID int32

// String returns the node's name: n1 for node 0.
func (n NodeID) String() string { return "n" + strconv.Itoa(int(n)+1) }

// ShardID names a partition of the keys, replicated as one log. Dense from 0.
type ShardID int32

// String returns the shard's name: s1 for shard 0.
func (s ShardID) String() string { return "s" + strconv.Itoa(int(s)+1) }

// Timestamp orders transactions by age: drawn when an attempt begins, unique in a
// run, below 2^63. See Stamping.
type Timestamp uint64

// Key names a row. Keys are totally ordered; a scan covers an interval of them.
type Key uint64

// Value is what a row holds, as far as programs compute with it. What a row
// weighs in messages and on disk is the workload's ValueBytes.
type Value int64

// Version is a row's place in its version order: within one key, numeric order
// is version order. 0 is the initial state of the database.
type Version uint64
