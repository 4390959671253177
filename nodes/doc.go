// Package nodes is the storage nodes: machines with a processor and a log disk
// that hold replicas of shards. On a shard's leader a host runs the shard's
// concurrency controller and commits transactions, alone or in two phases; a
// Replication keeps the shard's log on its replicas; on each of these a state
// machine, the versioned store with what atomic commit must remember, applies it.
package nodes
