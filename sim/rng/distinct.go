package rng

import "fmt"

// Distinct draws the keys of one transaction: no key twice, each draw
// distributed as the chooser's given that it is none of those before. A key
// that comes up again is drawn again, never dropped, so a transaction keeps its
// length under any skew. The zero Distinct is ready; it is reused from
// transaction to transaction and then allocates nothing.
type Distinct struct {
	ranks []uint64
	// table holds rank+1 at some place after its hash; unused for short sets,
	// where looking at all is faster.
	table []uint64
	// No rank below free is free. Kept so that a long set does not begin its
	// search for the first free rank from 0 each time.
	free uint64
}

const (
	// distinctLinear is the size up to which a set is searched from end to end.
	distinctLinear = 24
	// plainRedraws is how many times running a draw may meet a rank already
	// taken before the ranks all taken are left out of it.
	plainRedraws = 6
)

// Reset begins a new set.
func (d *Distinct) Reset() {
	d.ranks = d.ranks[:0]
	d.free = 0
}

// Len returns the number of keys drawn since Reset.
func (d *Distinct) Len() int { return len(d.ranks) }

// Next draws a key of c that is none of those drawn since Reset, with the same
// c. It returns ErrExhausted when there is none.
//
// Redrawing alone would take forever where what is left has next to no
// probability (two keys at theta 50). So after a few redraws it draws from the
// ranks beyond the leading ones, which are all taken. The first of these is
// free and none beyond is likelier, so of k ranks taken a draw succeeds with
// probability at least 1/(k+1), and what it returns is distributed as by
// redrawing: leaving out ranks that would be rejected anyway changes nothing.
func (d *Distinct) Next(c Chooser, s *Stream) (uint64, error) {
	n := c.N()
	if uint64(len(d.ranks)) >= n {
		return 0, ErrExhausted
	}
	for range plainRedraws {
		if r := c.RankFrom(s, 0); d.add(r) {
			return c.Key(r), nil
		}
	}
	least := d.firstFree()
	// The bound is for a chooser that breaks its contract; one that keeps it
	// fails so often with probability e^-64.
	for range 64 * (len(d.ranks) + 1) {
		if r := c.RankFrom(s, least); d.add(r) {
			return c.Key(r), nil
		}
	}
	d.add(least)
	return c.Key(least), nil
}

// Draw appends k distinct keys of c to dst. It returns an error, and dst as it
// was, when c has fewer than k.
func (d *Distinct) Draw(dst []uint64, c Chooser, s *Stream, k int) ([]uint64, error) {
	if k < 0 || uint64(k) > c.N() {
		return dst, fmt.Errorf("%d distinct keys of %d: %w", k, c.N(), ErrExhausted)
	}
	d.Reset()
	for range k {
		key, err := d.Next(c, s)
		if err != nil {
			return dst, err
		}
		dst = append(dst, key)
	}
	return dst, nil
}

// add takes rank into the set. It reports false when it was in.
func (d *Distinct) add(rank uint64) bool {
	if len(d.ranks) < distinctLinear {
		for _, r := range d.ranks {
			if r == rank {
				return false
			}
		}
		d.ranks = append(d.ranks, rank)
		return true
	}
	if len(d.ranks) == distinctLinear {
		d.rehash(4 * distinctLinear)
	}
	if i := d.place(rank); d.table[i] != rank+1 {
		d.table[i] = rank + 1
		d.ranks = append(d.ranks, rank)
		if 2*len(d.ranks) > len(d.table) {
			d.rehash(2 * len(d.table))
		}
		return true
	}
	return false
}

// has reports whether rank is in the set.
func (d *Distinct) has(rank uint64) bool {
	if len(d.ranks) <= distinctLinear {
		for _, r := range d.ranks {
			if r == rank {
				return true
			}
		}
		return false
	}
	return d.table[d.place(rank)] == rank+1
}

// place returns where rank is in the table, or where it would go.
func (d *Distinct) place(rank uint64) int {
	i := int(mix(rank) % uint64(len(d.table)))
	for d.table[i] != 0 && d.table[i] != rank+1 {
		if i++; i == len(d.table) {
			i = 0
		}
	}
	return i
}

// rehash puts the whole set into a table of at least size places.
func (d *Distinct) rehash(size int) {
	if len(d.table) < size {
		d.table = make([]uint64, size)
	} else {
		clear(d.table)
	}
	for _, r := range d.ranks {
		d.table[d.place(r)] = r + 1
	}
}

// firstFree returns the least rank not in the set.
func (d *Distinct) firstFree() uint64 {
	for d.has(d.free) {
		d.free++
	}
	return d.free
}
