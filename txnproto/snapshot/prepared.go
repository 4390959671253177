package snapshot

import (
	"interleave/txnproto"
	"interleave/txnproto/keymap"
)

// preparedRows are the rows whose newest version is being decided, each with the
// slot of its writer. There is one writer at most, for it holds the row's lock.
type preparedRows struct {
	rows keymap.Ordered[int32]
}

func (p *preparedRows) add(tx *txnproto.Txn) {
	for i := range tx.Puts {
		p.rows.Set(tx.Puts[i].Key, int32(tx.Slot))
	}
}

func (p *preparedRows) remove(tx *txnproto.Txn) {
	for i := range tx.Puts {
		p.rows.Delete(tx.Puts[i].Key)
	}
}

// within returns the first row of [lo, hi) that is being decided.
func (p *preparedRows) within(lo, hi txnproto.Key) (k txnproto.Key, writer int32, ok bool) {
	if p.rows.Len() == 0 {
		return 0, 0, false
	}
	k, writer, ok = p.rows.Ceil(lo)
	return k, writer, ok && k < hi
}
