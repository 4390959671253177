package schedule

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"interleave/internal/layout"
)

// textWidth is the width of the text report, in characters.
const textWidth = 100

// gridTxns bounds the transactions that the report sets out in columns.
const gridTxns = 8

// JSON returns the classification as indented JSON, ending in a newline.
func (c *Classification) JSON() ([]byte, error) {
	out, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schedule: encoding the classification: %w", err)
	}
	return append(out, '\n'), nil
}

// Report returns the classification as text for a reader who is learning it: the
// schedule in columns, each verdict with its reason, the precedence graph, equivalent
// orders, anomalies and final values. Lines are at most 100 characters long, but for
// the schedule's own columns and for words that are longer.
func (c *Classification) Report() string {
	t := &report{}
	t.schedule(c)
	t.verdicts(c)
	t.graph(c)
	t.orders(c)
	t.anomalies(c)
	t.final(c)
	if len(c.Notes) > 0 {
		t.section("Notes")
		for _, n := range c.Notes {
			t.wrap("  ", "", n)
		}
	}
	return t.b.String()
}

type report struct{ b strings.Builder }

func (t *report) section(title string) { fmt.Fprintf(&t.b, "\n%s\n", title) }

// wrap writes words after lead, further lines under its end.
func (t *report) wrap(indent, lead, words string) {
	for _, l := range layout.Hang(indent+lead, words, textWidth) {
		t.line(l)
	}
}

func (t *report) line(s string) { t.b.WriteString(strings.TrimRight(s, " ") + "\n") }

// short is an operation in its transaction's own column: r(x).
func short(op Op) string {
	n := strconv.Itoa(int(op.Txn))
	full := op.String()
	at := strings.Index(full, n)
	word := full[:at]
	switch op.Kind {
	case Begin, Commit, Abort:
		word = op.Kind.String()
	case Savepoint:
		word = "save"
	case RollbackTo:
		word = "back"
	case Read, Scan, Write, Insert, Delete, Release:
	default:
		panic(fmt.Sprintf("schedule: unknown kind %d", op.Kind))
	}
	return word + full[at+len(n):]
}

func (t *report) schedule(c *Classification) {
	s := c.Schedule
	title := "Schedule"
	if s.Name != "" {
		title += " " + s.Name
	}
	t.line(title)
	if len(s.Initial) > 0 {
		var in []string
		for _, i := range s.Initial {
			in = append(in, fmt.Sprintf("%s=%d", i.Item, i.Value))
		}
		t.wrap("  ", "initially ", strings.Join(in, " "))
	}
	if len(c.Transactions) > gridTxns || len(c.Transactions) == 0 {
		t.wrap("  ", "", strings.ReplaceAll(s.String(), "\n", " "))
		return
	}
	width := map[Txn]int{}
	for _, x := range c.Transactions {
		width[x.Txn] = len(x.Txn.String()) + 2
	}
	for _, op := range s.Ops {
		width[op.Txn] = max(width[op.Txn], utf8.RuneCountInString(short(op))+2)
	}
	head := "  step  "
	if s.Timed {
		head += layout.Pad("time", 10)
	}
	for _, x := range c.Transactions {
		head += layout.Pad(x.Txn.String(), width[x.Txn])
	}
	t.line(head)
	for i, op := range s.Ops {
		line := fmt.Sprintf("  %4d  ", i+1)
		if s.Timed {
			line += layout.Pad(time.Duration(op.At).String(), 10)
		}
		for _, x := range c.Transactions {
			cell := ""
			if x.Txn == op.Txn {
				cell = short(op)
			}
			line += layout.Pad(cell, width[x.Txn])
		}
		t.line(line)
	}
}

func (t *report) verdicts(c *Classification) {
	groups := []struct {
		title string
		of    []Class
	}{
		{"Serializability", []Class{Serial, ConflictSerializable, ViewSerializable, FinalStateSerializable}},
		{"Recovery", []Class{Recoverable, Cascadeless, Strict, Rigorous, CommitOrdered}},
		{"Could this order of operations have come from", []Class{TwoPhaseLocking, StrictTwoPhaseLocking, RigorousTwoPhaseLocking, TimestampOrdering, ThomasWriteRule}},
	}
	for _, g := range groups {
		t.section(g.title)
		for _, class := range g.of {
			v := c.Verdict(class)
			t.wrap("  ", layout.Pad(class.Title(), 31)+layout.Pad(v.Holds.String(), 9), v.Because)
		}
	}
}

func (t *report) graph(c *Classification) {
	t.section("Precedence graph")
	if len(c.Graph.Edges) == 0 {
		t.line("  no edges: no two operations conflict")
		return
	}
	for i := range c.Graph.Edges {
		e := &c.Graph.Edges[i]
		lead := layout.Pad(fmt.Sprintf("%v → %v", e.From, e.To), 12)
		for _, k := range e.Conflicts {
			what := fmt.Sprintf("%s %v: %v before %v", k.Item, k.Kind, k.First, k.Second)
			if k.Predicate {
				what += " (in the range)"
			}
			t.wrap("  ", lead, what)
			lead = layout.Pad("", 12)
		}
	}
	if len(c.Graph.Cycle) > 0 {
		t.wrap("  ", layout.Pad("cycle", 12), arrows(c.Graph.Cycle, " → "))
	}
}

func (t *report) orders(c *Classification) {
	t.section("Equivalent serial orders")
	t.orderList("by conflicts", c.ConflictOrders)
	if c.Verdict(ViewSerializable).Holds != Unknown && len(c.Graph.Txns) <= MaxViewTxns {
		t.orderList("by views", c.ViewOrders)
	}
}

func (t *report) orderList(by string, o Orders) {
	count := strconv.Itoa(o.Count)
	if o.More {
		count = "more than " + count
	}
	if o.Count == 0 {
		count = "none"
	}
	var list []string
	for _, order := range o.List {
		if len(order) == 0 {
			list = append(list, "the empty one")
			continue
		}
		// No breaks within an order: the gaps become spaces after wrapping.
		list = append(list, arrows(order, "\u00a0"))
	}
	text := count
	if len(list) > 0 {
		text += ": " + strings.Join(list, "; ")
		if o.More || o.Count > len(o.List) {
			text += "; …"
		}
	}
	var sub report
	sub.wrap("  ", layout.Pad(by, 14), text)
	t.b.WriteString(strings.ReplaceAll(sub.b.String(), "\u00a0", " "))
}

func (t *report) anomalies(c *Classification) {
	titles := [numGroups]string{"Anomalies", "Broad phenomena (what read locks kept to the end would prevent)", "In Adya's terms"}
	for g := range numGroups {
		none := true
		for _, n := range c.Anomalies {
			if n.Group != g {
				continue
			}
			if none {
				t.section(titles[g])
				none = false
			}
			t.wrap("  ", layout.Pad(n.Code.String(), 10)+layout.Pad(n.Name, 31), n.Because)
		}
		if none && g == Named {
			t.section(titles[g])
			t.line("  none")
		}
	}
}

func (t *report) final(c *Classification) {
	if c.Final == nil {
		return
	}
	t.section("Final values (one version of each item)")
	var out []string
	for _, v := range c.Final {
		switch v.State {
		case "known":
			out = append(out, fmt.Sprintf("%s=%d", v.Item, v.Value))
		default:
			out = append(out, fmt.Sprintf("%s %s", v.Item, v.State))
		}
	}
	t.wrap("  ", "", strings.Join(out, ", "))
}

// ShortName is an operation's text without the number of its transaction, as it stands
// in the transaction's own column: r(x) for r1(x), commit for c1. Text that is no
// operation of t comes back as it is.
func ShortName(op string, t Txn) string {
	n := strconv.Itoa(int(t))
	at := strings.Index(op, n)
	if at < 0 {
		return op
	}
	rest := op[at+len(n):]
	switch op[:at] {
	case "b":
		return "begin" + rest
	case "c":
		return "commit" + rest
	case "a":
		return "abort" + rest
	case "s":
		return "save" + rest
	case "rb":
		return "back" + rest
	case "r", "u", "w", "i", "d", "rel":
		return op[:at] + rest
	default:
		return op
	}
}
