package lint

import (
	"go/ast"
	"go/token"
	"strings"
	"unicode"
)

const writeDoc = "say what it is: shapes, units, errors, and for an algorithm its source"

// checkDocs finds packages and exported identifiers without a doc comment. A
// comment on a group of constants or variables, or at the end of a line, does
// for its members, and a method of an interface may be explained by name in the
// comment of the interface or of another method. Fields of structs are not asked
// for.
func checkDocs(m *Module) []Finding {
	var out []Finding
	for _, p := range m.Packages {
		documented := false
		for _, f := range p.Files {
			documented = documented || text(f.AST.Doc) != ""
			for _, d := range f.AST.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Name.IsExported() && exportedReceiver(d) && text(d.Doc) == "" {
						out = append(out, m.at(d.Name.Pos(), d.Name.Name+" has no doc comment", writeDoc))
					}
				case *ast.GenDecl:
					out = append(out, m.genDocs(d)...)
				}
			}
		}
		if !documented && len(p.Files) > 0 {
			out = append(out, m.at(p.Files[0].AST.Package, "package "+p.Dir+" has no doc comment", "say what it is for, in doc.go or the file named after it"))
		}
	}
	return out
}

// text returns a comment's text without directives such as go:build.
func text(g *ast.CommentGroup) string { return strings.TrimSpace(g.Text()) }

// exportedReceiver reports whether d is no method, or one of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

func (m *Module) genDocs(d *ast.GenDecl) []Finding {
	var out []Finding
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if !s.Name.IsExported() {
				continue
			}
			alone := !d.Lparen.IsValid()
			if text(s.Doc) == "" && text(s.Comment) == "" && (!alone || text(d.Doc) == "") {
				out = append(out, m.at(s.Name.Pos(), s.Name.Name+" has no doc comment", writeDoc))
			}
			if it, ok := s.Type.(*ast.InterfaceType); ok {
				out = append(out, m.methodDocs(s.Name.Name, it, text(s.Doc)+" "+text(d.Doc))...)
			}
		case *ast.ValueSpec:
			if d.Tok == token.IMPORT || text(d.Doc) != "" || text(s.Doc) != "" || text(s.Comment) != "" {
				continue
			}
			for _, name := range s.Names {
				if name.IsExported() {
					out = append(out, m.at(name.Pos(), name.Name+" has no doc comment", writeDoc))
				}
			}
		}
	}
	return out
}

func (m *Module) methodDocs(owner string, it *ast.InterfaceType, said string) []Finding {
	for _, f := range it.Methods.List {
		said += " " + text(f.Doc)
	}
	// A method alone in its interface is what the interface's comment is about.
	if it.Methods.NumFields() == 1 && strings.TrimSpace(said) != "" {
		return nil
	}
	explained := map[string]bool{}
	for _, word := range strings.FieldsFunc(said, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		explained[word] = true
	}
	var out []Finding
	for _, f := range it.Methods.List {
		for _, name := range f.Names {
			if name.IsExported() && text(f.Doc) == "" && text(f.Comment) == "" && !explained[name.Name] {
				out = append(out, m.at(name.Pos(), owner+"."+name.Name+" has no doc comment", writeDoc))
			}
		}
	}
	return out
}
