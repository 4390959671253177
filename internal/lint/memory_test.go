package lint

import (
	"fmt"
	"go/token"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

// stdExports is the export data of what the bad sources import.
var stdExports = sync.OnceValues(func() (map[string]string, error) {
	list, err := goList(".", "bufio", "fmt", "io", "iter", "maps", "math", "math/rand/v2", "os", "reflect", "slices", "sync", "time")
	exports := map[string]string{}
	for _, l := range list {
		exports[l.ImportPath] = l.Export
	}
	return exports, err
})

// memoryModule makes the module "interleave" of an archive: each file opens
// with a line `-- name --`.
func memoryModule(t *testing.T, archive string) *Module {
	t.Helper()
	m := &Module{Path: "interleave", Fset: token.NewFileSet()}
	byDir := map[string]*Package{}
	deps := map[string][]string{}
	var dirs []string
	for _, f := range splitArchive(archive) {
		m.Texts = append(m.Texts, Text{f.name, []byte(f.data)})
		if !strings.HasSuffix(f.name, ".go") {
			continue
		}
		dir := path.Dir(f.name)
		if byDir[dir] == nil {
			byDir[dir] = &Package{Dir: dir}
			dirs = append(dirs, dir)
		}
		p := byDir[dir]
		file, err := m.parseFile(p, f.name, []byte(f.data))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.name, "_test.go") {
			p.Tests = append(p.Tests, file)
			continue
		}
		p.Files = append(p.Files, file)
		for _, importPath := range imports(file) {
			if to, own := m.within(importPath); own {
				deps[dir] = append(deps[dir], to)
			}
		}
	}
	var visit func(dir string)
	visit = func(dir string) {
		p := byDir[dir]
		if p == nil || slices.Contains(m.Packages, p) {
			return
		}
		for _, d := range deps[dir] {
			visit(d)
		}
		m.Packages = append(m.Packages, p)
	}
	for _, dir := range dirs {
		visit(dir)
	}
	exports, err := stdExports()
	if err != nil {
		t.Fatal(err)
	}
	m.typeCheck(exports)
	return m
}

type source struct{ name, data string }

func splitArchive(archive string) []source {
	var files []source
	for line := range strings.Lines(archive) {
		name, opens := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		if opens {
			files = append(files, source{name: strings.TrimSuffix(name, " --")})
			continue
		}
		files[len(files)-1].data += line
	}
	return files
}

// report formats findings one a line.
func report(findings []Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}
