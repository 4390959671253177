package nodes

import (
	"encoding/binary"
	"time"

	"interleave/sim/event"
	"interleave/txnproto"
)

// What a host does for protocols that put transactions into a global order before
// they run; see txnproto.Protocol.Sequenced.

// Log implements txnproto.Host.
func (h *Host) Log(batch *txnproto.Batch) {
	e := h.c.newEntry(EntryBatch)
	e.Batch.Set(batch)
	for i := range batch.Txns {
		if b := h.sequencing(&batch.Txns[i]); b != nil {
			b.proposed = h.Now()
		}
	}
	h.propose(e)
}

// sequencing returns the branch that waits for its place in a batch, or nil when it has ended.
func (h *Host) sequencing(t *txnproto.BatchTxn) *branch {
	b := h.branches[t.Slot]
	if t.ID == 0 || b.tx.ID != t.ID || b.state != branchWaitingOp {
		return nil
	}
	return b
}

// batchLogged tells the controller that its oldest batch is in the log. The disk's
// time is shared by those in it.
func (h *Host) batchLogged(a *Applied) {
	batch := &a.Entry.Batch
	for i := range batch.Txns {
		if b := h.sequencing(&batch.Txns[i]); b != nil {
			b.synced = min(a.SyncedAt, h.Now())
			b.disk += a.DiskShare / time.Duration(len(batch.Txns))
		}
	}
	h.ctl.(txnproto.Logger).Logged()
}

// splitSequencing books what of a wait d for a place, which ends now, went to the log,
// and returns the rest: the time until the epoch's end.
func (b *branch) splitSequencing(m *txnproto.Msg, d time.Duration, now event.Time) time.Duration {
	if b.synced == 0 {
		return d // aborted before that
	}
	disk, replication := b.synced.Sub(b.proposed), now.Sub(b.synced)
	m.Parts[txnproto.PartDisk] += disk
	m.Parts[txnproto.PartReplication] += replication
	return d - disk - replication
}

// reconnoitre reads a range for a client that wants to know which rows there are.
func (h *Host) reconnoitre(m *txnproto.Msg) {
	m.Result.Rows = h.machine.store.Scan(m.Op.Key, m.Op.End, 0, m.Result.Rows[:0])
	c := int(m.Tx.Client)
	for c >= len(h.scouts) {
		h.scouts = append(h.scouts, scout{})
	}
	if s := &h.scouts[c]; s.txn != m.Tx.ID {
		h.node.work.WastedCPU += s.cpu // of an attempt that has not come back
		*s = scout{txn: m.Tx.ID}
	}
	h.scouts[c].cpu += m.Service
	m.Kind = txnproto.MsgReply
	h.c.toClient(h.node.id, m)
}

// scout is what an attempt's reconnaissance has cost before the attempt has a branch.
type scout struct {
	txn txnproto.TxnID
	cpu time.Duration
}

// scouted takes what the reconnaissance of a newcomer has cost, to be charged to it.
func (h *Host) scouted(i *txnproto.Info) time.Duration {
	c := int(i.Client)
	if c >= len(h.scouts) || h.scouts[c].txn != i.ID {
		return 0
	}
	d := h.scouts[c].cpu
	h.scouts[c] = scout{}
	return d
}

// unvisited ends an attempt that has claims here, perhaps, and has not come to an
// operation: its controller must know, now or when the claims arrive.
func (h *Host) unvisited(m *txnproto.Msg) {
	if !h.c.cfg.Protocol.Sequenced {
		return
	}
	b := h.newBranch(&m.Tx)
	b.rolledBack = m.Reason == txnproto.NoReason // it is no loss that it did not have to come
	h.endBranch(b, txnproto.Aborted)
	h.settle()
}

// batchHead is the encoded size of an empty batch.
const batchHead = 8

func appendBatch(b []byte, batch *txnproto.Batch) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(len(batch.Txns)))
	b = le.AppendUint32(b, uint32(len(batch.Claims)))
	for i := range batch.Txns {
		t := &batch.Txns[i]
		b = le.AppendUint64(b, uint64(t.ID))
		b = le.AppendUint64(b, uint64(t.Place))
		b = le.AppendUint32(b, uint32(t.Slot))
		b = le.AppendUint32(b, uint32(t.Claims))
	}
	for i := range batch.Claims {
		c := &batch.Claims[i]
		b = le.AppendUint64(b, uint64(c.Key))
		b = le.AppendUint64(b, uint64(c.End))
		b = le.AppendUint32(b, uint32(c.Shard))
		b = le.AppendUint32(b, uint32(c.Rows))
		exclusive := byte(0)
		if c.Exclusive {
			exclusive = 1
		}
		b = append(b, exclusive)
	}
	return b
}

// batch reads a batch that ends the buffer, and reports whether it is well formed.
func (r *reader) batch(batch *txnproto.Batch) bool {
	txns, claims := r.u32(), r.u32()
	size := uint64(txns)*txnproto.BatchTxnBytes + uint64(claims)*txnproto.ClaimBytes
	if r.bad || size != uint64(len(r.b)) {
		return false
	}
	sum := uint64(0)
	for range txns {
		t := txnproto.BatchTxn{
			ID: txnproto.TxnID(r.u64()), Place: txnproto.Place(r.u64()), Slot: int32(r.u32()), Claims: int32(r.u32()),
		}
		sum += uint64(uint32(t.Claims))
		batch.Txns = append(batch.Txns, t)
	}
	for range claims {
		c := txnproto.Claim{
			Key: txnproto.Key(r.u64()), End: txnproto.Key(r.u64()), Shard: txnproto.ShardID(r.u32()), Rows: int32(r.u32()),
		}
		exclusive := r.u8()
		c.Exclusive = exclusive == 1
		r.bad = r.bad || exclusive > 1
		batch.Claims = append(batch.Claims, c)
	}
	return !r.bad && sum == uint64(claims)
}
