package locking

import (
	"interleave/txnproto"
	"interleave/txnproto/keymap"
)

// The detector finds cycles of waits that span shards. It lives with shard 0's
// controller; the others, and shard 0 itself, tell it of every wait they have
// looked at and of its end. It searches when a wait is told, from that waiter:
// of a cycle's edges one arrives last, and finds the others there. Its victim
// is killed by the shard where it waits, if it still waits for the same; else
// the cycle was none any more (messages were on their way) and counts as a false
// deadlock. This is the centralized scheme of Gray 1978 with waits sent one by
// one rather than whole graphs at intervals.
//
// Edges whose head has released its lock linger until their tail is granted.
// They are harmless: who has released locks has ended, waits for nothing, and
// so is on no cycle, but for the time that news of its end takes.

// Kinds of messages between controllers.
const (
	msgWait    uint8 = iota // Txn waits at the sender for Txns; Args: see the constants
	msgWaitEnd              // the wait has ended
	msgKill                 // the receiver shall abort Txn if it is still in that wait
)

// Arguments of messages.
const (
	argEpoch = iota
	argSlot
	argFirst
	argLocks
	argOps
	argHits
)

type detector struct {
	host   txnproto.Host
	victim victimPolicy

	index  keymap.Map // transaction -> waiter
	nodes  []waiter
	free   []int32
	search uint64
	queue  []int32
	cycle  []cycleStep
}

// waiter is a transaction that waits somewhere.
type waiter struct {
	candidate
	waits []wait

	mark    uint64
	from    int32 // the waiter whose wait led here
	through int   // which of its waits
}

// wait is one of a transaction's waits: a scan can wait in several shards at once.
type wait struct {
	shard txnproto.ShardID
	slot  uint64
	epoch uint64
	on    []txnproto.TxnID
	dead  bool // its end has been asked for
}

type cycleStep struct {
	node int32
	wait int // the wait that leads on around the cycle
}

func newDetector(h txnproto.Host, p victimPolicy) *detector {
	return &detector{host: h, victim: p, nodes: make([]waiter, 1)}
}

// told records that m.Txn waits at shard from, replacing what was known of its
// wait there, and returns its place in the graph.
func (d *detector) told(from txnproto.ShardID, m *txnproto.Message) int32 {
	ref := d.index.Ref(txnproto.Key(m.Txn))
	if *ref == 0 {
		*ref = d.newNode()
	}
	id := *ref
	n := &d.nodes[id]
	n.candidate = candidate{
		m.Txn, txnproto.Timestamp(m.Args[argFirst]),
		int(m.Args[argLocks]), int(m.Args[argOps]), int(m.Args[argHits]),
	}
	w := n.waitAt(from)
	w.slot, w.epoch, w.dead = m.Args[argSlot], m.Args[argEpoch], false
	w.on = append(w.on[:0], m.Txns...)
	return id
}

// waitAt returns the wait at a shard, a new one if there was none.
func (n *waiter) waitAt(s txnproto.ShardID) *wait {
	for i := range n.waits {
		if n.waits[i].shard == s {
			return &n.waits[i]
		}
	}
	if len(n.waits) < cap(n.waits) {
		n.waits = n.waits[:len(n.waits)+1] // with its list's memory
	} else {
		n.waits = append(n.waits, wait{})
	}
	w := &n.waits[len(n.waits)-1]
	w.shard = s
	return w
}

func (d *detector) newNode() int32 {
	if n := len(d.free); n > 0 {
		id := d.free[n-1]
		d.free = d.free[:n-1]
		d.nodes[id].mark = 0
		return id
	}
	d.nodes = append(d.nodes, waiter{})
	return int32(len(d.nodes) - 1)
}

// ended forgets the wait of txn at shard from that has this epoch.
func (d *detector) ended(from txnproto.ShardID, txn txnproto.TxnID, epoch uint64) {
	id := d.index.Get(txnproto.Key(txn))
	if id == 0 {
		return
	}
	for i := range d.nodes[id].waits {
		if w := &d.nodes[id].waits[i]; w.shard == from && w.epoch == epoch {
			d.forget(id, i)
			return
		}
	}
}

func (d *detector) forget(id int32, i int) {
	n := &d.nodes[id]
	last := len(n.waits) - 1
	n.waits[i], n.waits[last] = n.waits[last], n.waits[i]
	n.waits = n.waits[:last]
	if last == 0 {
		d.index.Delete(txnproto.Key(n.txn))
		d.free = append(d.free, id)
	}
}

// lose forgets all waits at a shard whose leader was lost.
func (d *detector) lose(s txnproto.ShardID) {
	for id := range d.nodes {
		for i := range d.nodes[id].waits {
			if d.nodes[id].waits[i].shard == s {
				d.forget(int32(id), i)
				break
			}
		}
	}
}

// next finds a cycle through start, takes its victim's wait out of the graph and
// fills in the order to kill it and the shard that it goes to. It reports false
// when there is no cycle.
func (d *detector) next(start int32, kill *txnproto.Message) (to txnproto.ShardID, ok bool) {
	if !d.findCycle(start) {
		return 0, false
	}
	countCycle(d.host.Stats(), len(d.cycle))
	v := d.cycle[0]
	for _, s := range d.cycle[1:] {
		if d.victim.before(d.nodes[s.node].candidate, d.nodes[v.node].candidate) {
			v = s
		}
	}
	n := &d.nodes[v.node]
	w := &n.waits[v.wait]
	w.dead = true
	*kill = txnproto.Message{Kind: msgKill, Txn: n.txn}
	kill.Args[argEpoch], kill.Args[argSlot] = w.epoch, w.slot
	return w.shard, true
}

func (d *detector) findCycle(start int32) bool {
	d.search++
	d.queue = append(d.queue[:0], start)
	d.nodes[start].mark = d.search
	for i := 0; i < len(d.queue); i++ {
		v := d.queue[i]
		for wi := range d.nodes[v].waits {
			w := &d.nodes[v].waits[wi]
			if w.dead {
				continue
			}
			for _, txn := range w.on {
				u := d.index.Get(txnproto.Key(txn))
				if u == 0 {
					continue
				}
				if u == start {
					d.trace(start, v, wi)
					return true
				}
				if n := &d.nodes[u]; n.mark != d.search {
					n.mark, n.from, n.through = d.search, v, wi
					d.queue = append(d.queue, u)
				}
			}
		}
	}
	return false
}

// trace fills in the cycle that v's wait wi closes.
func (d *detector) trace(start, v int32, wi int) {
	d.cycle = append(d.cycle[:0], cycleStep{v, wi})
	for v != start {
		n := &d.nodes[v]
		d.cycle = append(d.cycle, cycleStep{n.from, n.through})
		v = n.from
	}
}

// sendWait tells the detector whom o waits for.
func (c *twoPhase) sendWait(o owner) {
	b := &c.branches[o]
	who := c.candidate(o)
	m := &c.message
	*m = txnproto.Message{Kind: msgWait, Txn: b.id, Txns: c.blockersOf(b.request)}
	m.Args = [6]uint64{
		argEpoch: b.epoch, argSlot: uint64(o), argFirst: uint64(who.first),
		argLocks: uint64(who.locks), argOps: uint64(who.ops), argHits: uint64(who.hits),
	}
	c.toDetector(m)
}

func (c *twoPhase) sendWaitEnd(b *branch) {
	m := &c.message
	*m = txnproto.Message{Kind: msgWaitEnd, Txn: b.id}
	m.Args[argEpoch] = b.epoch
	c.toDetector(m)
}

func (c *twoPhase) toDetector(m *txnproto.Message) {
	if c.detector == nil {
		c.host.Send(0, m)
		return
	}
	c.detect(0, m)
}

// detect hands the detector a message and sends out its kills.
func (c *twoPhase) detect(from txnproto.ShardID, m *txnproto.Message) {
	d := c.detector
	if m.Kind == msgWaitEnd {
		d.ended(from, m.Txn, m.Args[argEpoch])
		return
	}
	txn := m.Txn // m is overwritten when the end of a wait is sent
	waiter := d.told(from, m)
	var kill txnproto.Message
	for {
		to, ok := d.next(waiter, &kill)
		if !ok {
			return
		}
		if to != 0 {
			c.host.Send(to, &kill)
			continue
		}
		c.kill(&kill)
		if d.index.Get(txnproto.Key(txn)) != waiter {
			return // it was the victim, and is gone
		}
	}
}

// kill aborts the detector's victim if it is still in the wait that it was chosen for.
func (c *twoPhase) kill(m *txnproto.Message) {
	o := owner(m.Args[argSlot])
	if int(o) < len(c.branches) {
		if b := &c.branches[o]; b.id == m.Txn && c.waits(o) && b.epoch == m.Args[argEpoch] {
			c.doom(o, txnproto.Deadlock)
			c.probeAgain(m)
			return
		}
	}
	c.host.Stats().FalseDeadlocks++
	c.probeAgain(m)
}

// Receive takes a message of another shard's controller.
func (c *twoPhase) Receive(from txnproto.ShardID, m *txnproto.Message) {
	switch m.Kind {
	case msgWait, msgWaitEnd:
		if c.detector == nil {
			panic("locking: " + c.host.Shard().String() + " is told of a wait but has no detector")
		}
		c.detect(from, m)
	case msgKill:
		c.kill(m)
	case msgProbe:
		c.probed(m)
	case msgProbeAgain:
		c.newProbe(m)
	default:
		panic("locking: unknown message")
	}
	c.settle()
}

// PeerReset starts afresh with a shard whose controller was lost with its leader.
func (c *twoPhase) PeerReset(s txnproto.ShardID) {
	if c.detector != nil {
		c.detector.lose(s)
	}
	if c.config.detect == detectProbe {
		// Its kills, and the probes that would have followed, may be lost.
		for o := range c.branches {
			if c.waits(owner(o)) {
				c.looks = append(c.looks, owner(o))
			}
		}
	} else if s == 0 {
		for o := range c.branches {
			if c.waits(owner(o)) && c.branches[o].published {
				c.sendWait(owner(o))
			}
		}
	}
	c.settle()
}
