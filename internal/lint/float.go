package lint

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
)

// checkFMA finds floating-point products that a compiler may fuse with a later
// addition. The language lets x*y + z be computed with one rounding, even
// across statements and, after inlining, across calls; amd64 does not do it,
// arm64 does. Only an explicit conversion forbids it. So a product is to be
// converted where it is made, unless what takes it is no addition: another
// product, a quotient, a comparison, a conversion, a function of package math.
// A product by a constant power of two from 1 up is exact and let through.
func checkFMA(m *Module) []Finding {
	var out []Finding
	for _, p := range m.Packages {
		if !floatCore.holds(p.Dir) {
			continue
		}
		for _, f := range p.Files {
			inspectParents(f.AST, func(n ast.Node, parents []ast.Node) {
				switch n := n.(type) {
				case *ast.BinaryExpr:
					if n.Op == token.MUL && floatExpr(p, n) && !exactFactor(p, n.X) && !exactFactor(p, n.Y) && !rounded(p, parents) {
						out = append(out, m.at(n.OpPos, "a floating-point product that may be fused with an addition", "convert it where it is made: float64(x*y)"))
					}
				case *ast.AssignStmt:
					if n.Tok == token.MUL_ASSIGN && floatExpr(p, n.Lhs[0]) && !exactFactor(p, n.Rhs[0]) {
						out = append(out, m.at(n.TokPos, "a floating-point product that may be fused with an addition", "write x = float64(x*y)"))
					}
				}
			})
		}
	}
	return out
}

// inspectParents calls visit for each node with the nodes above it, nearest last.
func inspectParents(root ast.Node, visit func(n ast.Node, parents []ast.Node)) {
	var stack []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		visit(n, stack)
		stack = append(stack, n)
		return true
	})
}

// floatExpr reports whether e is computed at run time and may be floating point.
func floatExpr(p *Package, e ast.Expr) bool {
	tv, ok := p.Info.Types[e]
	if !ok || tv.Value != nil || tv.Type == nil {
		return false
	}
	return anyTerm(tv.Type, func(u types.Type) bool {
		b, ok := u.(*types.Basic)
		return ok && b.Info()&(types.IsFloat|types.IsComplex) != 0
	})
}

// exactFactor reports whether e is a constant power of two, at least 1, so that
// a product by it is exact: fused or not, the sum is the same.
func exactFactor(p *Package, e ast.Expr) bool {
	v := p.Info.Types[e].Value
	if v == nil || v.Kind() != constant.Int && v.Kind() != constant.Float {
		return false
	}
	x, exact := constant.Float64Val(v)
	mantissa, _ := math.Frexp(x)
	return exact && x >= 1 && mantissa == 0.5
}

// rounded reports whether the expression under parents is taken by something
// that cannot be fused with it.
func rounded(p *Package, parents []ast.Node) bool {
	for i := len(parents) - 1; i >= 0; i-- {
		switch n := parents[i].(type) {
		case *ast.ParenExpr:
			continue
		case *ast.UnaryExpr:
			continue // a sign is folded into the fused operation
		case *ast.BinaryExpr:
			switch n.Op {
			case token.MUL, token.QUO, token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ:
				return true
			default:
				return false
			}
		case *ast.CallExpr:
			if tv := p.Info.Types[n.Fun]; tv.IsType() {
				return true
			}
			fn := calleeObject(p, n)
			return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "math"
		default:
			return false
		}
	}
	return false
}

func calleeObject(p *Package, call *ast.CallExpr) types.Object {
	switch fun := callee(call).(type) {
	case *ast.SelectorExpr:
		return p.Info.Uses[fun.Sel]
	case *ast.Ident:
		return p.Info.Uses[fun]
	default:
		return nil
	}
}

// exactMath lists the functions of package math whose result is exact or
// correctly rounded, so that every processor agrees on it. The others are
// assembly on some processors and fusible Go on others.
var exactMath = map[string]bool{
	"Abs": true, "Ceil": true, "Copysign": true, "Dim": true, "FMA": true, "Float32bits": true,
	"Float32frombits": true, "Float64bits": true, "Float64frombits": true, "Floor": true,
	"Frexp": true, "Ilogb": true, "Inf": true, "IsInf": true, "IsNaN": true, "Ldexp": true,
	"Logb": true, "Max": true, "Min": true, "Mod": true, "Modf": true, "NaN": true,
	"Nextafter": true, "Round": true, "RoundToEven": true, "Signbit": true, "Sqrt": true, "Trunc": true,
}

func checkMath(m *Module) []Finding {
	var out []Finding
	for _, p := range m.Packages {
		if !floatCore.holds(p.Dir) {
			continue
		}
		for _, f := range p.Files {
			ast.Inspect(f.AST, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				fn, ok := p.Info.Uses[id].(*types.Func)
				if ok && fn.Pkg() != nil && fn.Pkg().Path() == "math" && !exactMath[fn.Name()] {
					out = append(out, m.at(id.Pos(), "math."+fn.Name()+" differs between processors", "use sim/rng's own, integers, or a table built once"))
				}
				return true
			})
		}
	}
	return out
}
