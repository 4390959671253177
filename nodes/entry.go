package nodes

import (
	"encoding/binary"
	"fmt"
	"time"

	"interleave/sim/event"
	"interleave/txnproto"
)

// EntryKind is what a log entry does to a shard's replicated state.
type EntryKind uint8

// The kinds.
const (
	EntryNoop      EntryKind = iota // nothing; carries a leader's term or the commit index
	EntryCommit                     // the decision to commit, with this shard's own writes
	EntryPrepare                    // a participant is ready: its writes, not yet visible
	EntryFinish                     // a participant's prepared branch ends as Outcome says
	EntryBatch                      // a sequencer's batch; the rows know nothing of it
	EntryCommitAll                  // an EntryCommit with the participants' writes too
	EntryInstall                    // a participant's writes of an EntryCommitAll
)

// Entry is one entry of a shard's log.
type Entry struct {
	Kind    EntryKind
	Outcome txnproto.Outcome // EntryFinish
	Attempt int32
	Client  txnproto.ClientID
	Request txnproto.RequestID
	Txn     txnproto.TxnID
	TS      txnproto.Timestamp
	FirstTS txnproto.Timestamp
	// CommitTS is drawn at the decision, under protocols that number versions by
	// it (EntryCommit, and EntryFinish that commits).
	CommitTS txnproto.Timestamp
	// Watermark is the oldest timestamp that a snapshot may still read at: older
	// versions may go. 0: none may.
	Watermark txnproto.Timestamp
	// Coordinator is the shard that decides (EntryPrepare).
	Coordinator txnproto.ShardID
	// Participants are the other shards that wait for the decision (EntryCommit).
	Participants []txnproto.ShardID
	// Puts are the shard's writes. Apply sets their versions, but for those of an entry
	// that is Versioned: they have theirs from when they were exposed.
	Puts      []txnproto.Put
	Versioned bool
	// Forget are decisions that every participant has carried out.
	Forget []txnproto.TxnID
	// Batch is what an EntryBatch records: transactions, the locks they will want, and
	// their places.
	Batch txnproto.Batch
	// Remote are the participants' writes (EntryCommitAll), those of the first first, and
	// Remotes how many each has.
	Remote  []txnproto.Put
	Remotes []int32

	// Tag is the proposer's own mark, meaningful at the node and term that proposed it.
	Tag uint64

	// The quorum model's own marks.
	refs      int32         // replicas that have not applied it yet
	syncedAt  event.Time    // when the leader's disk had it
	diskShare time.Duration // its share of that sync
}

// reset empties e, whose slices keep their memory.
func (e *Entry) reset() {
	participants, puts, forget, batch := e.Participants[:0], e.Puts[:0], e.Forget[:0], e.Batch
	remote, remotes := e.Remote[:0], e.Remotes[:0]
	*e = Entry{} // in place: a literal with these fields would be built elsewhere and copied
	e.Participants, e.Puts, e.Forget, e.Batch, e.Remote, e.Remotes = participants, puts, forget, batch, remote, remotes
	e.Batch.Reset()
}

const (
	putBytes     = 17
	versionBytes = 8 // more, in an entry that is Versioned

	versionedBit = 0x80 // of the encoded kind
)

// perPut is what each write takes, encoded.
func (e *Entry) perPut() int {
	if e.Versioned {
		return putBytes + versionBytes
	}
	return putBytes
}

// Size is the entry's encoded size plus the rows' payload, in bytes.
func (e *Entry) Size(valueBytes int) int {
	n := 82 + 4*len(e.Participants) + 8*len(e.Forget) + len(e.Puts)*(e.perPut()+valueBytes)
	if e.Kind == EntryBatch {
		n += batchHead + e.Batch.Bytes()
	}
	if e.Kind == EntryCommitAll {
		n += 4*len(e.Remotes) + len(e.Remote)*(putBytes+valueBytes)
	}
	return n
}

// AppendTo appends the encoded entry to b. Versions are encoded only where the entry is
// Versioned: applying gives the others.
func (e *Entry) AppendTo(b []byte) []byte {
	le := binary.LittleEndian
	kind := byte(e.Kind)
	if e.Versioned {
		kind |= versionedBit
	}
	b = append(b, kind, byte(e.Outcome))
	b = le.AppendUint32(b, uint32(e.Attempt))
	b = le.AppendUint32(b, uint32(e.Client))
	b = le.AppendUint64(b, uint64(e.Request))
	b = le.AppendUint64(b, uint64(e.Txn))
	b = le.AppendUint64(b, uint64(e.TS))
	b = le.AppendUint64(b, uint64(e.FirstTS))
	b = le.AppendUint64(b, uint64(e.CommitTS))
	b = le.AppendUint64(b, uint64(e.Watermark))
	b = le.AppendUint32(b, uint32(e.Coordinator))
	b = le.AppendUint64(b, e.Tag)
	b = le.AppendUint32(b, uint32(len(e.Participants)))
	b = le.AppendUint32(b, uint32(len(e.Puts)))
	b = le.AppendUint32(b, uint32(len(e.Forget)))
	for _, s := range e.Participants {
		b = le.AppendUint32(b, uint32(s))
	}
	for i := range e.Puts {
		b = appendPut(b, &e.Puts[i])
		if e.Versioned {
			b = le.AppendUint64(b, uint64(e.Puts[i].Version))
		}
	}
	for _, t := range e.Forget {
		b = le.AppendUint64(b, uint64(t))
	}
	if e.Kind == EntryBatch {
		b = appendBatch(b, &e.Batch)
	}
	if e.Kind == EntryCommitAll {
		b = appendRemote(b, e)
	}
	return b
}

func appendPut(b []byte, p *txnproto.Put) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(p.Key))
	b = le.AppendUint64(b, uint64(p.Value))
	if p.Deleted {
		return append(b, 1)
	}
	return append(b, 0)
}

// Decode reads an encoded entry into e.
func (e *Entry) Decode(b []byte) error {
	r := reader{b: b}
	kind := r.u8()
	*e = Entry{
		Kind:        EntryKind(kind &^ versionedBit),
		Versioned:   kind&versionedBit != 0,
		Outcome:     txnproto.Outcome(r.u8()),
		Attempt:     int32(r.u32()),
		Client:      txnproto.ClientID(r.u32()),
		Request:     txnproto.RequestID(r.u64()),
		Txn:         txnproto.TxnID(r.u64()),
		TS:          txnproto.Timestamp(r.u64()),
		FirstTS:     txnproto.Timestamp(r.u64()),
		CommitTS:    txnproto.Timestamp(r.u64()),
		Watermark:   txnproto.Timestamp(r.u64()),
		Coordinator: txnproto.ShardID(r.u32()),
		Tag:         r.u64(),
	}
	np, nw, nf := r.u32(), r.u32(), r.u32()
	last := e.Kind == EntryBatch || e.Kind == EntryCommitAll // more follows the lists
	if lists := uint64(np)*4 + uint64(nw)*uint64(e.perPut()) + uint64(nf)*8; lists > uint64(len(r.b)) || !last && lists < uint64(len(r.b)) {
		r.bad = true
	}
	if r.bad || e.Kind > EntryInstall || e.Outcome > txnproto.Aborted {
		return fmt.Errorf("nodes: log entry of %d bytes is malformed", len(b))
	}
	if np > 0 {
		e.Participants = make([]txnproto.ShardID, np)
		for i := range e.Participants {
			e.Participants[i] = txnproto.ShardID(r.u32())
		}
	}
	if nw > 0 {
		e.Puts = make([]txnproto.Put, nw)
		for i := range e.Puts {
			e.Puts[i] = r.put()
			if e.Versioned {
				e.Puts[i].Version = txnproto.Version(r.u64())
			}
		}
	}
	if nf > 0 {
		e.Forget = make([]txnproto.TxnID, nf)
		for i := range e.Forget {
			e.Forget[i] = txnproto.TxnID(r.u64())
		}
	}
	if e.Kind == EntryCommitAll && !r.remote(e) {
		return fmt.Errorf("nodes: log entry of %d bytes has malformed writes of participants", len(b))
	}
	if e.Kind == EntryBatch && !r.batch(&e.Batch) {
		return fmt.Errorf("nodes: log entry of %d bytes has a malformed batch", len(b))
	}
	return nil
}

// reader takes little-endian fields off a buffer and remembers running short.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if len(r.b) < n {
		r.bad = true
		return make([]byte, n)
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) u8() uint8   { return r.take(1)[0] }
func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

func (r *reader) put() txnproto.Put {
	return txnproto.Put{Key: txnproto.Key(r.u64()), Value: txnproto.Value(r.u64()), Deleted: r.u8() != 0}
}
