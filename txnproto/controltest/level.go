package controltest

import (
	"cmp"
	"slices"

	"interleave/txnproto"
	"interleave/txnproto/history"
)

// CheckLevel judges a history against an isolation level with the project's
// checker. Rows of scans count as read one by one, absent ones too.
func CheckLevel(attempts []*Attempt, promised history.Level) *history.Result {
	rec := history.NewRecorder(history.Options{Promised: promised})
	takenBack := map[*Attempt]bool{}
	for _, a := range attempts {
		for _, w := range a.From {
			if w.Outcome == txnproto.Aborted && !takenBack[w] {
				takenBack[w] = true
				rec.Install(history.TxnID(w.ID), history.AllShards, writesOf(w.Exposed))
				rec.Abort(history.TxnID(w.ID))
			}
		}
		writes := writesOf(a.Writes)
		c := history.Commit{Txn: history.TxnID(a.ID), Writes: len(writes)}
		for _, r := range a.Reads {
			c.Reads = append(c.Reads, history.Read{Key: history.Key(r.Key), Version: history.Version(r.Version)})
		}
		rec.Commit(&c)
		if len(writes) > 0 {
			rec.Install(c.Txn, history.AllShards, writes)
		}
	}
	return rec.Check()
}

// writesOf is versions as the history takes them, in key order.
func writesOf(versions []ReadOf) []history.Write {
	var writes []history.Write
	for _, w := range versions {
		writes = append(writes, history.Write{Key: history.Key(w.Key), Version: history.Version(w.Version)})
	}
	slices.SortFunc(writes, func(x, y history.Write) int { return cmp.Compare(x.Key, y.Key) })
	return writes
}
