package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// counts is how many tests ended in which way.
type counts struct{ passed, failed, skipped int }

// String formats c as the closing line.
func (c counts) String() string {
	s := fmt.Sprintf("%d passed, %d failed", c.passed, c.failed)
	if c.skipped > 0 {
		s += fmt.Sprintf(", %d skipped", c.skipped)
	}
	return s
}

// record is one line of `go test -json`, as `go doc test2json` describes it.
type record struct {
	Action, Package, ImportPath, Test, Output, FailedBuild string
	Elapsed                                                float64 // seconds
}

// tally is what is known of one package until it ends.
type tally struct {
	counts
	output   map[string][]string // by test, "" is the package's own
	parents  map[string]bool     // tests that have subtests
	failures map[string]bool     // tests that failed, or have a subtest that did
}

type counter struct {
	counts
	w        io.Writer
	packages map[string]*tally
	builds   map[string][]string // compiler output by import path
}

// count reads records from r to the end and writes the report, without the
// closing line, to w. Lines that are no records are passed on.
func count(r io.Reader, w io.Writer) (counts, error) {
	c := counter{w: w, packages: map[string]*tally{}, builds: map[string][]string{}}
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			var rec record
			if json.Unmarshal([]byte(line), &rec) == nil && rec.Action != "" {
				c.add(rec)
			} else {
				fmt.Fprintln(w, strings.TrimSuffix(line, "\n"))
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return c.counts, err
		}
	}
	return c.counts, c.unfinished()
}

// unfinished reports packages that began and never ended.
func (c *counter) unfinished() error {
	var names []string
	// order: sorted below.
	for name := range c.packages {
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("the input ends before these packages did: %s", strings.Join(names, ", "))
}

func (c *counter) add(rec record) {
	switch rec.Action {
	case "build-output":
		c.builds[rec.ImportPath] = append(c.builds[rec.ImportPath], rec.Output)
		return
	case "build-fail":
		return
	}
	p := c.packages[rec.Package]
	if p == nil {
		p = &tally{output: map[string][]string{}, parents: map[string]bool{}, failures: map[string]bool{}}
		c.packages[rec.Package] = p
	}
	switch rec.Action {
	case "run":
		for name, ok := parent(rec.Test); ok; name, ok = parent(name) {
			p.parents[name] = true
		}
	case "output":
		p.output[rec.Test] = append(p.output[rec.Test], rec.Output)
	case "pass", "fail", "skip":
		if rec.Test == "" {
			c.end(rec, p)
			return
		}
		c.endTest(rec, p)
	}
}

func parent(test string) (string, bool) {
	i := strings.LastIndexByte(test, '/')
	if i < 0 {
		return "", false
	}
	return test[:i], true
}

func (c *counter) endTest(rec record, p *tally) {
	switch rec.Action {
	case "fail":
		blamed := p.failures[rec.Test] // a subtest has been counted
		if !blamed {
			p.failed++
		}
		for name, ok := rec.Test, true; ok; name, ok = parent(name) {
			p.failures[name] = true
		}
		fmt.Fprintf(c.w, "--- FAIL: %s %s (%.2fs)\n", rec.Package, rec.Test, rec.Elapsed)
		c.print(p.output[rec.Test])
	case "skip":
		p.skipped++
	case "pass":
		if !p.parents[rec.Test] {
			p.passed++
		}
	}
	delete(p.output, rec.Test)
}

// end closes a package: its line, and what it said if no test is to blame.
func (c *counter) end(rec record, p *tally) {
	delete(c.packages, rec.Package)
	if rec.Action == "fail" && p.failed == 0 {
		p.failed++
		c.print(c.builds[rec.FailedBuild])
		var cut []string
		// order: sorted below.
		for name := range p.output {
			cut = append(cut, name)
		}
		slices.Sort(cut)
		for _, name := range cut {
			c.print(p.output[name])
		}
	}
	c.passed += p.passed
	c.failed += p.failed
	c.skipped += p.skipped
	switch {
	case rec.Action == "fail":
		fmt.Fprintf(c.w, "FAIL %s (%.1f s): %v\n", rec.Package, rec.Elapsed, p.counts)
	case p.counts == counts{}:
		fmt.Fprintf(c.w, "     %s has no tests\n", rec.Package)
	default:
		fmt.Fprintf(c.w, "ok   %s (%.1f s): %v\n", rec.Package, rec.Elapsed, p.counts)
	}
}

// print passes on output but for the lines that only say what begins or ends.
func (c *counter) print(lines []string) {
	for _, l := range lines {
		if !strings.HasPrefix(l, "=== ") && !strings.HasPrefix(strings.TrimSpace(l), "--- FAIL: ") {
			fmt.Fprint(c.w, l)
		}
	}
}
