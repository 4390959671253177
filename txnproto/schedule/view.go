package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of the searches over serial orders. Beyond them the verdict is Unknown.
const (
	MaxViewTxns       = 20 // view serializability: time and memory grow as 2^n
	MaxFinalStateTxns = 7  // final-state serializability: time grows as n!
)

// viewProblem is what a serial order has to reproduce: for each transaction, where
// its reads from outside come from, and who writes each item last.
//
// The definition is that of Yannakakis, "Serializability by locking", JACM 31(2),
// 1984, as in Bernstein, Hadzilacos and Goodman, section 2.6: every read reads from
// the same write, and the last writes are the same.
type viewProblem struct {
	a      *analysis
	n      int         // transactions of the projection
	writes [][]bool    // [txn][item]
	reads  [][]extRead // [txn]
	final  []int       // [item]: the last writer, or initial
}

type extRead struct {
	item   int
	source int // dense position in alive, or initial
	access int
}

// view builds the problem, or says why no serial order can solve it.
func (a *analysis) view() (p *viewProblem, impossible string) {
	p = &viewProblem{a: a, n: len(a.alive)}
	place := make([]int, len(a.members))
	for i, t := range a.alive {
		place[t] = i
	}
	last := map[[2]int]int{} // transaction, item: its last write
	p.final = slices.Repeat([]int{initial}, len(a.items))
	for range a.alive {
		p.writes = append(p.writes, make([]bool, len(a.items)))
	}
	p.reads = make([][]extRead, p.n)
	for _, k := range a.kept {
		if x := a.acc[k]; x.write {
			last[[2]int{x.txn, x.item}] = k
			p.writes[place[x.txn]][x.item] = true
			p.final[x.item] = place[x.txn]
		}
	}
	for i, k := range a.kept {
		r := a.acc[k]
		if r.write {
			continue
		}
		src, own := a.projected(i)
		switch {
		case own != initial && src != own:
			return nil, fmt.Sprintf("%s reads the write of %s, though %v wrote %s itself before: serially it would read its own",
				a.at(k), a.at(src), a.txn(r.txn), a.items[r.item])
		case own != initial:
			continue
		case src != initial && last[[2]int{a.acc[src].txn, r.item}] != src:
			return nil, fmt.Sprintf("%s reads what %s wrote, and %v writes %s again later: serially nobody sees the first of the two",
				a.at(k), a.at(src), a.txn(a.acc[src].txn), a.items[r.item])
		}
		e := extRead{r.item, initial, k}
		if src != initial {
			e.source = place[a.acc[src].txn]
		}
		reads := &p.reads[place[r.txn]]
		for _, o := range *reads {
			if o.item == e.item && o.source != e.source {
				return nil, fmt.Sprintf("%s and %s read different writes of %s: serially both would read the same",
					a.at(o.access), a.at(k), a.items[r.item])
			}
		}
		*reads = append(*reads, e)
	}
	return p, ""
}

// projected returns the write that kept access i reads from in the projection, and
// the reader's own last write of the item before it.
func (a *analysis) projected(i int) (src, own int) {
	r := a.acc[a.kept[i]]
	src, own = initial, initial
	for _, k := range a.kept[:i] {
		w := a.acc[k]
		if w.write && w.item == r.item {
			src = k
			if w.txn == r.txn {
				own = k
			}
		}
	}
	return src, own
}

// orders enumerates the view equivalent serial orders. It places one transaction
// after another; one may stand next when its reads find what they need last written
// and it hides nothing that a transaction not yet placed needs. Whether the rest can
// be placed then depends only on the set that has been, so that a set that failed
// is not tried again.
func (p *viewProblem) orders(list int) Orders {
	out := Orders{List: [][]Txn{}}
	names := p.a.txns(p.a.alive)
	failed := make([]bool, 1<<p.n)
	order := make([]int, 0, p.n)
	last := slices.Repeat([]int{initial}, len(p.final))
	var place func(placed uint32) bool
	place = func(placed uint32) bool {
		if len(order) == p.n {
			out.add(list, names, order)
			return true
		}
		some := false
		for t := range p.n {
			after := placed | 1<<t
			if placed == after || failed[after] || out.More || !p.fits(t, placed, last) {
				continue
			}
			saved := slices.Clone(last)
			for it, w := range p.writes[t] {
				if w {
					last[it] = t
				}
			}
			order = append(order, t)
			if place(after) {
				some = true
			}
			order = order[:len(order)-1]
			last = saved
		}
		failed[placed] = !some && !out.More
		return some
	}
	place(0)
	return out
}

func (p *viewProblem) fits(t int, placed uint32, last []int) bool {
	for _, r := range p.reads[t] {
		if last[r.item] != r.source {
			return false
		}
	}
	for it, w := range p.writes[t] {
		if !w {
			continue
		}
		if f := p.final[it]; f != t && placed&(1<<f) != 0 {
			return false // f writes it last
		}
		for u := range p.n {
			if u == t || placed&(1<<u) != 0 {
				continue
			}
			for _, r := range p.reads[u] {
				if r.item == it && r.source == last[it] {
					return false // u still needs what t would hide
				}
			}
		}
	}
	return true
}

// broken says what first differs when the transactions run in that serial order.
func (p *viewProblem) broken(order []int) string {
	a := p.a
	last := slices.Repeat([]int{initial}, len(p.final))
	for _, t := range order {
		for _, r := range p.reads[t] {
			if last[r.item] != r.source {
				return fmt.Sprintf("%s would read %s from %s, not from %s",
					a.s.Ops[a.acc[r.access].step].name(), a.items[r.item], p.writer(last[r.item]), p.writer(r.source))
			}
		}
		for it, w := range p.writes[t] {
			if w {
				last[it] = t
			}
		}
	}
	for it := range last {
		if last[it] != p.final[it] {
			return fmt.Sprintf("the last write of %s would be %s's, not %s's", a.items[it], p.writer(last[it]), p.writer(p.final[it]))
		}
	}
	return ""
}

func (p *viewProblem) writer(t int) string {
	if t == initial {
		return "the initial state"
	}
	return p.a.txn(p.a.alive[t]).String()
}

// whyNot gives a reason for each order when they are few, else for one.
func (p *viewProblem) whyNot() string {
	first := make([]int, p.n)
	for i := range first {
		first[i] = i
	}
	if p.n > 3 {
		return fmt.Sprintf("no serial order keeps what every read reads from and what is written last; in %s, for one, %s",
			p.named(first), p.broken(first))
	}
	var out []string
	permute(p.n, func(order []int) bool {
		out = append(out, fmt.Sprintf("in %s %s", p.named(order), p.broken(order)))
		return true
	})
	return strings.Join(out, "; ")
}

func (p *viewProblem) named(order []int) string {
	of := make([]int, len(order))
	for i, t := range order {
		of[i] = p.a.alive[t]
	}
	return arrows(p.a.txns(of), " ")
}

// blind returns a write of the projection whose transaction has not read the item
// before, or initial.
func (a *analysis) blind() int {
	for i, k := range a.kept {
		w := a.acc[k]
		if !w.write {
			continue
		}
		if !slices.ContainsFunc(a.kept[:i], func(j int) bool {
			return a.acc[j].txn == w.txn && a.acc[j].item == w.item
		}) {
			return k
		}
	}
	return initial
}

// permute calls visit with each order of 0 … n-1, in lexical order, until it
// returns false. The slice is reused.
func permute(n int, visit func([]int) bool) {
	order := make([]int, 0, n)
	used := make([]bool, n)
	var place func() bool
	place = func() bool {
		if len(order) == n {
			return visit(order)
		}
		for i := range n {
			if used[i] {
				continue
			}
			used[i] = true
			order = append(order, i)
			goOn := place()
			order = order[:len(order)-1]
			used[i] = false
			if !goOn {
				return false
			}
		}
		return true
	}
	place()
}

// finalState searches for a serial order with the same final state whatever the
// transactions compute (Papadimitriou, "The serializability of concurrent database
// updates", JACM 26(4), 1979): the same last writes, and the same sources for every
// live read, one on which a last write may depend.
func (a *analysis) finalState() (order []Txn, ok bool) {
	want := a.liveReads(a.kept)
	of := make([][]int, len(a.members))
	for _, k := range a.kept {
		of[a.acc[k].txn] = append(of[a.acc[k].txn], k)
	}
	permute(len(a.alive), func(p []int) bool {
		var serial []int
		for _, i := range p {
			serial = append(serial, of[a.alive[i]]...)
		}
		if slices.Equal(a.liveReads(serial), want) {
			ok = true
			for _, i := range p {
				order = append(order, a.txn(a.alive[i]))
			}
		}
		return !ok
	})
	return order, ok
}

// liveReads returns, for a sequence of accesses, the last write of each item and the
// source of each live read: [item…, access…], with dead for what is not live.
func (a *analysis) liveReads(seq []int) []int {
	const dead = -2
	out := slices.Repeat([]int{dead}, len(a.items)+len(a.acc))
	source := make([]int, len(seq))
	last := slices.Repeat([]int{initial}, len(a.items))
	for i, k := range seq {
		x := a.acc[k]
		source[i] = last[x.item]
		if x.write {
			last[x.item] = k
		}
	}
	copy(out, last)
	// Backwards: a write is live when it is last or a live read returns it, and a
	// read is live when its transaction later makes a live write.
	liveWrite := make([]bool, len(a.acc))
	for _, k := range last {
		if k != initial {
			liveWrite[k] = true
		}
	}
	liveTxn := make([]bool, len(a.members))
	for i := len(seq) - 1; i >= 0; i-- {
		k := seq[i]
		x := a.acc[k]
		switch {
		case x.write && liveWrite[k]:
			liveTxn[x.txn] = true
		case !x.write && liveTxn[x.txn]:
			out[len(a.items)+k] = source[i]
			if source[i] != initial {
				liveWrite[source[i]] = true
			}
		}
	}
	return out
}
