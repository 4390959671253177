package optimistic

import "interleave/txnproto"

func init() {
	txnproto.Register(&txnproto.Protocol{
		Name:    "occ-forward",
		Family:  "optimistic",
		Promise: "serializable",
		Help:    "optimistic, forward validation: who commits what a running transaction has read aborts it, or itself",
		Source:  "Härder 1984",
		Params: []txnproto.Param{{
			Name: "policy", Kind: txnproto.ParamChoice, Default: "kill", Choices: []string{"kill", "abort"},
			Help: "what gives way to a conflict: the readers that still run (kill) or who asks to commit (abort)",
		}},
		New: func(h txnproto.Host, p txnproto.Params) txnproto.Controller {
			return newForward(h, p.Choice("policy") == "kill")
		},
	})
}

// forward validates what a transaction wrote against what the running have read
// (Härder, Information Systems 9(2), 1984). What it read itself needs no test: who
// overwrote it would have found it running. Who only reads always commits. See
// "Forward validation" in the package comment.
type forward struct {
	shared
	kill    bool
	current index // what the running have read, by slot+1
	touches []nodeID
	victims []int32 // of the member that is being validated
	scanned int     // running members with ranges
}

func newForward(h txnproto.Host, kill bool) *forward {
	c := &forward{shared: newShared(h, false, h.Shards() > 1), kill: kill, current: newIndex()}
	c.rule = c
	return c
}

// access waits where a pending member is about to write: its write phase is a
// critical section in the paper.
func (c *forward) access(m *member, op *txnproto.Op) txnproto.Verdict {
	for m.tx.Slot >= len(c.touches) {
		c.touches = append(c.touches, 0)
	}
	switch op.Kind {
	case txnproto.Read, txnproto.ReadForUpdate, txnproto.Modify, txnproto.Insert:
		if m.tx.Put(op.Key) != nil {
			return txnproto.Granted
		}
		if s := c.pendingWriter(op.Key); s >= 0 {
			return c.wait(m, s, op.Key, op)
		}
		c.noteRead(m, op.Key)
		t := &c.touches[m.tx.Slot]
		*t = c.current.add(op.Key, number(m.tx.Slot)+1, *t)
	case txnproto.Scan:
		if op.Key >= op.End {
			return txnproto.Granted
		}
		r := scanned{interval: interval{op.Key, op.End}}
		if s, k := c.pendingIn(&r); s >= 0 {
			return c.wait(m, s, k, op)
		}
		if len(m.ranges) == 0 {
			c.scanned++
		}
		m.ranges = append(m.ranges, r)
	case txnproto.Write, txnproto.Delete:
	default:
		panic("optimistic: unknown operation")
	}
	return txnproto.Granted
}

// pendingIn returns the slot of a pending member that writes in the range, or -1.
func (c *forward) pendingIn(r *scanned) (int32, txnproto.Key) {
	if c.pending == 0 {
		return -1, 0
	}
	for s := range c.members {
		m := &c.members[s]
		if !m.pending {
			continue
		}
		for i := range m.tx.Puts {
			if k := m.tx.Puts[i].Key; r.has(k) {
				return int32(s), k
			}
		}
	}
	return -1, 0
}

// check looks for running members that have read what m writes.
func (c *forward) check(m *member, v *test) {
	c.victims = c.victims[:0]
	for i := range m.tx.Puts {
		k := m.tx.Puts[i].Key
		for id := c.current.newest(k); id != 0; id = c.current.nodes[id].next {
			c.victim(m, c.current.slot(id))
		}
	}
	if c.scanned > 0 {
		for s := c.oldest; s != 0; s = c.members[s-1].newer {
			o := &c.members[s-1]
			for i := range m.tx.Puts {
				if o.covers(m.tx.Puts[i].Key) {
					c.victim(m, s-1)
					break
				}
			}
		}
	}
	if len(c.victims) > 0 && !c.kill {
		v.fail()
	}
}

func (c *forward) victim(m *member, slot int32) {
	o := &c.members[slot]
	if o != m && !o.doomed {
		c.victims = append(c.victims, slot)
	}
}

// enter takes m from the running and kills who is in conflict with it.
func (c *forward) enter(m *member) {
	c.dropReads(m)
	if m.unknown {
		return
	}
	for _, s := range c.victims {
		o := &c.members[s]
		if o.doomed {
			continue
		}
		o.doomed = true
		if !c.host.Kill(o.tx, txnproto.Validation) {
			panic("optimistic: " + o.id.String() + " runs and cannot be killed")
		}
	}
}

// dropReads forgets what m has read as a running member.
func (c *forward) dropReads(m *member) {
	if m.tx.Slot < len(c.touches) {
		c.current.removeAll(c.touches[m.tx.Slot])
		c.touches[m.tx.Slot] = 0
		if len(m.ranges) > 0 {
			c.scanned--
		}
	}
}

func (c *forward) leave(*member, txnproto.Outcome) {}

// Finish also takes m's reads back when it was running.
func (c *forward) Finish(tx *txnproto.Txn, o txnproto.Outcome) {
	if tx.Slot < len(c.members) && c.members[tx.Slot].id == tx.ID {
		if m := &c.members[tx.Slot]; !m.pending {
			c.dropReads(m)
		}
	}
	c.shared.Finish(tx, o)
}

// Leftover says what is kept though no transaction is open, or "".
func (c *forward) Leftover() string {
	if c.current.heads.Len() > 0 || c.scanned > 0 {
		return "reads of nobody who runs"
	}
	return c.shared.Leftover()
}
