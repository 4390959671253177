package controltest

import (
	"cmp"
	"slices"

	"interleave/txnproto/history"
)

// CheckLevel judges a history against an isolation level with the project's
// checker. Rows of scans count as read one by one, absent ones too.
func CheckLevel(attempts []*Attempt, promised history.Level) *history.Result {
	rec := history.NewRecorder(history.Options{Promised: promised})
	for _, a := range attempts {
		var writes []history.Write
		for _, w := range a.Writes {
			writes = append(writes, history.Write{Key: history.Key(w.Key), Version: history.Version(w.Version)})
		}
		slices.SortFunc(writes, func(x, y history.Write) int { return cmp.Compare(x.Key, y.Key) })
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
