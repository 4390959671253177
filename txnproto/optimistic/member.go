package optimistic

import (
	"interleave/txnproto"
)

// member is a branch as the protocols on shared know it, by Txn.Slot.
type member struct {
	id txnproto.TxnID
	tx *txnproto.Txn

	reads  []seen
	ranges []scanned

	pending bool // validated and not ended
	doomed  bool // being killed
	unknown bool // recovered: what it read is not known
	guards  bool // pending, and nobody may write what it has read
	listed  bool // among the running

	// structural holds the keys of a pending member's writes that add or take away
	// a row.
	structural []txnproto.Key
	writes     nodeID // its touches in the index of writers, while pending
	protected  nodeID // its touches in the index of readers

	older, newer int32 // in the list of the running, slot+1

	waits   bool
	op      *txnproto.Op // what it waits for: an operation, or to commit when nil
	on      int32        // whose end it waits for
	waiters []int32      // who waits for its end

	began moment
	low   txnproto.Timestamp // tictoc: when it commits; before, the first timestamp that will do; 0: not known
}

// seen is a row that was read: its version then, and, under tictoc, from when to
// when that version is known to be the row's.
type seen struct {
	key      txnproto.Key
	version  txnproto.Version
	written  txnproto.Timestamp
	read     txnproto.Timestamp
	interval bool // written and read are known
	extends  bool // nobody can overwrite it before the member's end
}

// scanned is a range that was scanned. The rows that were there are among the reads.
type scanned struct {
	interval
	at      moment
	written txnproto.Timestamp // tictoc: no row of it was taken away later than that
	torn    bool               // tictoc: it shows a commit whose timestamp was not known yet
}

// end makes m empty and keeps its memory.
func (m *member) end() {
	*m = member{
		reads: m.reads[:0], ranges: m.ranges[:0], structural: m.structural[:0], waiters: m.waiters[:0],
	}
}

// change is a row that a committed transaction has added or taken away.
type change struct {
	key txnproto.Key
	at  moment
	ts  txnproto.Timestamp // tictoc: of the commit; 0: not known
}

// changes are the latest changes in order. Those from before the oldest running
// member began are forgotten.
type changes struct {
	queue []change
	head  int
}

func (c *changes) add(x change) { c.queue = append(c.queue, x) }

// since returns those later than at, in order.
func (c *changes) since(at moment) []change {
	i := len(c.queue)
	for i > c.head && c.queue[i-1].at > at {
		i--
	}
	return c.queue[i:]
}

// forget drops those not later than at.
func (c *changes) forget(at moment) {
	for c.head < len(c.queue) && c.queue[c.head].at <= at {
		c.head++
	}
	if 2*c.head >= len(c.queue) {
		n := copy(c.queue, c.queue[c.head:])
		c.queue, c.head = c.queue[:n], 0
	}
}
