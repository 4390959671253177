package locking

import "interleave/txnproto"

// Granularity
//
// The rows of a shard form one table. With granularity=auto it is the root that
// is locked before its rows, with IS for S below and IX for U or X below (Gray,
// Lorie, Putzolu, Traiger 1976), and released after them. A transaction that holds
// S, SIX or X on the table needs no locks on rows that it reads, with X none on
// those that it writes. With granularity=table nothing but the table is locked.
//
// Escalation turns many locks below into one above. It does not wait: if others
// are in the way, the transaction goes on with rows and tries again when it has a
// quarter more of them, as SQL Server does. The transaction may come to hold X on the
// table although it only wrote some rows and read others.

// tableKey stands for the table in the lock table. No row has it.
const tableKey = endOfKeys - 1

// rowsCovered reports whether a holder of mode on the table has m on every row.
func rowsCovered(mode, m Mode) bool {
	switch mode {
	case None, IS, IX:
		return false
	case S, SIX:
		return m == S
	case U:
		return m == S || m == U
	case X:
		return true
	default:
		panic("locking: unknown mode")
	}
}

// tableMode returns what o holds on the table.
func (c *twoPhase) tableMode(o owner) Mode {
	eid := entryID(c.table.index.Get(tableKey))
	if eid == 0 {
		return None
	}
	if id := c.table.find(o, eid); id != 0 {
		return c.table.requests[id].held.Row
	}
	return None
}

// covered reports whether o needs no lock below the table for m.
func (c *twoPhase) covered(o owner, m Mode) bool {
	return c.config.granularity != granularityRow && rowsCovered(c.tableMode(o), m)
}

// lockAbove locks what must be locked before a row is locked in mode m, and reports
// whether it has. Then covered tells if the row is still to be locked.
func (c *twoPhase) lockAbove(o owner, m Mode) bool {
	switch c.config.granularity {
	case granularityRow:
		return true
	case granularityTable:
		return c.lock(o, tableKey, Lock{Row: m})
	case granularityAuto:
		if rowsCovered(c.tableMode(o), m) {
			return true
		}
		if m == S {
			return c.lock(o, tableKey, Lock{Row: IS})
		}
		return c.lock(o, tableKey, Lock{Row: IX})
	default:
		panic("locking: unknown granularity")
	}
}

// lockRow locks row k in mode m, from the root down.
func (c *twoPhase) lockRow(o owner, k txnproto.Key, m Mode) bool {
	if c.config.granularity != granularityRow {
		if !c.lockAbove(o, m) {
			return false
		}
		if c.branches[o].op.Skip || c.covered(o, m) {
			return true
		}
	}
	if !c.lock(o, k, Lock{Row: m}) {
		return false
	}
	c.escalateIfDue(o)
	return true
}

func (c *twoPhase) escalateIfDue(o owner) {
	after := c.config.escalateAfter
	b := &c.branches[o]
	if after == 0 || b.entering != 0 {
		return
	}
	below := len(c.table.owned[o]) - 1
	if below < max(after, b.escalateAt) {
		return
	}
	if !c.escalate(o) {
		b.escalateAt = below + max(after/4, 1)
	}
}

// escalate exchanges o's locks on rows and gaps for one on the table, if it can be
// had at once. A later rollback to a savepoint keeps it.
func (c *twoPhase) escalate(o owner) bool {
	t := c.table
	m := S
	for _, id := range t.owned[o] {
		r := &t.requests[id]
		if h := r.held.Row; t.entries[r.entry].key != tableKey && (h == U || h == X) {
			m = X
		}
	}
	if !t.free(o, tableKey, Lock{Row: m}) {
		return false
	}
	root, _ := t.acquire(o, tableKey, Lock{Row: m})
	ids := t.owned[o]
	for i := len(ids) - 1; i >= 0; i-- { // from the leaves up
		if id := ids[i]; id != root {
			c.release(id)
		}
	}
	t.owned[o] = append(ids[:0], root)
	b := &c.branches[o]
	b.saved, b.escalateAt = b.saved[:0], 0
	count(c.host.Stats(), "escalations")
	return true
}
