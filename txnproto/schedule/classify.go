package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Options say how a schedule is classified. The zero value serves.
type Options struct {
	// Complete is done first with transactions that neither commit nor abort.
	Complete Completion
	// MaxOrders is how many equivalent serial orders are listed; 0 means 24.
	MaxOrders int
}

// Classification is what Classify found. Its field names in JSON are stable.
type Classification struct {
	Schedule     *Schedule   `json:"-"`
	Text         string      `json:"schedule"`
	Transactions []TxnStatus `json:"transactions"`
	Verdicts     []Verdict   `json:"verdicts"` // one for each class, in order
	// Graph is the precedence graph of the transactions that have not aborted.
	Graph Graph `json:"precedence_graph"`
	// ConflictOrders and ViewOrders are the equivalent serial orders. ViewOrders are
	// not searched beyond MaxViewTxns transactions.
	ConflictOrders Orders      `json:"conflict_equivalent_orders"`
	ViewOrders     Orders      `json:"view_equivalent_orders"`
	Anomalies      []Anomaly   `json:"anomalies"`
	Final          []ItemValue `json:"final_values,omitempty"`
	Notes          []string    `json:"notes"`
}

// TxnStatus is a transaction and how it ended.
type TxnStatus struct {
	Txn     Txn    `json:"transaction"`
	Outcome string `json:"outcome"` // committed, aborted or active
	First   int    `json:"first_step"`
	Last    int    `json:"last_step"`
}

// Verdict returns the verdict on one class.
func (c *Classification) Verdict(class Class) Verdict { return c.Verdicts[class] }

// Has reports whether an anomaly was found.
func (c *Classification) Has(code Code) bool {
	return slices.ContainsFunc(c.Anomalies, func(n Anomaly) bool { return n.Code == code })
}

// Classify says what a schedule is, taken as it stands: see the package comment for
// the model. It panics on a schedule that New or Parse would refuse.
func Classify(s *Schedule, opt Options) *Classification {
	if err := s.validate(); err != nil {
		panic("schedule: Classify: " + err.Error())
	}
	if opt.MaxOrders == 0 {
		opt.MaxOrders = 24
	}
	s = s.Completed(opt.Complete)
	a := analyse(s)
	c := &Classification{Schedule: s, Text: s.String(), Graph: *a.graph(), Notes: []string{}, Anomalies: []Anomaly{}}
	c.ConflictOrders, c.ViewOrders = Orders{List: [][]Txn{}}, Orders{List: [][]Txn{}}
	for _, m := range a.members {
		outcome := map[Kind]string{Commit: "committed", Abort: "aborted", Begin: "active"}[m.fate]
		c.Transactions = append(c.Transactions, TxnStatus{m.txn, outcome, m.first + 1, m.last + 1})
	}
	c.Verdicts = make([]Verdict, numClasses)
	for _, v := range []Verdict{
		a.serial(), c.conflict(opt), c.view(a, opt), a.recoverable(), a.cascadeless(), a.strict(), a.rigorous(), a.commitOrdered(),
		a.locking(TwoPhaseLocking, twoPhase), a.locking(StrictTwoPhaseLocking, strictTwoPhase), a.locking(RigorousTwoPhaseLocking, rigorousTwoPhase),
		a.timestampOrder(false), a.timestampOrder(true),
	} {
		c.Verdicts[v.Class] = v
	}
	c.Verdicts[FinalStateSerializable] = c.finalState(a)
	found, cut := a.anomalies(&c.Graph)
	c.Anomalies = append(c.Anomalies, found...)
	var notes []string
	c.Final, notes = a.final()
	c.Notes = append(append(c.Notes, a.notes(opt)...), notes...)
	if cut {
		c.Notes = append(c.Notes, fmt.Sprintf("Of some anomalies only the first %d are listed.", maxPerCode))
	}
	return c
}

func (c *Classification) conflict(opt Options) Verdict {
	g := &c.Graph
	if len(g.Cycle) > 0 {
		var why []string
		for i, from := range g.Cycle[:len(g.Cycle)-1] {
			to := g.Cycle[i+1]
			k := g.Edge(from, to).Conflicts[0]
			why = append(why, fmt.Sprintf("%v before %v as %v comes before %v", from, to, k.First, k.Second))
		}
		return no(ConflictSerializable, "the precedence graph has the cycle %s: %s", arrows(g.Cycle, " → "), strings.Join(why, "; "))
	}
	c.ConflictOrders = g.topological(opt.MaxOrders)
	if len(g.Txns) == 0 {
		return yes(ConflictSerializable, "no transaction is left: all have aborted")
	}
	return yes(ConflictSerializable, "the precedence graph has no cycle; an equivalent serial order is %s", arrows(c.ConflictOrders.List[0], " "))
}

func (c *Classification) view(a *analysis, opt Options) Verdict {
	p, impossible := a.view()
	acyclic := len(c.Graph.Cycle) == 0
	switch {
	case impossible != "" && acyclic:
		panic("schedule: conflict serializable and not view serializable: " + c.Text)
	case impossible != "":
		return no(ViewSerializable, "%s", impossible)
	case p.n > MaxViewTxns && acyclic:
		return yes(ViewSerializable, "it is conflict serializable (further orders are not searched beyond %d transactions)", MaxViewTxns)
	case p.n > MaxViewTxns && a.blind() == initial:
		return no(ViewSerializable, "it is not conflict serializable, and without blind writes that decides it")
	case p.n > MaxViewTxns:
		return Verdict{ViewSerializable, Unknown, fmt.Sprintf("%d transactions with blind writes: the exact search, which is exponential, stops at %d", p.n, MaxViewTxns)}
	}
	c.ViewOrders = p.orders(opt.MaxOrders)
	if c.ViewOrders.Count == 0 {
		why := p.whyNot()
		if a.blind() == initial {
			why += "; without blind writes, what is not conflict serializable is not view serializable either"
		}
		return no(ViewSerializable, "%s", why)
	}
	if acyclic {
		return yes(ViewSerializable, "it is conflict serializable")
	}
	return yes(ViewSerializable, "the serial order %s gives every read the same write and leaves the same last writes; it is not conflict serializable because of blind writes such as %s",
		arrows(c.ViewOrders.List[0], " "), a.at(a.blind()))
}

func (c *Classification) finalState(a *analysis) Verdict {
	if c.Verdict(ViewSerializable).Holds == Yes {
		return yes(FinalStateSerializable, "it is view serializable")
	}
	if len(a.alive) > MaxFinalStateTxns {
		return Verdict{FinalStateSerializable, Unknown, fmt.Sprintf("%d transactions: the search over all orders stops at %d", len(a.alive), MaxFinalStateTxns)}
	}
	if order, ok := a.finalState(); ok {
		return yes(FinalStateSerializable, "the serial order %s leaves the same state whatever the transactions compute, though some read sees something else", arrows(order, " "))
	}
	return no(FinalStateSerializable, "no serial order leaves the same state for every way the transactions may compute")
}

// notes says what a reader has to know to read the verdicts rightly.
func (a *analysis) notes(opt Options) []string {
	var out []string
	var active []Txn
	undone, prefix := false, false
	for _, m := range a.members {
		if m.fate == Begin {
			active = append(active, m.txn)
		}
	}
	for _, x := range a.acc {
		undone = undone || x.undone != never && !a.aborted(x)
		prefix = prefix || a.aborted(x)
	}
	switch {
	case len(a.s.Ops) == 0:
		out = append(out, "The schedule is empty.")
	case opt.Complete == CommitAfterLast:
		out = append(out, "Transactions without an end were given a commit after their last operation.")
	case opt.Complete == CommitAtEnd:
		out = append(out, "Transactions without an end were given a commit at the end of the schedule.")
	case len(active) > 0:
		out = append(out, fmt.Sprintf("Active to the end, with neither commit nor abort: %s. For serializability they count as if they were to commit; for strictness and strict 2PL they have not ended.", arrows(active, ", ")))
	}
	if prefix {
		out = append(out, "For serializability the operations of aborted transactions are left out.")
	}
	if undone {
		out = append(out, "For serializability writes undone by a rollback to a savepoint are left out; the locks for them count as kept.")
	}
	for i, op := range a.s.Ops {
		if op.Kind == Scan && !slices.ContainsFunc(a.acc, func(x access) bool { return x.step == i }) {
			out = append(out, fmt.Sprintf("%s covers no item that the schedule names: it conflicts with nothing.", a.op(i)))
		}
	}
	return out
}
