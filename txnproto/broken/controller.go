package broken

import (
	"math"

	"interleave/txnproto"
)

// controller stands between a host and a sound controller.
type controller struct {
	variant
	host     *host
	sound    txnproto.Controller
	scans    []scan // by Txn.Slot
	resolved []resolution
	ahead    []txnproto.TxnID // by Txn.Slot: was granted what the sound controller lets wait
}

// scan is a scan that is done row by row.
type scan struct {
	txn  txnproto.TxnID // 0: none under way
	keys []txnproto.Key // still to be asked for
	read txnproto.Op
}

type resolution struct {
	tx *txnproto.Txn
	v  txnproto.Verdict
}

// host is the sound controller's host: it keeps back answers until its call is over.
type host struct {
	txnproto.Host
	c *controller
}

func (h *host) Resolve(tx *txnproto.Txn, v txnproto.Verdict) {
	h.c.resolved = append(h.c.resolved, resolution{tx, v})
}

func (h *host) Shards() int {
	if h.c.alone {
		return 1
	}
	return h.Host.Shards()
}

func (h *host) NewestTS() txnproto.Timestamp {
	if h.c.late {
		return math.MaxUint64
	}
	return h.Host.NewestTS()
}

func (h *host) PrepareTS(tx *txnproto.Txn) txnproto.Timestamp {
	ts := h.Host.PrepareTS(tx)
	if h.c.late {
		return math.MaxUint64
	}
	return ts
}

func (c *controller) Access(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	for tx.Slot >= len(c.scans) {
		c.scans = append(c.scans, scan{})
	}
	defer c.pass()
	if c.hasty && op.Kind != txnproto.Sequence {
		return c.atOnce(tx, op)
	}
	if c.shrink {
		c.sound.(txnproto.Exposer).Shrink(tx, nil)
	}
	if c.share {
		tx.TS = txnproto.Timestamp(tx.ID)/4 + 1
	}
	if c.rows && op.Kind == txnproto.Scan {
		s := &c.scans[tx.Slot]
		*s = scan{txn: tx.ID, keys: s.keys[:0]}
		for k, ok := c.host.Store().NextKey(op.Key); ok && k < op.End; k, ok = c.host.Store().NextKey(k + 1) {
			s.keys = append(s.keys, k)
		}
		return c.nextRow(tx)
	}
	if c.rewrite != nil {
		if op = c.rewrite(op); op == nil {
			return txnproto.Granted
		}
	}
	return c.granted(tx, c.sound.Access(tx, op))
}

// atOnce grants an operation, waiting or not.
func (c *controller) atOnce(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	for tx.Slot >= len(c.ahead) {
		c.ahead = append(c.ahead, 0)
	}
	if c.ahead[tx.Slot] == tx.ID {
		return txnproto.Granted
	}
	own := *op // the host's is over when it is granted
	v := c.sound.Access(tx, &own)
	if v.IsWaiting() {
		c.ahead[tx.Slot] = tx.ID
		return txnproto.Granted
	}
	return v
}

// granted applies what the variant does to an answer.
func (c *controller) granted(tx *txnproto.Txn, v txnproto.Verdict) txnproto.Verdict {
	if r, aborted := v.Aborted(); aborted && r == c.ignore {
		return txnproto.Granted
	}
	if v.IsGranted() && c.release {
		c.sound.Finish(tx, txnproto.Aborted)
	}
	return v
}

func (c *controller) nextRow(tx *txnproto.Txn) txnproto.Verdict {
	s := &c.scans[tx.Slot]
	for len(s.keys) > 0 {
		s.read = txnproto.Op{Kind: txnproto.Read, Key: s.keys[0]}
		s.keys = s.keys[1:]
		if v := c.sound.Access(tx, &s.read); !v.IsGranted() {
			return v
		}
	}
	s.txn = 0
	return txnproto.Granted
}

// pass hands on the answers that were kept back, continuing scans.
func (c *controller) pass() {
	for len(c.resolved) > 0 {
		r := c.resolved[0]
		c.resolved = c.resolved[1:]
		if r.tx.Slot < len(c.ahead) && c.ahead[r.tx.Slot] == r.tx.ID {
			c.ahead[r.tx.Slot] = 0
			continue
		}
		v := c.granted(r.tx, r.v)
		if v.IsGranted() && r.tx.Slot < len(c.scans) && c.scans[r.tx.Slot].txn == r.tx.ID {
			if v = c.nextRow(r.tx); v.IsWaiting() {
				continue
			}
		}
		c.host.Host.Resolve(r.tx, v)
	}
}

func (c *controller) Prepare(tx *txnproto.Txn) txnproto.Verdict {
	defer c.pass()
	return c.sound.Prepare(tx)
}

func (c *controller) Finish(tx *txnproto.Txn, o txnproto.Outcome) {
	if tx.Slot < len(c.scans) {
		c.scans[tx.Slot].txn = 0
	}
	if tx.Slot < len(c.ahead) {
		c.ahead[tx.Slot] = 0
	}
	c.sound.Finish(tx, o)
	c.pass()
}

func (c *controller) Recover(tx *txnproto.Txn) {
	if r, ok := c.sound.(txnproto.Recoverer); ok {
		r.Recover(tx)
	}
}

func (c *controller) Shrink(tx *txnproto.Txn, ahead []txnproto.Op) {
	c.sound.(txnproto.Exposer).Shrink(tx, ahead)
	c.pass()
}

func (c *controller) See(tx *txnproto.Txn, k txnproto.Key) txnproto.Row {
	return c.sound.(txnproto.Exposer).See(tx, k)
}

func (c *controller) SeeRange(tx *txnproto.Txn, lo, hi txnproto.Key, rows []txnproto.Row) []txnproto.Row {
	return c.sound.(txnproto.Exposer).SeeRange(tx, lo, hi, rows)
}

func (c *controller) Seen(tx *txnproto.Txn) bool { return c.sound.(txnproto.Exposer).Seen(tx) }

func (c *controller) Timer(arg uint64) {
	c.sound.(txnproto.Timed).Timer(arg)
	c.pass()
}

func (c *controller) Logged() {
	c.sound.(txnproto.Logger).Logged()
	c.pass()
}

func (c *controller) Receive(from txnproto.ShardID, m *txnproto.Message) {
	c.sound.(txnproto.Messenger).Receive(from, m)
	c.pass()
}

func (c *controller) PeerReset(s txnproto.ShardID) {
	if m, ok := c.sound.(txnproto.Messenger); ok {
		m.PeerReset(s)
		c.pass()
	}
}
