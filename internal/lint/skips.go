package lint

import (
	"go/ast"
	"strconv"
	"strings"
)

// testers are the types whose Skip ends a test.
var testers = map[string]bool{
	"testing.T": true, "testing.B": true, "testing.F": true, "testing.TB": true, "rapid.T": true, "rapid.TB": true,
}

// checkSkips finds tests skipped without a reason. Test files are not
// type-checked: the receivers are the parameters of a tester's type.
func checkSkips(m *Module) []Finding {
	var out []Finding
	for _, p := range m.Packages {
		for _, f := range p.Tests {
			names := testerNames(f.AST)
			ast.Inspect(f.AST, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				sel, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				recv, ok := sel.X.(*ast.Ident)
				if ok && names[recv.Name] && mute(sel.Sel.Name, call.Args) {
					out = append(out, m.at(call.Pos(), "a test skipped without a reason", "say what is missing and how to have it: t.Skip(\"…\")"))
				}
				return true
			})
		}
	}
	return out
}

// mute reports whether a call of the tester's method skips without a reason.
func mute(method string, args []ast.Expr) bool {
	switch method {
	case "SkipNow":
		return true
	case "Skip", "Skipf":
		if len(args) == 0 {
			return true
		}
		lit, ok := args[0].(*ast.BasicLit)
		if !ok {
			return false
		}
		s, err := strconv.Unquote(lit.Value)
		return err == nil && strings.TrimSpace(s) == ""
	default:
		return false
	}
}

func testerNames(f *ast.File) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		ft, ok := n.(*ast.FuncType)
		if !ok {
			return true
		}
		for _, field := range ft.Params.List {
			t := field.Type
			if s, ok := t.(*ast.StarExpr); ok {
				t = s.X
			}
			sel, ok := t.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && testers[pkg.Name+"."+sel.Sel.Name] {
				for _, name := range field.Names {
					names[name.Name] = true
				}
			}
		}
		return true
	})
	return names
}
