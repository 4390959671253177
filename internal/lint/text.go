package lint

import (
	"bytes"
	"regexp"
	"strings"
)

// textRules are looked for line by line in every text file. Names of machines
// and of the desk at which a line was written mean nothing to its reader.
var textRules = []struct {
	pattern       *regexp.Regexp
	what, instead string
}{
	{
		regexp.MustCompile(`(?:^|[^\w.\-/*$}])/(?:work|root|tmp/hw|home/\w+|Users/\w+)(?:/|\b)`),
		"a path of one machine", "use a path from the checkout's root, or a flag",
	},
	{
		regexp.MustCompile(`(?i)\b(?:proxy\.golang\.org|sum\.golang\.org|deb\.debian\.org|registry\.npmjs\.org)\b`),
		"the host of a package registry", "name the package alone",
	},
	{
		regexp.MustCompile(`(?i)\b(?:sub-?agents?|(?:helper|agent) sessions?|(?:see )?issues? #\d+|see issue \d+)\b`),
		"talk of how the text came about", "say what holds and why",
	},
	{
		regexp.MustCompile(`\b(?:TODO|FIXME|XXX)\b|(?i)panic\("(?:todo|not (?:yet )?implemented|unimplemented)`),
		"work marked undone", "do it, or leave it out and say so in the docs",
	},
}

// textExempt lists the prefixes of files not looked at: this package, which
// has to name what it looks for, the licence, and lists of checksums.
var textExempt = []string{"internal/lint/", "LICENSE", "go.sum", "tools/go.sum"}

func checkText(m *Module) []Finding {
	var out []Finding
	for _, t := range m.Texts {
		if exemptText(t.Name) {
			continue
		}
		line := 0
		for l := range bytes.Lines(t.Data) {
			line++
			for _, r := range textRules {
				if hit := r.pattern.Find(l); hit != nil {
					what := r.what + ": " + strings.TrimSpace(string(hit))
					out = append(out, Finding{File: t.Name, Line: line, What: what, Instead: r.instead})
				}
			}
		}
	}
	return out
}

func exemptText(name string) bool {
	for _, p := range textExempt {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
