package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"interleave/internal/layout"
	"interleave/txnproto"
	"interleave/txnproto/schedule"
)

const (
	// scheduleWidth is the width of a schedule's report, in characters.
	scheduleWidth = 100
	// scheduleColumns is up to how many transactions have a column of their own.
	scheduleColumns = 8
)

// Report returns the executed schedule as text, for a reader who is learning it.
func (r *ScheduleRun) Report() string {
	t := &scheduleReport{r: r}
	t.wrap("", r.Protocol+": ", r.Help)
	t.steps()
	t.ends()
	return t.b.String()
}

type scheduleReport struct {
	r     *ScheduleRun
	b     strings.Builder
	width map[schedule.Txn]int
	names int // width of the columns together
}

// wrap writes words after lead, further lines under its end.
func (t *scheduleReport) wrap(indent, lead, words string) {
	for _, l := range layout.Hang(indent+lead, words, scheduleWidth) {
		t.line(l)
	}
}

func (t *scheduleReport) line(s string) { t.b.WriteString(strings.TrimRight(s, " ") + "\n") }

// steps writes a line for each step: the operation in its transaction's column, and
// what came of it.
func (t *scheduleReport) steps() {
	t.columns()
	head := "  step  "
	timed := t.r.schedule != nil && t.r.schedule.Timed
	if timed {
		head += layout.Pad("time", 12)
	}
	for _, x := range t.r.Transactions {
		if len(t.width) > 0 {
			head += layout.Pad(x.Txn.String(), t.width[x.Txn])
		}
	}
	t.line(layout.Pad(head, len("  step  ")+t.names))
	for i := range t.r.Steps {
		s := &t.r.Steps[i]
		if !shownStep(s) {
			continue
		}
		number := ""
		if s.Number > 0 {
			number = strconv.Itoa(s.Number)
		}
		lead := fmt.Sprintf("  %4s  ", number)
		if timed {
			lead += layout.Pad(roundTime(s), 12)
		}
		t.wrap(lead, t.cell(s), s.what())
		for _, l := range s.State {
			t.line("          | " + l)
		}
	}
}

// shownStep reports whether a step is worth a line: a begin that the schedule does not
// write is one only when the transaction is tried again or when it has state to show.
func shownStep(s *RunStep) bool {
	return s.Event != StepBegun || s.Number > 0 || s.Attempt > 1 || len(s.State) > 0
}

func roundTime(s *RunStep) string { return time.Duration(s.At).Round(ScheduleStep / 100).String() }

func (t *scheduleReport) columns() {
	if len(t.r.Transactions) > scheduleColumns {
		t.names = 14
		return
	}
	t.width = map[schedule.Txn]int{}
	for _, x := range t.r.Transactions {
		t.width[x.Txn] = len(x.Txn.String()) + 2
	}
	for i := range t.r.Steps {
		if s := &t.r.Steps[i]; shownStep(s) {
			t.width[s.Txn] = max(t.width[s.Txn], utf8.RuneCountInString(s.short())+2)
		}
	}
	for _, x := range t.r.Transactions {
		t.names += t.width[x.Txn]
	}
}

// cell is the operation in its place among the columns.
func (t *scheduleReport) cell(s *RunStep) string {
	if t.width == nil {
		return layout.Pad(s.Txn.String()+" "+s.short(), t.names)
	}
	out := ""
	for _, x := range t.r.Transactions {
		text := ""
		if x.Txn == s.Txn {
			text = s.short()
		}
		out += layout.Pad(text, t.width[x.Txn])
	}
	return out
}

// short is the step's operation without its transaction's number.
func (s *RunStep) short() string {
	if s.Event == StepBegun {
		return "begin"
	}
	return schedule.ShortName(s.Op, s.Txn)
}

// what says what came of the operation.
func (s *RunStep) what() string {
	switch s.Event {
	case StepBegun:
		if s.Attempt > 1 {
			return fmt.Sprintf("begins again (attempt %d, timestamp %d, the first %d)", s.Attempt, uint64(s.attempt), uint64(s.first))
		}
		return fmt.Sprintf("begins (timestamp %d)", uint64(s.attempt))
	case StepGranted:
		lead := ""
		if s.Late {
			lead = "goes on: "
		}
		return lead + s.done()
	case StepWaits:
		again := ""
		if s.Late {
			again = "now "
		}
		return again + "waits" + s.forWhom()
	case StepCommitted:
		out := "committed"
		if s.Late {
			out = "goes on: committed"
		}
		for _, it := range s.Skipped {
			out += "; its write of " + string(it) + " is skipped, as a younger one is there"
		}
		return out
	case StepRolledBack:
		return "rolled back"
	case StepAborted:
		return s.aborted()
	case StepMarked:
		return "ok"
	case StepPlaced:
		return fmt.Sprintf("is number %d in the order", s.Place)
	default:
		panic("sim: unknown event " + string(s.Event))
	}
}

// forWhom says on whom a wait is, and for what.
func (s *RunStep) forWhom() string {
	out := ""
	for i, t := range s.For {
		switch {
		case i == 0:
			out += " for "
		case i == len(s.For)-1:
			out += " and "
		default:
			out += ", "
		}
		out += t.String()
	}
	if s.Over != "" && s.Over != "end" {
		out += " over " + s.Over
	} else if s.Over == "end" {
		out += " over the end of the items"
	}
	return out
}

func (s *RunStep) aborted() string {
	out := "ABORTED: " + s.Reason
	if why := reasonWords[s.Reason]; why != "" {
		out += " (" + why + ")"
	}
	if s.Reason == txnproto.LockTimeout.String() {
		out += " after " + s.Waited.Round(ScheduleStep/100).String()
	}
	if s.By != "" {
		out += ", by " + s.By
	}
	if len(s.For) > 0 {
		out += "; it would wait" + s.forWhom()
	}
	return out
}

// scans reports whether the operation reads a range.
func (s *RunStep) scans() bool {
	return strings.Contains(s.Op, "..") && strings.ContainsAny(s.Op[:1], "ru")
}

// reasonWords explain the reasons whose names do not.
var reasonWords = map[string]string{
	txnproto.WaitDie.String():        "the younger dies",
	txnproto.NoWait.String():         "the item is locked",
	txnproto.TSOrder.String():        "too late for its timestamp",
	txnproto.Validation.String():     "what it read has been overwritten",
	txnproto.WriteConflict.String():  "another has written first",
	txnproto.SSIPivot.String():       "pivot of a dangerous structure",
	txnproto.Cascade.String():        "it read from one that was aborted",
	txnproto.CannotLock.String():     "nowait",
	txnproto.Constraint.String():     "the row is there already",
	txnproto.Reconnaissance.String(): "the rows in its range have changed since its reconnaissance",
}

// done says what a granted operation found or leaves.
func (s *RunStep) done() string {
	var reads []string
	for _, x := range s.Reads {
		if x.State == "absent" && s.scans() {
			continue
		}
		reads = append(reads, x.String())
	}
	if len(reads) == 0 && s.scans() {
		return "reads nothing"
	}
	switch {
	case len(reads) > 0:
		return "reads " + strings.Join(reads, ", ")
	case s.Wrote != nil:
		return fmt.Sprintf("writes %d", *s.Wrote)
	default:
		return "ok"
	}
}

// String says what was read: x=5 of T2.
func (x ItemRead) String() string {
	of := " of " + x.From
	switch x.From {
	case "initial":
		of = ""
	case "own":
		of = ", its own"
	}
	switch x.State {
	case "known":
		return fmt.Sprintf("%s=%d%s", x.Item, x.Value, of)
	case "unknown":
		if of == "" {
			of = " as it was at first"
		}
		return string(x.Item) + of
	case "absent":
		return "no " + string(x.Item)
	case "skipped":
		return "not " + string(x.Item) + " (skipped)"
	default:
		panic("sim: unknown state of an item: " + x.State)
	}
}

// ends writes what holds at the end.
func (t *scheduleReport) ends() {
	r := t.r
	t.line("")
	for _, x := range r.Transactions {
		if len(x.NotRun) > 0 {
			t.wrap("  ", layout.Pad("not run", 12), strings.Join(x.NotRun, " "))
		}
	}
	if r.Stuck {
		t.wrap("  ", layout.Pad("stuck", 12), "nothing is left to happen, and "+t.r.Waits.String())
	}
	if len(r.Final) > 0 {
		t.wrap("  ", layout.Pad("values", 12), r.finalText())
	}
	if r.Executed != nil {
		lead := "executed"
		t.wrap("  ", layout.Pad(lead, 12), strings.ReplaceAll(r.ExecutedText, "\n", " "))
		if r.Deferred {
			t.wrap("  ", layout.Pad("", 12), "(writes stand at the commit that installed them)")
		}
		t.wrap("  ", layout.Pad("it is", 12), r.classText())
	}
	kept := "kept"
	if !r.Kept {
		kept = "BROKEN"
	}
	t.wrap("  ", layout.Pad("isolation", 12), fmt.Sprintf("%s; promised %s: %s", r.Found, r.Promised, kept))
	for _, a := range r.Anomalies {
		for _, l := range a {
			t.line("              " + l)
		}
	}
	for _, n := range r.Notes {
		t.wrap("  ", layout.Pad("note", 12), n)
	}
}

// finalText lists the values at the end.
func (r *ScheduleRun) finalText() string {
	var out []string
	for _, v := range r.Final {
		switch v.State {
		case "known":
			out = append(out, fmt.Sprintf("%s=%d", v.Item, v.Value))
		case "unknown":
			out = append(out, string(v.Item)+"=?")
		default:
			out = append(out, "no "+string(v.Item))
		}
	}
	return strings.Join(out, ", ")
}

// classText names the classes that the executed schedule is in.
func (r *ScheduleRun) classText() string {
	var in []string
	add := func(c schedule.Class, text string) bool {
		if r.Class.Verdict(c).Holds == schedule.Yes {
			in = append(in, text)
			return true
		}
		return false
	}
	serial := add(schedule.Serial, "serial")
	switch {
	case r.Class.Verdict(schedule.ConflictSerializable).Holds == schedule.Yes:
		order := ""
		if o := r.Class.ConflictOrders.List; len(o) > 0 && len(o[0]) > 1 && !serial {
			var names []string
			for _, t := range o[0] {
				names = append(names, t.String())
			}
			order = " (as " + strings.Join(names, " ") + ")"
		}
		in = append(in, "conflict serializable"+order)
	case add(schedule.ViewSerializable, "view serializable"):
	default:
		in = append(in, "NOT serializable")
	}
	switch {
	case add(schedule.Rigorous, "rigorous"), add(schedule.Strict, "strict"), add(schedule.Cascadeless, "cascadeless"), add(schedule.Recoverable, "recoverable"):
	default:
		in = append(in, "NOT recoverable")
	}
	return strings.Join(in, ", ")
}

// Brief says in one line who waited, who was aborted, and what holds at the end.
func (r *ScheduleRun) Brief() string {
	return fmt.Sprintf("%s; %s; %s; %s", r.WaitsText(), r.AbortsText(), r.finalText(), r.Found)
}

// WaitsText lists the waits in order: T2 for T1 (x).
func (r *ScheduleRun) WaitsText() string {
	var out []string
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Event != StepWaits {
			continue
		}
		var on []string
		for _, t := range s.For {
			on = append(on, t.String())
		}
		text := s.Txn.String() + " for " + strings.Join(on, ", ")
		if s.Over != "" {
			text += " (" + s.Over + ")"
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "no waits"
	}
	return strings.Join(out, ", ")
}

// AbortsText lists who was aborted, and why; the same several times running, once with
// how often: "T1 aborted (no-wait, 5 times)".
func (r *ScheduleRun) AbortsText() string {
	var who []string
	var times []int
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Event != StepAborted {
			continue
		}
		text := fmt.Sprintf("%v aborted (%s", s.Txn, s.Reason)
		if n := len(who); n > 0 && who[n-1] == text {
			times[n-1]++
			continue
		}
		who, times = append(who, text), append(times, 1)
	}
	if len(who) == 0 {
		return "no aborts"
	}
	for i, n := range times {
		if n > 1 {
			who[i] += fmt.Sprintf(", %d times", n)
		}
		who[i] += ")"
	}
	return strings.Join(who, ", ")
}

// SummaryTable is what several protocols made of one schedule, a row each: who waited,
// who was aborted, the values at the end, and the isolation level found.
func SummaryTable(runs []*ScheduleRun) string {
	heads := []string{"protocol", "who waits, for whom", "who is aborted", "values at the end", "isolation"}
	most := []int{14, 26, 26, 20, 20}
	rows := [][]string{heads}
	for _, r := range runs {
		level := r.Found
		switch {
		case !r.Kept:
			level += " (BROKEN)"
		case r.Stuck:
			level += " (stuck)"
		}
		rows = append(rows, []string{r.Protocol, few(dash(r.WaitsText(), "no waits")), few(dash(r.AbortsText(), "no aborts")), few(r.finalText()), level})
	}
	width := make([]int, len(heads))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], min(most[i], utf8.RuneCountInString(cell)))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		cells := make([][]string, len(row))
		tall := 0
		for i, cell := range row {
			cells[i] = fold(cell, width[i])
			tall = max(tall, len(cells[i]))
		}
		for l := range tall {
			line := ""
			for i := range cells {
				text := ""
				if l < len(cells[i]) {
					text = cells[i][l]
				}
				line += "  " + layout.Pad(text, width[i])
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		if n == 0 {
			line := ""
			for _, w := range width {
				line += "  " + strings.Repeat("─", w)
			}
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// tableItems is how many items of a list a table's cell shows.
const tableItems = 12

// few shortens a list of many.
func few(list string) string {
	items := strings.Split(list, "), ")
	sep := "), "
	if len(items) == 1 {
		items, sep = strings.Split(list, ", "), ", "
	}
	if len(items) <= tableItems {
		return list
	}
	return strings.Join(items[:tableItems], sep) + sep + fmt.Sprintf("and %d more", len(items)-tableItems)
}

func dash(s, none string) string {
	if s == none {
		return "–"
	}
	return s
}

// fold breaks text into lines of at most width characters, at blanks.
func fold(text string, width int) []string {
	var out []string
	line := ""
	for _, w := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(w) > width {
			out = append(out, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	return append(out, line)
}
