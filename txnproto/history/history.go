package history

import "strconv"

// TxnID names one attempt of a transaction. Ids are unique; they should be dense
// and grow in order of begin, which makes checking faster, but need not.
type TxnID uint64

// String returns the id as explanations print it: T17.
func (t TxnID) String() string { return "T" + strconv.FormatUint(uint64(t), 10) }

// RequestID names what a client wanted done once, whatever number of attempts it
// took. 0 stands for none.
type RequestID uint64

// Key names a row. Scans cover intervals of keys.
type Key uint64

// Version is a row's place in its version order: within one key, numeric order is
// version order. 0 is the initial state. Versions are below 2^63.
type Version uint64

// ShardID names the shard that a piece of a scan or an install belongs to.
type ShardID int32

// AllShards as the shard of a scan says that it covers its whole range; as that of
// an install, that the shard is not named.
const AllShards ShardID = -1

// Time is a moment of virtual time, in nanoseconds since the start of the run.
type Time int64

// Read says that a version of a key was seen.
type Read struct {
	Key     Key
	Version Version
}

// Scan says what a scan of the keys Lo ≤ k < Hi saw. A scan that several shards
// answered is several pieces, one for each shard, and a piece covers only the keys
// of its shard.
type Scan struct {
	Lo, Hi Key
	Shard  ShardID // AllShards when Seen is complete for the whole range
	// Seen lists the keys whose version was not 0, tombstones included, in key
	// order. A key in the range that is not listed was seen at version 0.
	Seen []Read
}

// Write says that a version of a key was installed.
type Write struct {
	Key       Key
	Version   Version
	Tombstone bool  // the version is a deletion
	Value     int64 // not judged; kept for the history file
}

// WritesUnknown as Commit.Writes says that the number of versions is not known.
const WritesUnknown = -1

// Commit describes an attempt that committed.
type Commit struct {
	Txn        TxnID
	Request    RequestID
	Client     uint32
	Class      uint16
	Begin, End Time
	// Writes is how many versions the attempt installs on all shards together, or
	// WritesUnknown. The checker compares it with what was installed.
	Writes int
	Reads  []Read // in program order
	Scans  []Scan
}

// Sink takes the records of a history in order of virtual time. The arguments are
// valid during the call only.
type Sink interface {
	// Commit takes an attempt that committed, with what it read.
	Commit(c *Commit)
	// Abort takes an attempt that aborted after it had installed versions.
	Abort(txn TxnID)
	// Install takes the versions that a shard installed for txn, before or after the
	// record of its end.
	Install(txn TxnID, shard ShardID, writes []Write)
	// MarkUnfinished says that the run stopped while transactions were ending: versions
	// of committed ones may be missing, and so may the ends of those whose versions were
	// installed and read. Neither is then a fault.
	MarkUnfinished()
}
