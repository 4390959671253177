package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Module is one Go module as the rules see it.
type Module struct {
	Path     string // the module's import path
	Root     string // its directory; empty for sources in memory
	Fset     *token.FileSet
	Packages []*Package // imported ones before their importers
	Texts    []Text     // every text file that belongs to the project
}

// Package is one package of the module, without its tests in the type
// information.
type Package struct {
	Dir    string // from the module's root, with slashes; "." is the root
	Files  []*File
	Tests  []*File // parsed, not type-checked
	Types  *types.Package
	Info   *types.Info
	Errors []types.Error
}

// File is one parsed Go file.
type File struct {
	Name string // from the module's root, with slashes
	AST  *ast.File
}

// Text is one file of the project that is not binary.
type Text struct {
	Name string // from the module's root, with slashes
	Data []byte
}

// listed is what the go command says of a package.
type listed struct {
	ImportPath, Dir, Export                                      string
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles, IgnoredGoFiles []string
	Module                                                       *struct {
		Path string
		Main bool
	}
}

// Load reads the module whose go.mod is in root. Foreign packages come from
// the build cache, which the go command fills as needed. A package that does
// not compile is reported by the compile rule, not as an error here.
func Load(root string) (*Module, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	list, err := goList(root, "./...")
	if err != nil {
		return nil, err
	}
	m := &Module{Root: root, Fset: token.NewFileSet()}
	exports := map[string]string{}
	for _, l := range list {
		if l.Module == nil || !l.Module.Main {
			exports[l.ImportPath] = l.Export
			continue
		}
		m.Path = l.Module.Path
		p, err := m.parse(l)
		if err != nil {
			return nil, err
		}
		m.Packages = append(m.Packages, p)
	}
	m.typeCheck(exports)
	m.Texts, err = projectTexts(root)
	return m, err
}

// goList returns the packages of the patterns and everything they import,
// imported ones first.
func goList(dir string, patterns ...string) ([]listed, error) {
	args := append([]string{"list", "-e", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,IgnoredGoFiles,Module"}, patterns...)
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w: %s", dir, err, stderr.Bytes())
	}
	var list []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list in %s: %w", dir, err)
		}
		list = append(list, l)
	}
}

func (m *Module) parse(l listed) (*Package, error) {
	dir, err := filepath.Rel(m.Root, l.Dir)
	if err != nil {
		return nil, err
	}
	p := &Package{Dir: filepath.ToSlash(dir)}
	read := func(names []string) (files []*File, err error) {
		for _, name := range names {
			src, err := os.ReadFile(filepath.Join(l.Dir, name))
			if err != nil {
				return nil, err
			}
			f, err := m.parseFile(p, filepath.Join(l.Dir, name), src)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
		return files, nil
	}
	if p.Files, err = read(append(l.GoFiles, l.CgoFiles...)); err != nil {
		return nil, err
	}
	tests := append(l.TestGoFiles, l.XTestGoFiles...)
	for _, name := range l.IgnoredGoFiles {
		// Slower suites stand behind a build tag.
		if strings.HasSuffix(name, "_test.go") {
			tests = append(tests, name)
		}
	}
	p.Tests, err = read(tests)
	return p, err
}

// parseFile parses one file. A syntax error becomes an error of p.
func (m *Module) parseFile(p *Package, name string, src []byte) (*File, error) {
	f, err := parser.ParseFile(m.Fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if f == nil {
		return nil, err
	}
	if err != nil {
		p.Errors = append(p.Errors, types.Error{Fset: m.Fset, Pos: f.Package, Msg: err.Error()})
	}
	return &File{Name: m.rel(name), AST: f}, nil
}

// rel returns a file's name from the module's root.
func (m *Module) rel(name string) string {
	if m.Root != "" {
		if r, err := filepath.Rel(m.Root, name); err == nil {
			name = r
		}
	}
	return filepath.ToSlash(name)
}

// importPath returns the import path of the module's package in dir.
func (m *Module) importPath(dir string) string { return path.Join(m.Path, dir) }

// within returns the directory in the module of an import path.
func (m *Module) within(importPath string) (dir string, ok bool) {
	if importPath == m.Path {
		return ".", true
	}
	return strings.CutPrefix(importPath, m.Path+"/")
}

// chain imports the module's own packages from source and others from the
// export data in the build cache.
type chain struct {
	own     map[string]*types.Package
	foreign types.Importer
	exports map[string]string
}

// Import implements types.Importer.
func (c chain) Import(importPath string) (*types.Package, error) {
	if p := c.own[importPath]; p != nil {
		return p, nil
	}
	if importPath == "unsafe" {
		return types.Unsafe, nil
	}
	if c.exports[importPath] == "" {
		return nil, fmt.Errorf("package %s is not built", importPath)
	}
	return c.foreign.Import(importPath)
}

// typeCheck checks every package in order and keeps what errors there are.
func (m *Module) typeCheck(exports map[string]string) {
	open := func(importPath string) (io.ReadCloser, error) { return os.Open(exports[importPath]) }
	c := chain{map[string]*types.Package{}, importer.ForCompiler(m.Fset, "gc", open), exports}
	for _, p := range m.Packages {
		p.Info = &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{},
			Uses:  map[*ast.Ident]types.Object{},
			Defs:  map[*ast.Ident]types.Object{},
		}
		conf := types.Config{Importer: c, FakeImportC: true, Error: func(err error) {
			var te types.Error
			if errors.As(err, &te) {
				p.Errors = append(p.Errors, te)
			}
		}}
		var files []*ast.File
		for _, f := range p.Files {
			files = append(files, f.AST)
		}
		importPath := m.importPath(p.Dir)
		// The errors have been kept one by one; the first is all that Check returns.
		p.Types, _ = conf.Check(importPath, m.Fset, files, p.Info)
		c.own[importPath] = p.Types
	}
}

// projectTexts returns the text files that are committed or would be.
func projectTexts(root string) ([]Text, error) {
	names, err := projectFiles(root)
	if err != nil {
		return nil, err
	}
	var texts []Text
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, not yet committed
		}
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(data, []byte{0}) {
			texts = append(texts, Text{name, data})
		}
	}
	return texts, nil
}

// projectFiles asks git, which knows what is ignored; in an unpacked archive
// without git, it is every file.
func projectFiles(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		slices.Sort(names)
		return slices.Compact(names), nil
	}
	var names []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		r, err := filepath.Rel(root, p)
		names = append(names, filepath.ToSlash(r))
		return err
	})
	return names, err
}
