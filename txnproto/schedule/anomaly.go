package schedule

import (
	"fmt"
	"slices"
)

// Code names an anomaly or phenomenon.
type Code uint8

// The codes of Berenson, Bernstein, Gray, Melton, O'Neil and O'Neil, "A critique of
// ANSI SQL isolation levels", SIGMOD 1995: A where something has gone wrong, P for the
// broad reading that a lock would have to prevent; and of Adya, Liskov and O'Neil,
// "Generalized isolation level definitions", ICDE 2000.
const (
	P0      Code = iota // dirty write
	P1                  // dirty read, broad: the writer has not ended
	A1                  // dirty read: what was read is undone later
	A2                  // non-repeatable read
	A3                  // phantom
	P4                  // lost update
	A5A                 // read skew
	A5B                 // write skew
	P2                  // fuzzy read, broad
	P3                  // phantom, broad
	G0                  // cycle of ww
	G1a                 // aborted read
	G1b                 // intermediate read
	G1c                 // cycle of ww and wr with a wr
	GSingle             // cycle with one rw
	G2Item              // cycle with several rw, on items
	G2                  // the same with a predicate rw
	numCodes
)

// Group tells anomalies from phenomena in the broad sense and from Adya's.
type Group uint8

// The groups.
const (
	Named Group = iota // the anomalies by their usual names
	Broad              // what locks would have to prevent, harm done or not
	Adya               // cycles and reads in Adya's terms
	numGroups
)

var groupNames = [numGroups]string{"anomaly", "broad", "adya"}

// MarshalText writes the group's name.
func (g Group) MarshalText() ([]byte, error) {
	if g >= numGroups {
		panic(fmt.Sprintf("schedule: unknown group %d", uint8(g)))
	}
	return []byte(groupNames[g]), nil
}

var codeText = [numCodes]struct {
	code, name string
	group      Group
}{
	P0: {"P0", "dirty write", Named}, P1: {"P1", "dirty read", Named}, A1: {"A1", "dirty read of an undone write", Named},
	A2: {"A2", "non-repeatable read", Named}, A3: {"A3", "phantom", Named}, P4: {"P4", "lost update", Named},
	A5A: {"A5A", "read skew", Named}, A5B: {"A5B", "write skew", Named},
	P2: {"P2", "fuzzy read", Broad}, P3: {"P3", "phantom", Broad},
	G0: {"G0", "write cycle", Adya}, G1a: {"G1a", "aborted read", Adya}, G1b: {"G1b", "intermediate read", Adya},
	G1c: {"G1c", "circular information flow", Adya}, GSingle: {"G-single", "single anti-dependency cycle", Adya},
	G2Item: {"G2-item", "item anti-dependency cycle", Adya}, G2: {"G2", "anti-dependency cycle", Adya},
}

// String returns the code as the papers write it.
func (c Code) String() string {
	if c >= numCodes {
		panic(fmt.Sprintf("schedule: unknown code %d", uint8(c)))
	}
	return codeText[c].code
}

// Name returns the anomaly's usual name.
func (c Code) Name() string { return codeText[c].name }

// Group returns which kind of anomaly it is.
func (c Code) Group() Group { return codeText[c].group }

// MarshalText writes the code.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Anomaly is one finding, with the operations that make it.
type Anomaly struct {
	Code    Code   `json:"code"`
	Name    string `json:"name"`
	Group   Group  `json:"group"`
	Txns    []Txn  `json:"transactions"`
	Items   []Item `json:"items,omitempty"`
	Steps   []Step `json:"steps"`
	Because string `json:"because"`
}

// maxPerCode bounds the findings of one code; the first ones tell the story.
const maxPerCode = 20

// finder collects anomalies, one for each code, transactions and items.
type finder struct {
	a     *analysis
	found []Anomaly
	cut   bool // some code had more than maxPerCode
}

func (f *finder) add(code Code, because string, accesses ...int) {
	n := Anomaly{Code: code, Name: code.Name(), Group: code.Group(), Because: because}
	for _, i := range accesses {
		x := f.a.acc[i]
		if t := f.a.txn(x.txn); !slices.Contains(n.Txns, t) {
			n.Txns = append(n.Txns, t)
		}
		if it := f.a.items[x.item]; !slices.Contains(n.Items, it) {
			n.Items = append(n.Items, it)
		}
		if s := f.a.stepOf(x.step); !slices.Contains(n.Steps, s) {
			n.Steps = append(n.Steps, s)
		}
	}
	slices.SortFunc(n.Steps, func(x, y Step) int { return x.N - y.N })
	same := 0
	for _, o := range f.found {
		if o.Code != code {
			continue
		}
		same++
		if slices.Equal(o.Txns, n.Txns) && slices.Equal(o.Items, n.Items) {
			return
		}
	}
	if same == maxPerCode {
		f.cut = true
		return
	}
	f.found = append(f.found, n)
}

// anomalies finds what Berenson et al. and Adya have names for. Where the papers ask
// for a commit, a transaction that is still active does too.
func (a *analysis) anomalies(g *Graph) (found []Anomaly, cut bool) {
	f := &finder{a: a}
	for i := range a.acc {
		if a.acc[i].write {
			f.writes(i)
		} else {
			f.reads(i)
		}
	}
	f.skews()
	f.cycles(g)
	slices.SortStableFunc(f.found, func(x, y Anomaly) int { return int(x.Code) - int(y.Code) })
	return f.found, f.cut
}

func (a *analysis) aborted(x access) bool { return a.members[x.txn].fate == Abort }

// writes finds what write j does to earlier operations: P0, P2, P3, P4.
func (f *finder) writes(j int) {
	a, w := f.a, f.a.acc[j]
	lastRead := initial
	for i := range j {
		x := a.acc[i]
		if x.item != w.item {
			continue
		}
		switch {
		case x.txn == w.txn:
			if !x.write {
				lastRead = i
			}
		case x.write && a.open(x, w.step):
			f.add(P0, fmt.Sprintf("%s overwrites %s before %v has ended", a.at(j), a.at(i), a.txn(x.txn)), i, j)
		case !x.write && a.open(x, w.step) && x.scan && w.rows:
			f.add(P3, fmt.Sprintf("%s changes which items %s would find, before %v has ended", a.at(j), a.op(x.step), a.txn(x.txn)), i, j)
		case !x.write && a.open(x, w.step):
			f.add(P2, fmt.Sprintf("%s changes what %s read, before %v has ended", a.at(j), a.at(i), a.txn(x.txn)), i, j)
		}
	}
	if lastRead == initial || w.undone != never || a.aborted(w) {
		return
	}
	for i := lastRead + 1; i < j; i++ {
		x := a.acc[i]
		if x.write && x.item == w.item && x.txn != w.txn && x.undone == never {
			f.add(P4, fmt.Sprintf("%v writes %s at step %d from what it read at step %d, and so loses %s",
				a.txn(w.txn), a.items[w.item], w.step+1, a.acc[lastRead].step+1, a.at(i)), lastRead, i, j)
		}
	}
}

// reads finds what read j shows: P1, A1, A2, A3, G1a, G1b.
func (f *finder) reads(j int) {
	a, r := f.a, f.a.acc[j]
	w, foreign := a.readsFromOther(j)
	switch {
	case foreign && w.undone != never && !a.aborted(r):
		because := fmt.Sprintf("%s reads from %s, which %s undoes", a.at(j), a.at(r.source), a.op(w.undone))
		f.add(A1, because, r.source, j)
		f.add(G1a, because, r.source, j)
	case foreign && a.open(w, r.step):
		f.add(P1, fmt.Sprintf("%s reads from %s before %v has ended", a.at(j), a.at(r.source), a.txn(w.txn)), r.source, j)
	}
	if a.aborted(r) {
		return
	}
	if foreign && w.undone == never {
		for k := r.source + 1; k < len(a.acc); k++ {
			x := a.acc[k]
			if x.write && x.txn == w.txn && x.item == w.item && x.undone == never {
				f.add(G1b, fmt.Sprintf("%s reads from %s, and %v writes %s again at step %d",
					a.at(j), a.at(r.source), a.txn(w.txn), a.items[w.item], x.step+1), r.source, j, k)
				break
			}
		}
	}
	f.again(j)
}

// again compares read j with the reader's last read of the item: A2, A3.
func (f *finder) again(j int) {
	a, r := f.a, f.a.acc[j]
	for i := j - 1; i >= 0; i-- {
		x := a.acc[i]
		if x.txn != r.txn || x.item != r.item {
			continue
		}
		if x.write {
			return // the reader changed it itself
		}
		if x.source == r.source || r.source != initial && a.acc[r.source].txn == r.txn {
			return
		}
		// The write that came between, or the one that was undone between.
		k := r.source
		if k < i && x.source != initial {
			k = x.source
		}
		what := "what another transaction wrote between"
		if k < i {
			what = fmt.Sprintf("another value, as %s has been undone", a.at(k))
		}
		if x.scan && r.scan && a.acc[k].rows {
			f.add(A3, fmt.Sprintf("%s scans the range of %s again, and item %s differs: %s", a.op(r.step), a.op(x.step), a.items[r.item], a.at(k)), i, k, j)
		} else {
			f.add(A2, fmt.Sprintf("%s reads %s again after %s and finds %s", a.op(r.step), a.items[r.item], a.op(x.step), what), i, k, j)
		}
		return
	}
}

// antidependency is a read and a later write of the item by another transaction,
// both of transactions that have not aborted.
type antidependency struct{ read, write int }

// skews finds A5A and A5B: two items bound together by what one transaction read of
// one and another did to the other.
func (f *finder) skews() {
	a := f.a
	n := len(a.members)
	// One pair for each reader, writer and item is enough to name it.
	pairs := make([][]antidependency, n*n)
	seen := make([]bool, n*n) // the second has read or overwritten a write of the first
	for j, kj := range a.kept {
		for _, ki := range a.kept[:j] {
			r, w := a.acc[ki], a.acc[kj]
			if !conflicting(r, w) {
				continue
			}
			if r.write {
				seen[r.txn*n+w.txn] = true
				continue
			}
			at := &pairs[r.txn*n+w.txn]
			if !slices.ContainsFunc(*at, func(d antidependency) bool { return a.acc[d.read].item == r.item }) {
				*at = append(*at, antidependency{ki, kj})
			}
		}
	}
	for i, x := range a.acc {
		w, foreign := a.readsFromOther(i)
		if !foreign || a.aborted(x) || w.undone != never {
			continue
		}
		for _, d := range pairs[x.txn*n+w.txn] {
			if a.acc[d.read].item != x.item {
				f.add(A5A, fmt.Sprintf("%v reads %s before %s and %s after %s: it sees half of what %v did", a.txn(x.txn), a.items[a.acc[d.read].item],
					a.at(d.write), a.items[x.item], a.at(x.source), a.txn(w.txn)), d.read, d.write, x.source, i)
			}
		}
	}
	for t := range n {
		for u := t + 1; u < n; u++ {
			// Where one reads or overwrites what the other wrote, it is that, not skew.
			if !seen[t*n+u] && !seen[u*n+t] {
				f.writeSkew(pairs[t*n+u], pairs[u*n+t])
			}
		}
	}
}

func (f *finder) writeSkew(there, back []antidependency) {
	a := f.a
	for _, d := range there {
		for _, e := range back {
			if a.acc[d.read].item == a.acc[e.read].item {
				continue
			}
			f.add(A5B, fmt.Sprintf("%v has read %s, which %s changes; %v has read %s, which %s changes",
				a.txn(a.acc[d.read].txn), a.items[a.acc[d.read].item], a.at(d.write),
				a.txn(a.acc[e.read].txn), a.items[a.acc[e.read].item], a.at(e.write)), d.read, e.read, e.write, d.write)
		}
	}
}
