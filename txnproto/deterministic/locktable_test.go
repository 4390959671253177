package deterministic

import (
	"fmt"
	"slices"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// model is the rule that the table follows, without queues: who has come earlier and
// has not gone is in the way of whoever claims the same, one of them exclusively.
type model struct {
	claims map[entryID][]txnproto.Claim
	order  []entryID
}

func (m *model) ready(o entryID) bool {
	for _, p := range m.order {
		if p == o {
			return true
		}
		for i := range m.claims[p] {
			for j := range m.claims[o] {
				if clash(&m.claims[p][i], &m.claims[o][j]) {
					return false
				}
			}
		}
	}
	panic("not in the model")
}

func clash(a, b *txnproto.Claim) bool {
	end := func(c *txnproto.Claim) txnproto.Key {
		if c.Ranged() {
			return c.End
		}
		return c.Key + 1
	}
	return (a.Exclusive || b.Exclusive) && a.Key < end(b) && b.Key < end(a)
}

func randomClaims(r *rng.Stream) []txnproto.Claim {
	var claims []txnproto.Claim
	for range 1 + r.Uint64n(4) {
		c := txnproto.Claim{Key: txnproto.Key(r.Uint64n(12)), Exclusive: r.Uint64n(2) == 0}
		if r.Uint64n(4) == 0 {
			c.Exclusive, c.End = false, c.Key+1+txnproto.Key(r.Uint64n(6))
		}
		claims = append(claims, c)
	}
	return txnproto.SortClaims(claims)
}

// TestTableAgreesWithModel lets random owners come and go, those who have all their
// locks and those who have not.
func TestTableAgreesWithModel(t *testing.T) {
	for seed := range rng.Seed(40) {
		r := seed.Stream("table")
		tab := newTable()
		m := model{claims: map[entryID][]txnproto.Claim{}}
		woken := map[entryID]bool{} // ready, as the table has said
		next := entryID(1)
		for step := range 400 {
			if len(m.order) < 12 && r.Uint64n(2) == 0 {
				claims := randomClaims(r)
				m.order, m.claims[next] = append(m.order, next), claims
				tab.claim(next, claims)
				woken[next] = tab.owner(next).missing == 0
				next++
			} else if n := len(m.order); n > 0 {
				o := m.order[r.Uint64n(uint64(n))]
				m.order = slices.Delete(m.order, slices.Index(m.order, o), slices.Index(m.order, o)+1)
				tab.release(o)
				for _, w := range tab.woken {
					if woken[w] {
						t.Fatalf("seed %d, step %d: %d is woken twice", seed, step, w)
					}
					woken[w] = true
				}
				tab.woken = tab.woken[:0]
			}
			for _, o := range m.order {
				if got, want := tab.owner(o).missing == 0, m.ready(o); got != want || got != woken[o] {
					t.Fatalf("seed %d, step %d: %d with %v: ready %v, told %v, want %v", seed, step, o, m.claims[o], got, woken[o], want)
				}
			}
			if err := tab.check(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
		for _, o := range m.order {
			tab.release(o)
		}
		if tab.index.Len() != 0 || len(tab.spans) != 0 || tab.ordered != nil && tab.ordered.Len() != 0 {
			t.Fatalf("seed %d: %d rows, %d ranges are left", seed, tab.index.Len(), len(tab.spans))
		}
	}
}

// check verifies the table's structure and the invariant of ranges.
func (t *table) check() error {
	missing := map[entryID]int32{}
	for id := range t.rows {
		r := &t.rows[id]
		if id == 0 || t.index.Get(r.key) != int32(id) {
			continue
		}
		waiting, prev, first := int32(0), requestID(0), requestID(0)
		owners := map[entryID]bool{}
		for q := r.head; q != 0; q = t.requests[q].next {
			x := &t.requests[q]
			if x.prev != prev || x.row != rowID(id) || owners[x.owner] {
				return fmt.Errorf("key %d: request %d of %d is linked wrongly", r.key, q, x.owner)
			}
			owners[x.owner] = true
			prev = q
			if !x.granted {
				waiting++
				missing[x.owner]++
				if first == 0 {
					first = q
				}
			} else if first != 0 {
				return fmt.Errorf("key %d: %d has overtaken", r.key, x.owner)
			}
		}
		if r.tail != prev || r.waiting != waiting || r.next != first || r.head == 0 {
			return fmt.Errorf("key %d: %+v, want %d waiting from %d", r.key, *r, waiting, first)
		}
		for _, s := range t.spans {
			if s.lo <= r.key && r.key < s.hi && !owners[s.owner] {
				return fmt.Errorf("key %d is in a range of %d, who is not in its queue", r.key, s.owner)
			}
		}
	}
	for o := range t.owners {
		if t.owners[o].missing != missing[entryID(o)] {
			return fmt.Errorf("%d misses %d, want %d", o, t.owners[o].missing, missing[entryID(o)])
		}
	}
	return nil
}

// TestTableAllocatesNothing in steady state.
func TestTableAllocatesNothing(t *testing.T) {
	for _, ranged := range []bool{false, true} {
		tab := newTable()
		r := rng.Seed(1).Stream("claims")
		sets := make([][]txnproto.Claim, 64)
		for i := range sets {
			for len(sets[i]) == 0 || slices.ContainsFunc(sets[i], func(c txnproto.Claim) bool { return c.Ranged() }) != ranged {
				sets[i] = randomClaims(r)
			}
		}
		n := 0
		run := func() {
			for range 8 {
				n++
				tab.claim(entryID(1+n%8), sets[n%len(sets)])
			}
			for o := range entryID(8) {
				tab.release(o + 1)
			}
			tab.woken = tab.woken[:0]
		}
		for range 200 {
			run()
		}
		if got := testing.AllocsPerRun(200, run); got != 0 {
			t.Errorf("ranges %v: %v allocations", ranged, got)
		}
	}
}
