package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"interleave/sim"
	"interleave/txnproto"
	"interleave/txnproto/schedule"
)

const scheduleHelp = `Examples:
  simulate schedule 'r1(x) r2(x) w1(x) w2(x) c1 c2'           what it is, and what each protocol
                                                              makes of it
  simulate schedule 'x=100; r1(x) w1(x=x+10) r2(x) c1 c2' --protocol 2pl
                                                              step by step: who waits for whom
  simulate schedule 'r1(x) r2(y) w1(y) w2(x)' --protocol 2pl,to,occ --explain
                                                              with lock table, timestamps, numbers
  simulate schedule 'w1(x) w2(y) w1(y) w2(x)' --protocol 2pl --svg pictures
                                                              timeline, precedence, waits-for
  simulate schedule --file exercise.txt --classify            serializable? recoverable? two-phase?

Without --protocol the schedule is classified as it stands, as in a textbook: serial, conflict
and view serializable, recoverable, strict, producible by locking or by timestamps, with its
anomalies by name, and a table says what each protocol makes of it. With --protocol it is run
step by step: its operations are handed to the protocol in the order written, and what comes of
it is shown.

How a schedule is written:
  r1(x) w1(x) w1(x=5) w1(x=y+5)   read, write        b1 c1 a1         begin, commit, abort
  u1(x)                           read for update    i1(x) d1(x)      insert, delete
  r1[a..c]                        read a range       s1(p) rb1(p)     savepoint, back to it
  r1(x) nowait, skip locked       do not wait        x=10 y=20;       values before it
  10ms: r1(x)                     at a time          # ...            a comment
Blanks, commas and semicolons are free; capitals too: R1(X); W2(Y); C1;  More: docs/schedules.md
`

// scheduleFlags are the settings of the command.
type scheduleFlags struct {
	protocols, file, format          string
	param                            []string
	classify, explain, retry         bool
	dir, precedence, timeline, waits string
}

func (a *app) scheduleCommand() *cobra.Command {
	f := &scheduleFlags{}
	c := &cobra.Command{
		Use:   "schedule SCHEDULE",
		Short: "Classify a textbook schedule, and run it under each protocol",
		RunE:  func(_ *cobra.Command, args []string) error { return a.schedule(f, args) },
	}
	fl := c.Flags()
	fl.StringVar(&f.protocols, "protocol", "", "run the schedule under these `protocols`, separated by commas, or all")
	fl.StringArrayVar(&f.param, "param", nil, "a protocol's parameter, `name=value` (victim=oldest, 2pl.victim=oldest); may be repeated")
	fl.StringVar(&f.file, "file", "", "read the schedule from a `file`, - for standard input")
	fl.BoolVar(&f.classify, "classify", false, "classify only")
	fl.BoolVar(&f.explain, "explain", false, "show the lock table, timestamps or validation numbers after each step")
	fl.BoolVar(&f.retry, "retry", false, "try aborted transactions again")
	fl.StringVar(&f.format, "format", "text", "output `format`: text or json")
	fl.StringVar(&f.dir, "svg", "", "write all pictures into this `directory`")
	fl.StringVar(&f.precedence, "precedence", "", "write the precedence graph to this `file`, .svg or .dot")
	fl.StringVar(&f.timeline, "timeline", "", "write the timeline to this `file`, .svg")
	fl.StringVar(&f.waits, "waits", "", "write the waits-for graph at its fullest to this `file`, .svg or .dot")
	_ = c.RegisterFlagCompletionFunc("protocol", cobra.FixedCompletions(append(protocolNames(), "all"), cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// writeScheduleHelp puts examples before flags.
func writeScheduleHelp(w io.Writer, c *cobra.Command) {
	fmt.Fprintf(w, "%s.\n\n%s\nFlags:\n%s", c.Short, scheduleHelp, c.LocalFlags().FlagUsages())
}

func protocolNames() []string {
	var names []string
	for _, p := range txnproto.Protocols() {
		names = append(names, p.Name)
	}
	return names
}

func (a *app) schedule(f *scheduleFlags, args []string) error {
	if f.format != "text" && f.format != "json" {
		return badf("format: %q is unknown: want one of text, json", f.format)
	}
	switch {
	case f.classify && f.protocols != "":
		return badf("classify: given together with protocol: want one of them")
	case f.classify && f.retry:
		return badf("classify: given together with retry, which is for running: want one of them")
	case f.classify && len(f.param) > 0:
		return badf("classify: given together with param, which is for running: want one of them")
	case f.explain && f.protocols == "":
		return badf("explain: want protocols with --protocol: their state is what it shows")
	case f.waits != "" && (f.protocols == "" || f.several()):
		return badf("waits: want one protocol with --protocol: who waits depends on it")
	case f.precedence != "" && f.several():
		return badf("precedence: want one protocol with --protocol, or none for the schedule as written; --svg draws those of several")
	case f.timeline != "" && f.several():
		return badf("timeline: want one protocol with --protocol, or none for the schedule as written; --svg draws those of several")
	}
	for _, p := range f.files() {
		if p.file != "" && !slices.Contains(p.kinds, filepath.Ext(p.file)) {
			return badf("%s: %q: want a name that ends in %s", p.flag, p.file, strings.Join(p.kinds, " or "))
		}
	}
	s, err := a.readSchedule(f, args)
	if err != nil {
		return err
	}
	if err := f.canDraw(); err != nil {
		return err
	}
	var runs []*sim.ScheduleRun
	if !f.classify {
		if runs, err = f.run(s); err != nil {
			return err
		}
	}
	class := schedule.Classify(s, schedule.Options{})
	if f.format == "json" {
		err = writeScheduleJSON(a.out, class, runs)
	} else {
		writeScheduleText(a.out, class, runs, f.protocols != "")
	}
	if err != nil {
		return err
	}
	for _, r := range runs {
		if !r.Kept || r.Stuck {
			a.code = exitFailed
		}
	}
	return f.pictures(class, runs)
}

// several reports whether more than one protocol is asked for.
func (f *scheduleFlags) several() bool {
	return f.protocols == "all" || strings.Contains(f.protocols, ",")
}

// pictureFile is a file that a flag asks for, with the kinds of names it may have.
type pictureFile struct {
	flag, file string
	kinds      []string
}

// files are the single pictures that may be asked for; those without a name are not.
func (f *scheduleFlags) files() []pictureFile {
	both := []string{".svg", ".dot"}
	return []pictureFile{{"precedence", f.precedence, both}, {"timeline", f.timeline, both[:1]}, {"waits", f.waits, both}}
}

// canDraw reports, before anything is run, what would keep the pictures from being
// written. It makes the directory, and leaves files as they are.
func (f *scheduleFlags) canDraw() error {
	for _, p := range f.files() {
		if p.file != "" {
			if err := canWrite(p.flag, p.file); err != nil {
				return err
			}
		}
	}
	if f.dir == "" {
		return nil
	}
	if err := os.MkdirAll(f.dir, 0o777); err != nil {
		return badf("svg: %w", err)
	}
	return canWrite("svg", filepath.Join(f.dir, "timeline.svg"))
}

// canWrite reports whether file, which flag asks for, can be written.
func canWrite(flag, file string) error {
	_, err := os.Stat(file)
	there := err == nil
	w, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return badf("%s: %w", flag, err)
	}
	w.Close()
	if !there {
		os.Remove(file)
	}
	return nil
}

// readSchedule reads the schedule from the arguments or the file.
func (a *app) readSchedule(f *scheduleFlags, args []string) (*schedule.Schedule, error) {
	text := strings.Join(args, " ")
	switch {
	case f.file != "" && len(args) > 0:
		return nil, badf("schedule: given both as an argument and with --file: want one of them")
	case f.file == "-":
		data, err := io.ReadAll(a.in)
		if err != nil {
			return nil, badf("file: %w", err)
		}
		text = string(data)
	case f.file != "":
		data, err := os.ReadFile(f.file)
		if err != nil {
			return nil, badf("file: %w", err)
		}
		text = string(data)
	case len(args) == 0:
		return nil, badf("schedule: none is given: want one such as 'r1(x) w2(x) c1 c2', in quotes, or --file FILE")
	}
	text = strings.TrimPrefix(text, "\ufeff") // some editors mark a file as UTF-8
	s, err := schedule.Parse(text)
	if err != nil {
		return nil, err // a *schedule.SyntaxError: bad input, in several lines
	}
	if len(s.Ops) == 0 {
		return nil, badf("schedule: there is no operation in it: want one such as 'r1(x) w2(x) c1 c2'")
	}
	return s, nil
}

// run runs s under the protocols that are asked for, under all when none is.
func (f *scheduleFlags) run(s *schedule.Schedule) ([]*sim.ScheduleRun, error) {
	names := strings.Split(f.protocols, ",")
	if f.protocols == "" || f.protocols == "all" {
		names = protocolNames()
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, badf("protocol: %q is there twice", name)
		}
	}
	given, err := f.params(names)
	if err != nil {
		return nil, err
	}
	var runs []*sim.ScheduleRun
	for _, name := range names {
		r, err := sim.RunSchedule(name, given[name], s, sim.ScheduleOptions{Retry: f.retry, Explain: f.explain})
		if err != nil {
			return nil, bad(err)
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// params gives each parameter to the protocol it names, or to all that have it.
func (f *scheduleFlags) params(names []string) (map[string]map[string]string, error) {
	given := map[string]map[string]string{}
	for _, name := range names {
		given[name] = map[string]string{}
	}
	for _, text := range f.param {
		key, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, badf("param: %q: want name=value or protocol.name=value", text)
		}
		owner, param, owned := strings.Cut(key, ".")
		if owned {
			if given[owner] == nil {
				return nil, badf("param: %q is for %s, which is not run: want one of %s", text, owner, strings.Join(names, ", "))
			}
			given[owner][param] = value
			continue
		}
		taken := false
		for _, name := range names {
			p, known := txnproto.ProtocolNamed(name)
			if known && slices.ContainsFunc(p.Params, func(d txnproto.Param) bool { return d.Name == key }) {
				given[name][key], taken = value, true
			}
		}
		if !taken {
			return nil, badf("param: no protocol that is run has %q; see simulate list protocols", key)
		}
	}
	return given, nil
}

func writeScheduleText(w io.Writer, class *schedule.Classification, runs []*sim.ScheduleRun, detail bool) {
	if !detail {
		fmt.Fprint(w, class.Report())
		if len(runs) > 0 {
			fmt.Fprintf(w, "\nUnder each protocol (step by step: --protocol NAME)\n%s", sim.SummaryTable(runs))
		}
		return
	}
	for i, r := range runs {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprint(w, r.Report())
	}
	if len(runs) > 1 {
		fmt.Fprintf(w, "\n%s", sim.SummaryTable(runs))
	}
}

func writeScheduleJSON(w io.Writer, class *schedule.Classification, runs []*sim.ScheduleRun) error {
	out, err := json.MarshalIndent(struct {
		Classification *schedule.Classification `json:"classification"`
		Runs           []*sim.ScheduleRun       `json:"runs"`
	}{class, append([]*sim.ScheduleRun{}, runs...)}, "", "  ")
	if err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s\n", out)
	return err
}

// pictures writes the files that are asked for. Those of the schedule as it was
// executed are drawn when it is run under one protocol.
func (f *scheduleFlags) pictures(class *schedule.Classification, runs []*sim.ScheduleRun) error {
	if f.dir != "" {
		if err := f.all(class, runs); err != nil {
			return err
		}
	}
	var one *sim.ScheduleRun
	if f.protocols != "" && len(runs) == 1 {
		one = runs[0]
	}
	if f.precedence != "" {
		c := class
		if one != nil {
			if c = one.Class; c == nil {
				return badf("precedence: what %s executed is no schedule with one version of each item: it has no precedence graph", one.Protocol)
			}
		}
		if err := writePicture("precedence", f.precedence, c.GraphSVG, c.GraphDOT); err != nil {
			return err
		}
	}
	if f.timeline != "" {
		svg := func() string { return schedule.TimelineSVG(class.Schedule) }
		if one != nil {
			svg = one.TimelineSVG
		}
		if err := writePicture("timeline", f.timeline, svg, nil); err != nil {
			return err
		}
	}
	if f.waits == "" {
		return nil
	}
	return writePicture("waits", f.waits, one.Waits.SVG, one.Waits.DOT)
}

// all writes every picture into the directory.
func (f *scheduleFlags) all(class *schedule.Classification, runs []*sim.ScheduleRun) error {
	files := map[string]string{
		"precedence.svg": class.GraphSVG(), "precedence.dot": class.GraphDOT(),
		"timeline.svg": schedule.TimelineSVG(class.Schedule),
	}
	for _, r := range runs {
		files[r.Protocol+"-timeline.svg"] = r.TimelineSVG()
		if r.Class != nil {
			files[r.Protocol+"-precedence.svg"], files[r.Protocol+"-precedence.dot"] = r.Class.GraphSVG(), r.Class.GraphDOT()
		}
		if len(r.Waits.Edges) > 0 {
			files[r.Protocol+"-waits.svg"], files[r.Protocol+"-waits.dot"] = r.Waits.SVG(), r.Waits.DOT()
		}
	}
	for name, text := range files { // order: each file on its own
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o666); err != nil {
			return badf("svg: %w", err)
		}
	}
	return nil
}

// writePicture writes a picture in the format that its file's name asks for.
func writePicture(flag, file string, svg, dot func() string) error {
	draw := svg
	if filepath.Ext(file) == ".dot" {
		draw = dot
	}
	if err := os.WriteFile(file, []byte(draw()), 0o666); err != nil {
		return badf("%s: %w", flag, err)
	}
	return nil
}
