package sim

import (
	"fmt"
	"io"
	"slices"

	"interleave/txnproto"
	"interleave/txnproto/history"
)

// recorder gives what happens in a run to the history. The history has types of
// its own, as the judge must not know the judged: this is where they meet.
type recorder struct {
	rec    *history.Recorder
	commit history.Commit
	writes []history.Write
	puts   []txnproto.Put
}

// Committed implements txnproto.Recorder.
func (r *recorder) Committed(c *txnproto.CommitRecord) {
	h := &r.commit
	h.Txn, h.Request = history.TxnID(c.Txn), history.RequestID(c.Request)
	h.Client, h.Class = uint32(c.Client), uint16(c.Class)
	h.Begin, h.End = history.Time(c.Begin), history.Time(c.End)
	h.Writes = c.Wrote
	if c.Wrote < 0 {
		h.Writes = history.WritesUnknown
	}
	h.Reads = appendReads(h.Reads[:0], c.Reads)
	n := len(c.Scans)
	h.Scans = slices.Grow(h.Scans[:0], n)[:n] // keeps the scans' own memory
	for i := range c.Scans {
		s, d := &c.Scans[i], &h.Scans[i]
		d.Lo, d.Hi, d.Shard = history.Key(s.Lo), history.Key(s.Hi), history.ShardID(s.Shard)
		d.Seen = appendReads(d.Seen[:0], s.Seen)
	}
	r.rec.Commit(h)
}

func appendReads(to []history.Read, from []txnproto.ReadVersion) []history.Read {
	for i := range from {
		to = append(to, history.Read{Key: history.Key(from[i].Key), Version: history.Version(from[i].Version)})
	}
	return to
}

func (r *recorder) installed(shard txnproto.ShardID, txn txnproto.TxnID, puts []txnproto.Put) {
	r.writes = r.writes[:0]
	for i := range puts {
		p := &puts[i]
		r.writes = append(r.writes, history.Write{
			Key: history.Key(p.Key), Version: history.Version(p.Version), Tombstone: p.Deleted, Value: int64(p.Value),
		})
	}
	r.rec.Install(history.TxnID(txn), history.ShardID(shard), r.writes)
}

// takenBack tells of writes that others have seen and that were aborted: those with a version.
func (r *recorder) takenBack(shard txnproto.ShardID, txn txnproto.TxnID, puts []txnproto.Put) {
	r.puts = r.puts[:0]
	for i := range puts {
		if puts[i].Version != 0 {
			r.puts = append(r.puts, puts[i])
		}
	}
	r.installed(shard, txn, r.puts)
	r.rec.Abort(history.TxnID(txn))
}

// write writes the history to w.
func (r *recorder) write(w io.Writer, h history.Header) error {
	fw, err := history.NewWriter(w, h)
	if err != nil {
		return err
	}
	if err := r.rec.Replay(fw); err != nil {
		return err
	}
	if err := fw.Close(); err != nil {
		return fmt.Errorf("writing the history: %w", err)
	}
	return nil
}
