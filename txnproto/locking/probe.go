package locking

import (
	"interleave/txnproto"
	"interleave/txnproto/keymap"
)

// Edge chasing
//
// With detect=probe there is no detector. A shard where T1 begins to wait for T2 sends
// a probe of T1's wait after T2: to all other shards, as it does not know where
// T2 waits, if it does (the controllers of Chandy, Misra and Haas 1983 know it of
// their processes). A shard where T2 waits sends the probe on after those that T2
// waits for. A shard that finds T1 among these has found a cycle.
//
// Cycles within a shard are found by its own search at the same time, hence a probe
// is sent on after those only who do not wait at the shard that sends it (and scans,
// which may wait at several), and no member is asked after twice for one wait and shard: seen remembers that for the last
// probes, and a bound on the hops ends the others.
//
// A probe carries the best victim on its way so far, so that two members of a cycle
// who both detect it choose the same one (in the paper, who detects it is the victim).
// The shard where the victim waits kills it if it is still in that wait; else
// the deadlock was broken already, or never was one, and counts as false. Unless
// the victim is T1, T1 may be on further cycles, and a new probe is sent; a shard
// that has found a cycle looks for no more of them with the same probe.
//
// Of a cycle's waits one begins last, and its probe meets all the others. A
// probe lost with a leader was on its way to waits that are lost with it.

// Kinds of messages, beside those of the detector.
const (
	msgProbe      = msgKill + 1 + iota // Txn's wait leads to each of Txns; Args: see the constants
	msgProbeAgain                      // a cycle through Txn, which waits at the receiver, is broken
)

// Arguments of a msgKill after a probe, and of a msgProbeAgain.
const (
	argNumber = argFirst // the probe's number
	argOrigin = argLocks // 1 more than the shard that shall probe again for Txns[0]; 0: none
)

// Arguments of probes.
const (
	probeNumber = iota // tells it from its initiator's others; a later one's is larger
	probeFirst         // the victim so far: its request's first timestamp,
	probeVictim        // its id,
	probeWait          // the epoch of its wait,
	probeAt            // its shard and its slot; and the probe's origin and hops so far,
	probeWork          // its locks, operations and hits
)

const (
	probesSeen = 1 << 10 // probes that a shard remembers
	maxHops    = 1<<8 - 1
)

// prober is what a shard knows of probes.
type prober struct {
	seen     []seenProbe // a ring
	seenAt   keymap.Map  // initiator and origin -> place in seen + 1
	nextSeen int
	probes   []hop // scratch: the search of one probe here
	targets  []txnproto.TxnID
	convicts []txnproto.TxnID
	index    keymap.Map // waiting transactions here -> owner + 1
}

// seenProbe says after whom a probe was sent on here.
type seenProbe struct {
	who    txnproto.Key // initiator and origin; 0: none
	number uint64
	done   bool // it has found a cycle here
	after  []txnproto.TxnID
}

// probe names a probe.
type probe struct {
	initiator txnproto.TxnID
	origin    txnproto.ShardID // where its wait is
	number    uint64
}

// key names a probe but for its number.
func (p probe) key() txnproto.Key { return txnproto.Key(p.initiator)<<12 | txnproto.Key(p.origin) }

// hop is a waiter that a probe has reached, with the best victim on the way to it.
type hop struct {
	o      owner
	victim probeVictimRef
	hops   int
}

// probeVictimRef names a wait at some shard, for its killing.
type probeVictimRef struct {
	candidate
	shard txnproto.ShardID
	slot  uint64
	epoch uint64
}

func (c *twoPhase) victimRef(o owner) probeVictimRef {
	return probeVictimRef{c.candidate(o), c.host.Shard(), uint64(o), c.branches[o].epoch}
}

// better returns the one of a, on the way so far, and o that the policy prefers.
func (c *twoPhase) better(a probeVictimRef, o owner) probeVictimRef {
	if b := c.victimRef(o); c.config.victim.before(b.candidate, a.candidate) {
		return b
	}
	return a
}

// startProbe sends out a probe of o's wait.
func (c *twoPhase) startProbe(o owner) {
	c.epoch++
	c.branches[o].probe = c.epoch
	c.chase(probe{c.branches[o].id, c.host.Shard(), c.epoch}, hop{o, c.victimRef(o), 1})
}

// chase goes on with a probe from start, which waits here.
func (c *twoPhase) chase(p probe, start hop) {
	c.search++
	search := c.search
	c.branches[start.o].mark = search
	c.probes = append(c.probes[:0], start)
	for i := 0; i < len(c.probes); i++ {
		h := c.probes[i]
		c.targets = c.targets[:0]
		closes := false
		c.blockers = c.table.appendBlockers(c.blockers[:0], c.branches[h.o].request)
		for _, u := range c.blockers {
			b := &c.branches[u]
			switch {
			case b.id == p.initiator:
				// Where it began, the shard's own search has looked already.
				closes = b.id != c.branches[start.o].id
			case b.mark == search:
			case c.waits(u):
				b.mark = search
				c.probes = append(c.probes, hop{u, c.better(h.victim, u), h.hops + 1})
				if b.op.Kind == txnproto.Scan && c.firstTime(p, b.id) {
					c.targets = append(c.targets, b.id) // it may wait elsewhere as well
				}
			case c.firstTime(p, b.id):
				b.mark = search
				c.targets = append(c.targets, b.id)
			}
		}
		if len(c.targets) > 0 && h.hops < maxHops {
			c.sendProbe(p, h)
		}
		if closes {
			c.convict(p, h)
			return
		}
	}
}

// sendProbe asks all other shards after c.targets, whom h waits for.
func (c *twoPhase) sendProbe(p probe, h hop) {
	v := h.victim
	m := &c.message
	*m = txnproto.Message{Kind: msgProbe, Txn: p.initiator, Txns: c.targets}
	const top = 1<<20 - 1
	m.Args = [6]uint64{
		probeNumber: p.number, probeFirst: uint64(v.first), probeVictim: uint64(v.txn), probeWait: v.epoch,
		probeAt:   uint64(h.hops)<<56 | uint64(p.origin)<<44 | uint64(v.shard)<<32 | v.slot,
		probeWork: uint64(min(v.locks, top))<<40 | uint64(min(v.ops, top))<<20 | uint64(min(v.hits, top)),
	}
	for s := txnproto.ShardID(0); int(s) < c.host.Shards(); s++ {
		if s != c.host.Shard() {
			c.host.Send(s, m)
			count(c.host.Stats(), "probes")
		}
	}
}

// probed takes a probe from another shard.
func (c *twoPhase) probed(m *txnproto.Message) {
	const low, lowShard = 1<<20 - 1, 1<<12 - 1
	at, work := m.Args[probeAt], m.Args[probeWork]
	p := probe{m.Txn, txnproto.ShardID(at >> 44 & lowShard), m.Args[probeNumber]}
	v := probeVictimRef{
		candidate{
			txnproto.TxnID(m.Args[probeVictim]), txnproto.Timestamp(m.Args[probeFirst]),
			int(work >> 40), int(work >> 20 & low), int(work & low),
		},
		txnproto.ShardID(at >> 32 & lowShard), at & (1<<32 - 1), m.Args[probeWait],
	}
	for _, txn := range m.Txns {
		o := owner(c.index.Get(txnproto.Key(txn)) - 1)
		if o == nobody || !c.waits(o) || !c.firstTime(p, txn) {
			continue
		}
		c.chase(p, hop{o, c.better(v, o), int(at>>56) + 1})
	}
}

// convict orders the victim of the cycle that h closes to be killed.
func (c *twoPhase) convict(p probe, h hop) {
	c.seen[c.seenAt.Get(p.key())-1].done = true // it has come here with firstTime
	countCycle(c.host.Stats(), h.hops)
	kill := txnproto.Message{Kind: msgKill, Txn: h.victim.txn}
	kill.Args[argEpoch], kill.Args[argSlot] = h.victim.epoch, h.victim.slot
	if h.victim.txn != p.initiator {
		kill.Args[argNumber] = p.number
		kill.Args[argOrigin] = uint64(p.origin) + 1
		kill.Txns = append(c.convicts[:0], p.initiator)
		c.convicts = kill.Txns
	}
	if h.victim.shard == c.host.Shard() {
		c.kill(&kill)
	} else {
		c.host.Send(h.victim.shard, &kill)
	}
}

// probeAgain has a probe sent for the initiator of one that has found its cycle.
func (c *twoPhase) probeAgain(m *txnproto.Message) {
	if m.Args[argOrigin] == 0 {
		return
	}
	c.message = txnproto.Message{Kind: msgProbeAgain, Txn: m.Txns[0]}
	c.message.Args[argNumber] = m.Args[argNumber]
	if origin := txnproto.ShardID(m.Args[argOrigin] - 1); origin != c.host.Shard() {
		c.host.Send(origin, &c.message)
		return
	}
	c.newProbe(&c.message)
}

// newProbe has a wait here looked at again, unless that is done or it is over.
func (c *twoPhase) newProbe(m *txnproto.Message) {
	o := owner(c.index.Get(txnproto.Key(m.Txn)) - 1)
	if o != nobody && c.branches[o].probe == m.Args[argNumber] {
		c.looks = append(c.looks, o)
	}
}

// firstTime reports whether a probe is after txn here for the first time, and notes
// that it was. A probe that its initiator has sent a later one than is over.
func (c *twoPhase) firstTime(p probe, txn txnproto.TxnID) bool {
	who := p.key()
	at := c.seenAt.Get(who) - 1
	if at < 0 {
		if len(c.seen) < probesSeen {
			c.seen = append(c.seen, seenProbe{})
		}
		at = int32(c.nextSeen)
		c.nextSeen = (c.nextSeen + 1) % probesSeen
		s := &c.seen[at]
		if s.who != 0 {
			c.seenAt.Delete(s.who)
		}
		s.who, s.number, s.done, s.after = who, p.number, false, s.after[:0]
		*c.seenAt.Ref(who) = at + 1
	}
	s := &c.seen[at]
	switch {
	case p.number < s.number, p.number == s.number && s.done:
		return false
	case p.number > s.number:
		s.number, s.done, s.after = p.number, false, s.after[:0]
	}
	for _, t := range s.after {
		if t == txn {
			return false
		}
	}
	s.after = append(s.after, txn)
	return true
}
