package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// lockMode is what an access must hold: S for reads, U for reads for update, X for
// writes.
type lockMode uint8

const (
	modeS lockMode = iota
	modeU
	modeX
	numModes
)

func (m lockMode) String() string { return [...]string{"S", "U", "X"}[m] }

// excludes reports whether two transactions cannot hold the modes on one item at
// once: X with all, U with U.
func (m lockMode) excludes(o lockMode) bool {
	return m == modeX || o == modeX || m == modeU && o == modeU
}

func (x access) mode() lockMode {
	switch {
	case x.write:
		return modeX
	case x.update:
		return modeU
	default:
		return modeS
	}
}

// discipline says how long locks are kept at least.
type discipline uint8

const (
	twoPhase         discipline = iota // up to the last use and the lock point
	strictTwoPhase                     // X locks to the end
	rigorousTwoPhase                   // all locks to the end
)

// use is the part of a schedule in which a transaction must hold a mode on an item:
// from its first access of that mode to its last, or to its end.
type use struct {
	txn, item   int
	mode        lockMode
	first, last int // accesses that open and close it
	from, to    int // steps
}

// handover is a lock that one transaction must give up before another can have it.
type handover struct{ from, to use }

// bound is one requirement on a transaction's lock point: after step, because of
// why; or later than another's lock point.
type bound struct {
	step int
	why  string
}

// lockPoints decides whether two-phase locking could have let the schedule pass in
// exactly this order. Transactions take S, U and X locks, upgrade while they grow and
// downgrade while they shrink, and may take a lock any time before they need it.
//
// Method. A transaction's lock point is a moment when it holds all the locks it ever
// takes. Given the points, locks held as short as possible are held from the earlier
// of first use and lock point to the later of last use and lock point, and the
// schedule is possible when no two that exclude each other overlap. So of two uses of
// an item that exclude each other the first must end before the second begins, and
// then three things are asked: the first's lock point comes before the second's
// first use, the second's lock point after the first's last use, and the points are
// in that order. These are bounds below, bounds above and an order; the earliest
// points that keep bounds below and order are found along the order, and keep the
// bounds above if any points do.
//
// It returns the points in words, or why there are none.
func (a *analysis) lockPoints(d discipline) (points, why string) {
	uses := a.uses(d)
	n := len(a.members)
	after := make([]bound, n)
	before := make([]bound, n)
	for t, m := range a.members {
		after[t] = bound{-1, ""}
		if m.begun {
			after[t] = bound{m.first, fmt.Sprintf("%v begins at step %d", m.txn, m.first+1)}
		}
		before[t] = bound{m.end, fmt.Sprintf("%v ends at step %d", m.txn, m.last+1)}
	}
	order := make([][]*handover, n)
	for t := range order {
		order[t] = make([]*handover, n)
	}
	for i, u := range uses {
		for _, v := range uses[:i] {
			if u.txn == v.txn || u.item != v.item || !u.mode.excludes(v.mode) {
				continue
			}
			x, y := v, u
			if y.from < x.from {
				x, y = y, x
			}
			if x.to >= y.from {
				return "", a.overlap(x, y)
			}
			order[x.txn][y.txn] = &handover{x, y}
			if y.from < before[x.txn].step {
				before[x.txn] = bound{y.from, fmt.Sprintf("%v must give up %s for %s", a.txn(x.txn), a.items[x.item], a.at(y.first))}
			}
			if x.to > after[y.txn].step {
				after[y.txn] = bound{x.to, fmt.Sprintf("%v cannot have its %v lock on %s, which %v holds for %s", a.txn(y.txn), y.mode, a.items[y.item], a.txn(x.txn), a.heldFor(x))}
			}
		}
	}
	return a.place(after, before, order)
}

func (a *analysis) heldFor(u use) string {
	if a.acc[u.last].step == u.to {
		return a.at(u.last)
	}
	if u.to == never {
		return "the whole schedule, as it does not end"
	}
	return a.op(u.to)
}

func (a *analysis) overlap(x, y use) string {
	if a.acc[x.last].step < y.from {
		return fmt.Sprintf("%s needs an %v lock on %s, which %v keeps from %s to its end", a.at(y.first), y.mode, a.items[y.item], a.txn(x.txn), a.at(x.first))
	}
	return fmt.Sprintf("%s needs an %v lock on %s, which %v holds from %s to %s", a.at(y.first), y.mode, a.items[y.item], a.txn(x.txn), a.at(x.first), a.at(x.last))
}

// uses lists what has to be held, in order of first access.
func (a *analysis) uses(d discipline) []use {
	var out []use
	for i, x := range a.acc {
		mode := x.mode()
		at := slices.IndexFunc(out, func(u use) bool { return u.txn == x.txn && u.item == x.item && u.mode == mode })
		if at < 0 {
			at = len(out)
			out = append(out, use{txn: x.txn, item: x.item, mode: mode, first: i, from: x.step})
		}
		out[at].last, out[at].to = i, x.step
	}
	for i := range out {
		u := &out[i]
		if d == rigorousTwoPhase || d == strictTwoPhase && u.mode == modeX {
			u.to = a.members[u.txn].end
		}
	}
	return out
}

// place finds the earliest lock points along the order. A point is after step base,
// and the rank-th there.
func (a *analysis) place(after, before []bound, order [][]*handover) (points, why string) {
	type point struct{ base, rank int }
	n := len(after)
	at := make([]point, n)
	from := make([]int, n) // whose point it follows, or -1
	for t := range n {
		at[t], from[t] = point{after[t].step, 1}, -1
	}
	// Each round settles at least one more transaction of every chain; a chain that
	// grows in round n is a cycle.
	for round, moved := 0, true; moved; round++ {
		moved = false
		for x := range n {
			for y := range n {
				p := point{at[x].base, at[x].rank + 1}
				if order[x][y] == nil || p.base < at[y].base || p.base == at[y].base && p.rank <= at[y].rank {
					continue
				}
				if round > n {
					return "", a.circle(order)
				}
				at[y], from[y], moved = p, x, true
			}
		}
	}
	for t := range n {
		if at[t].base >= before[t].step {
			return "", a.tooLate(t, after, before[t], from)
		}
	}
	return a.pointsText(func(t int) (int, int) { return at[t].base, at[t].rank }), ""
}

// circle explains lock points that would each have to come before the next.
func (a *analysis) circle(order [][]*handover) string {
	cycle := shortestCycle(len(order), func(i, j int) bool { return order[i][j] != nil })
	var why []string
	for i, x := range cycle[:len(cycle)-1] {
		y := cycle[i+1]
		h := order[x][y]
		why = append(why, fmt.Sprintf("%v before %v, which locks %s after it (%s, then %s)",
			a.txn(x), a.txn(y), a.items[h.from.item], a.at(h.from.first), a.at(h.to.first)))
	}
	return "the lock points would have to come in a circle: " + strings.Join(why, "; ")
}

// tooLate explains a lock point that must come both before and after a step.
func (a *analysis) tooLate(t int, after []bound, before bound, from []int) string {
	chain := []int{t}
	for u := t; from[u] >= 0; {
		u = from[u]
		chain = append(chain, u)
	}
	source := chain[len(chain)-1]
	if len(chain) == 1 {
		return fmt.Sprintf("%s, but by then it lacks a lock: %s", before.why, after[source].why)
	}
	slices.Reverse(chain)
	return fmt.Sprintf("%s, but the lock points come in the order %s, and %s", before.why, arrows(a.txns(chain), ", "), after[source].why)
}

func (a *analysis) pointsText(point func(t int) (base, rank int)) string {
	order := make([]int, len(a.members))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		bx, rx := point(x)
		by, ry := point(y)
		if bx != by {
			return bx - by
		}
		return rx - ry
	})
	out := ""
	for i, t := range order {
		if i > 0 {
			out += ", "
		}
		if base, _ := point(t); base < 0 {
			out += fmt.Sprintf("%v before step 1", a.txn(t))
		} else {
			out += fmt.Sprintf("%v after step %d", a.txn(t), base+1)
		}
	}
	return out
}

func (a *analysis) locking(c Class, d discipline) Verdict {
	points, why := a.lockPoints(d)
	if why != "" {
		return no(c, "%s", why)
	}
	return yes(c, "possible with these lock points: %s", points)
}
