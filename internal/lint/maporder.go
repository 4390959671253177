package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// orderMark opens the comment that says why the order of a map does not escape.
const orderMark = "// order:"

// sortsAll lists the functions whose result does not depend on the order of
// the sequence they are given.
var sortsAll = map[string]bool{
	"slices.Sorted":           true,
	"slices.SortedFunc":       true,
	"slices.SortedStableFunc": true,
}

// visitsMap lists functions that walk a map in its own order. Those of reflect
// are methods and are found by name.
var visitsMap = map[string]bool{
	"maps.All":        true,
	"maps.Keys":       true,
	"maps.Values":     true,
	"maps.DeleteFunc": true,
}

// checkMapOrder finds ranges over maps, and walks of a map by the maps and
// reflect packages, that are not sorted on the spot and carry no reason.
//
// A stable sort by a key that is not unique still shows the map's order; that
// a comparison is total is not checked.
func checkMapOrder(m *Module) []Finding {
	var out []Finding
	for _, p := range m.Packages {
		for _, f := range p.Files {
			reasons, empty := orderMarks(m, f)
			for _, pos := range empty {
				out = append(out, m.at(pos, "an order mark without a reason", "say why the order does not escape"))
			}
			for _, w := range mapWalks(p, f) {
				line := m.Fset.Position(w.pos).Line
				if reasons[line] || reasons[line-1] {
					continue
				}
				out = append(out, m.at(w.pos, w.what,
					"walk a slice or slices.Sorted(maps.Keys(…)), or write `"+orderMark+" reason` on this line or the one above"))
			}
		}
	}
	return out
}

// orderMarks returns the lines with a mark, and the marks that give no reason.
func orderMarks(m *Module, f *File) (lines map[int]bool, empty []token.Pos) {
	lines = map[int]bool{}
	for _, g := range f.AST.Comments {
		for _, c := range g.List {
			reason, ok := strings.CutPrefix(c.Text, orderMark)
			if !ok {
				continue
			}
			if strings.TrimSpace(reason) == "" {
				empty = append(empty, c.Pos())
				continue
			}
			// A mark counts at the end of its comment group, so that a reason may
			// take several lines above the statement.
			lines[m.Fset.Position(c.Pos()).Line] = true
			lines[m.Fset.Position(g.End()).Line] = true
		}
	}
	return lines, empty
}

type mapWalk struct {
	pos  token.Pos
	what string
}

func mapWalks(p *Package, f *File) []mapWalk {
	var walks []mapWalk
	sorted := map[ast.Node]bool{} // calls whose sequence is sorted at once
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if t := p.Info.TypeOf(n.X); t != nil && isMap(t) {
				walks = append(walks, mapWalk{n.Pos(), "a range over " + short(t)})
			}
		case *ast.CallExpr:
			if sortsAll[calleeName(p, n)] && len(n.Args) > 0 {
				sorted[callee(n.Args[0])] = true
			}
		case *ast.SelectorExpr:
			name := fullName(p.Info.Uses[n.Sel])
			if fn, ok := p.Info.Uses[n.Sel].(*types.Func); ok && fn.Pkg() != nil && fn.Pkg().Path() == "reflect" {
				if fn.Name() == "MapKeys" || fn.Name() == "MapRange" {
					walks = append(walks, mapWalk{n.Pos(), "a walk of a map by reflect." + fn.Name()})
				}
			}
			if visitsMap[name] && !sorted[n] {
				walks = append(walks, mapWalk{n.Pos(), "a walk of a map by " + name})
			}
		}
		return true
	})
	return walks
}

// callee returns the function expression of a call, without type arguments,
// or nil when e is no call.
func callee(e ast.Expr) ast.Node {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return nil
	}
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.IndexExpr:
		return fun.X
	case *ast.IndexListExpr:
		return fun.X
	default:
		return fun
	}
}

func calleeName(p *Package, call *ast.CallExpr) string {
	switch fun := callee(call).(type) {
	case *ast.SelectorExpr:
		return fullName(p.Info.Uses[fun.Sel])
	case *ast.Ident:
		return fullName(p.Info.Uses[fun])
	default:
		return ""
	}
}

// isMap reports whether t is a map, or a type parameter that may be one.
func isMap(t types.Type) bool {
	return anyTerm(t, func(u types.Type) bool {
		_, ok := u.(*types.Map)
		return ok
	})
}

// anyTerm reports whether pred holds for the underlying type of t or, for a
// type parameter, of any type in its constraint.
func anyTerm(t types.Type, pred func(types.Type) bool) bool {
	tp, ok := types.Unalias(t).(*types.TypeParam)
	if !ok {
		return pred(t.Underlying())
	}
	iface, ok := tp.Constraint().Underlying().(*types.Interface)
	if !ok {
		return false
	}
	return anyEmbedded(iface, pred)
}

func anyEmbedded(iface *types.Interface, pred func(types.Type) bool) bool {
	for i := range iface.NumEmbeddeds() {
		switch e := types.Unalias(iface.EmbeddedType(i)).(type) {
		case *types.Union:
			for j := range e.Len() {
				if inConstraint(e.Term(j).Type(), pred) {
					return true
				}
			}
		default:
			if inConstraint(e, pred) {
				return true
			}
		}
	}
	return false
}

func inConstraint(t types.Type, pred func(types.Type) bool) bool {
	if iface, ok := t.Underlying().(*types.Interface); ok {
		return anyEmbedded(iface, pred)
	}
	return pred(t.Underlying())
}

func short(t types.Type) string {
	return fmt.Sprint(types.TypeString(t, func(p *types.Package) string { return p.Name() }))
}
