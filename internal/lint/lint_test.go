package lint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestProject holds this project to the rules.
func TestProject(t *testing.T) {
	m, err := Load(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if m.Path != "interleave" || len(m.Packages) == 0 || len(m.Texts) == 0 {
		t.Fatalf("loaded module %q with %d packages and %d texts", m.Path, len(m.Packages), len(m.Texts))
	}
	for _, f := range Check(m) {
		t.Error(f)
	}
}

// TestBadSources runs all the rules over sources in memory. The commands of
// testdata:
//
//	lint [rules=(a,b)]    the findings of the archive below, of all rules or these
//	may-import FROM TO    why an import is not allowed
func TestBadSources(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "lint":
				findings := Check(memoryModule(t, d.Input))
				if len(d.CmdArgs) > 0 {
					findings = only(t, findings, d.CmdArgs)
				}
				return report(findings)
			case "may-import":
				if len(d.CmdArgs) != 2 {
					d.Fatalf(t, "want FROM TO")
				}
				why := mayImport(d.CmdArgs[0].Key, d.CmdArgs[1].Key)
				if why == "" {
					return "yes\n"
				}
				return "no: " + why + "\n"
			default:
				d.Fatalf(t, "unknown command %q", d.Cmd)
				return ""
			}
		})
	})
}

func only(t *testing.T, findings []Finding, args []datadriven.CmdArg) []Finding {
	t.Helper()
	want := map[string]bool{}
	for _, a := range args {
		if a.Key != "rules" {
			t.Fatalf("unknown argument %q", a.Key)
		}
		for _, v := range a.Vals {
			want[v] = true
		}
	}
	var out []Finding
	for _, f := range findings {
		if want[f.Rule] {
			out = append(out, f)
		}
	}
	return out
}

// TestEveryRuleCanFail looks for a finding of each rule in testdata.
func TestEveryRuleCanFail(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	for _, r := range Rules() {
		if !strings.Contains(all.String(), ": "+r.Name+": ") {
			t.Errorf("rule %s (%s) has no bad source in testdata", r.Name, r.Help)
		}
	}
}
