package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// at makes a finding at a position.
func (m *Module) at(pos token.Pos, what, instead string) Finding {
	p := m.Fset.Position(pos)
	return Finding{File: m.rel(p.Filename), Line: p.Line, What: what, Instead: instead}
}

// coreFiles yields the files of the core but for those that host raft.
func coreFiles(m *Module) func(yield func(*Package, *File) bool) {
	return func(yield func(*Package, *File) bool) {
		for _, p := range m.Packages {
			if !core.holds(p.Dir) {
				continue
			}
			for _, f := range p.Files {
				if !raftHost(f.Name) && !yield(p, f) {
					return
				}
			}
		}
	}
}

const (
	useStreams = "draw from a named stream of sim/rng"
	useLoop    = "schedule an event on the loop"
	useCaller  = "take what it says as an argument; files and sockets are opened by sim or the command"
	useEvents  = "be a state machine that the loop calls: no two calls are ever at once"
)

// bannedImports maps an import path to what to use instead. A path stands for
// those below it too.
var bannedImports = map[string]string{
	"math/rand":    useStreams,
	"crypto/rand":  useStreams,
	"hash/maphash": "hash with sim/rng's Hash: maphash is seeded anew in every process",
	"os":           useCaller,
	"net":          useCaller,
	"io":           useCaller,
	"bufio":        useCaller,
	"log":          "return what is worth saying, or panic with virtual time, node and transaction",
	"syscall":      useCaller,
	"sync":         useEvents,
	"context":      useEvents,
	"runtime":      "depend on nothing that differs between processes",
	"testing":      "keep test helpers in _test.go files",
	"math/cmplx":   "write out the parts, each product rounded",
}

// allowedImports lists, for parts of the core, what they may import although
// it is banned or foreign. A file prefix and an import path; both stand for
// what is below them.
var allowedImports = []struct{ file, importPath, why string }{
	{"reports/", "io", "tables are written to an io.Writer"},
	{"reports/", "bufio", "tables are written to an io.Writer"},
	{"reports/", "github.com/HdrHistogram/hdrhistogram-go", "latency histograms"},
	{"reports/", "gonum.org/v1", "statistics and plots"},
	{"reports/", "github.com/jedib0t/go-pretty", "tables"},
	{"txnproto/history/", "io", "histories are read and written"},
	{"txnproto/history/", "bufio", "histories are read and written"},
	{"workloads/ycsb", "os", "YCSB property files are read"},
	{"workloads/ycsb", "io", "YCSB property files are read"},
	{"workloads/ycsb", "bufio", "YCSB property files are read"},
	{"sim/event/", "runtime/debug", "a panic in a handler carries its stack"},
	{"nodes/", "io", "snapshots are written and read"},
	{"nodes/", "github.com/tidwall/btree", "the ordered store"},
	{"txnproto/controltest/", "testing", "it runs controllers in tests and is imported by tests only"},
	{"txnproto/controltest/", "github.com/cockroachdb/datadriven", "it runs controllers in tests and is imported by tests only"},
	{"txnproto/conformance/", "testing", "it is a suite that tests call"},
	{"txnproto/", "github.com/tidwall/btree", "ordered lock tables and version maps"},
}

func allowed(file, importPath string) bool {
	for _, a := range allowedImports {
		if strings.HasPrefix(file, a.file) && under(importPath, a.importPath) {
			return true
		}
	}
	return false
}

func bannedImport(importPath string) (instead string, banned bool) {
	for p := importPath; p != ""; {
		if instead, banned = bannedImports[p]; banned {
			return instead, true
		}
		i := strings.LastIndexByte(p, '/')
		if i < 0 {
			break
		}
		p = p[:i]
	}
	return "", false
}

func checkCoreImports(m *Module) []Finding {
	var out []Finding
	for _, f := range coreFiles(m) {
		for spec, importPath := range imports(f) {
			if _, own := m.within(importPath); own || allowed(f.Name, importPath) {
				continue
			}
			instead, banned := bannedImport(importPath)
			if !banned {
				first, _, _ := strings.Cut(importPath, "/")
				if !strings.Contains(first, ".") {
					continue // the standard library
				}
				instead = "write it here, or give the reason in internal/lint/core.go"
			}
			out = append(out, m.at(spec.Pos(), "the core imports "+importPath, instead))
		}
	}
	return out
}

// bannedCalls maps package path and function to what to use instead.
var bannedCalls = map[string]string{
	"time.Now":       "ask the loop: Loop.Now",
	"time.Since":     "subtract event.Time values",
	"time.Until":     "subtract event.Time values",
	"time.Sleep":     useLoop,
	"time.After":     useLoop,
	"time.AfterFunc": useLoop,
	"time.Tick":      useLoop,
	"time.NewTimer":  useLoop,
	"time.NewTicker": useLoop,
	"iter.Pull":      "be a state machine; programs as plain functions stay in workloads/func*.go",
	"iter.Pull2":     "be a state machine; programs as plain functions stay in workloads/func*.go",
}

func checkCoreCalls(m *Module) []Finding {
	var out []Finding
	for p, f := range coreFiles(m) {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			name := fullName(p.Info.Uses[id])
			instead, banned := bannedCalls[name]
			if banned && !(strings.HasPrefix(name, "iter.") && strings.HasPrefix(f.Name, "workloads/func")) {
				out = append(out, m.at(id.Pos(), "the core uses "+name, instead))
			}
			return true
		})
	}
	return out
}

// fullName returns "path.Name" of a package-level function, else "".
func fullName(o types.Object) string {
	fn, ok := o.(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Signature().Recv() != nil {
		return ""
	}
	return fn.Pkg().Path() + "." + fn.Name()
}

func checkConcurrency(m *Module) []Finding {
	var out []Finding
	for p, f := range coreFiles(m) {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			var what string
			switch n := n.(type) {
			case *ast.GoStmt:
				what = "a goroutine"
			case *ast.SelectStmt:
				what = "a select"
			case *ast.ChanType:
				what = "a channel type"
			case *ast.SendStmt:
				what = "a channel send"
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					what = "a channel receive"
				}
			case *ast.RangeStmt:
				if t := p.Info.TypeOf(n.X); t != nil {
					if _, ok := t.Underlying().(*types.Chan); ok {
						what = "a range over a channel"
					}
				}
			}
			if what != "" {
				out = append(out, m.at(n.Pos(), fmt.Sprintf("the core has %s", what), useEvents))
			}
			return true
		})
	}
	return out
}
