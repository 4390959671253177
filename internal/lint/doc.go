// Package lint holds the project's source to the rules that no compiler
// checks: what may import what, what the deterministic core may call, floating
// point that gives the same bits on every processor, and text fit to publish.
//
// Load reads and type-checks a module; Check runs every rule over it and
// returns the findings, each with file, line and what to write instead. The
// rules are run over this project by this package's test, so a violation fails
// the ordinary tests. Each rule is shown to be able to fail by the bad sources
// in testdata, and a test fails when a rule has none.
//
//	source ── Load ──> Module (syntax, types, texts) ── Check ──> []Finding
//	                                                     │
//	   layers · calls · concurrency · floats · map order · docs · skips · text
//
// Rules that need types look at the non-test files that the present platform
// builds; skips looks at test files; text looks at every file that is, or is
// about to be, committed.
package lint
