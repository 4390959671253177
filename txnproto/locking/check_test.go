package locking

import "fmt"

// check verifies the table's invariants: lists and tallies agree, nobody holds
// what clashes with another's (but for S on a gap that moved), and nobody waits
// who could be granted.
func (c *twoPhase) check() error {
	t := c.table
	if len(t.woken) > 0 || len(t.changed) > 0 || len(c.looks) > 0 {
		return fmt.Errorf("work is left after the call")
	}
	live := 0
	for i := range t.entries {
		eid := entryID(i)
		if i == 0 || t.index.Get(t.entries[i].key) != int32(eid) {
			continue
		}
		live++
		if err := t.checkEntry(eid); err != nil {
			return fmt.Errorf("key %d: %w\n%s", t.entries[i].key, err, c.String())
		}
	}
	if live != t.index.Len() {
		return fmt.Errorf("%d entries, %d in the index", live, t.index.Len())
	}
	for o, ids := range t.owned {
		for _, id := range ids {
			if err := c.checkAbove(owner(o), id); err != nil {
				return err
			}
			if r := &t.requests[id]; r.owner != owner(o) || r.held == (Lock{}) && !r.waits() {
				return fmt.Errorf("owner %d has a request that is not its own or idle", o)
			}
		}
	}
	for o := range c.branches {
		b := &c.branches[o]
		if b.request != 0 && !t.requests[b.request].waits() {
			return fmt.Errorf("%v waits for what it has", b.id)
		}
	}
	return nil
}

func (t *table) checkEntry(eid entryID) error {
	e := &t.entries[eid]
	if e.granted.n == 0 && e.queue.n == 0 {
		return fmt.Errorf("idle entry kept")
	}
	var held, waited tally
	n := int32(0)
	for g := e.granted.head; g != 0; g = t.requests[g].next {
		r := &t.requests[g]
		n++
		held.add(r.held)
		if r.entry != eid || r.held == (Lock{}) || r.held.Gap == IX || r.held.Gap == SIX {
			return fmt.Errorf("owner %d holds %v", r.owner, r.held)
		}
		for h := e.granted.head; h != 0; h = t.requests[h].next {
			if h != g && !t.requests[h].held.compatible(r.held) {
				return fmt.Errorf("owners %d and %d hold %v and %v", r.owner, t.requests[h].owner, r.held, t.requests[h].held)
			}
		}
		if t.find(r.owner, eid) != g {
			return fmt.Errorf("owner %d does not find its lock", r.owner)
		}
	}
	if n != e.granted.n || held != e.held {
		return fmt.Errorf("granted: %d of %d, tally %v of %v", n, e.granted.n, held, e.held)
	}
	n = 0
	var ahead tally
	newcomers := false
	for q := e.queue.head; q != 0; q = t.requests[q].qnext {
		r := &t.requests[q]
		n++
		waited.add(r.want)
		if r.converts == (r.held == Lock{}) || r.converts && newcomers {
			return fmt.Errorf("owner %d stands in the queue as what it is not", r.owner)
		}
		newcomers = newcomers || !r.converts
		grantable := e.held.allowsBeside(r.held, r.want) && (r.converts || ahead.allows(r.want))
		if grantable {
			return fmt.Errorf("owner %d waits for %v and could be granted", r.owner, r.want)
		}
		if len(t.appendBlockers(nil, q)) == 0 {
			return fmt.Errorf("owner %d waits for nobody", r.owner)
		}
		ahead.add(r.want)
	}
	if n != e.queue.n || waited != e.waited {
		return fmt.Errorf("queue: %d of %d, tally %v of %v", n, e.queue.n, waited, e.waited)
	}
	return nil
}

// checkAbove verifies that who has a lock on a row or gap has the one above it that it needs.
func (c *twoPhase) checkAbove(o owner, id requestID) error {
	r := &c.table.requests[id]
	k := c.table.entries[r.entry].key
	if c.config.granularity == granularityRow || k == tableKey {
		return nil
	}
	if c.config.granularity == granularityTable {
		return fmt.Errorf("%v has a lock at %d below the table", c.branches[o].id, k)
	}
	need, have := IS, c.tableMode(o)
	if m := r.held.join(r.want).Row; m == U || m == X {
		need = IX
	}
	if Join(have, need) != have {
		return fmt.Errorf("%v has %v at %d and %v on the table", c.branches[o].id, r.held.join(r.want), k, have)
	}
	return nil
}
