package lint

import (
	"cmp"
	"fmt"
	"slices"
)

// Finding is one place that breaks a rule.
type Finding struct {
	Rule    string // name of the rule
	File    string // path from the module's root, with slashes
	Line    int    // 1 is the first line
	What    string // what is there
	Instead string // what to write instead
}

// String formats f as one line, file and line first so that editors can jump.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s; %s", f.File, f.Line, f.Rule, f.What, f.Instead)
}

// Rule is one check of a module.
type Rule struct {
	Name  string
	Help  string // one line: what the rule holds
	check func(*Module) []Finding
}

// Rules returns every rule, in the order in which Check runs them.
func Rules() []Rule {
	return []Rule{
		{"compile", "every package type-checks, so that the other rules see all of it", checkCompile},
		{"layers", "imports point one way, and the judge imports nobody it judges", checkLayers},
		{"core-import", "the deterministic core imports no clock, randomness, I/O or foreign code", checkCoreImports},
		{"core-call", "the deterministic core reads no clock and starts no coroutine", checkCoreCalls},
		{"core-concurrency", "the deterministic core has no goroutine and no channel", checkConcurrency},
		{"map-order", "the order of a map does not escape, and the reason is written down", checkMapOrder},
		{"float-fma", "a floating-point product is rounded where it is made", checkFMA},
		{"float-math", "floating-point functions are those that agree on every processor", checkMath},
		{"docs", "every exported identifier and every package has a doc comment", checkDocs},
		{"skip-reason", "a skipped test says why", checkSkips},
		{"text", "committed text names no machine path and leaves no work marked undone", checkText},
	}
}

// Check runs every rule over m and returns the findings in order of file,
// line and rule.
func Check(m *Module) []Finding {
	var all []Finding
	for _, r := range Rules() {
		for _, f := range r.check(m) {
			f.Rule = r.Name
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
	return all
}

func checkCompile(m *Module) []Finding {
	var out []Finding
	for _, p := range m.Packages {
		for _, e := range p.Errors {
			pos := m.Fset.Position(e.Pos)
			out = append(out, Finding{File: m.rel(pos.Filename), Line: pos.Line, What: e.Msg, Instead: "make it compile"})
		}
	}
	return out
}
