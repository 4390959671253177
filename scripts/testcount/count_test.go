package main

import (
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     counts
		contains []string
		fails    string
	}{
		{
			"subtests count, their parent does not",
			`{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/x"}
{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"run","Package":"p","Test":"TestA/y"}
{"Action":"skip","Package":"p","Test":"TestA/y"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Elapsed":1.26}
`,
			counts{1, 0, 1},
			[]string{"ok   p (1.3 s): 1 passed, 0 failed, 1 skipped\n"},
			"",
		},
		{
			"a failed subtest is one failure and its output is shown",
			`{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/x"}
{"Action":"output","Package":"p","Test":"TestA/x","Output":"=== RUN   TestA/x\n"}
{"Action":"output","Package":"p","Test":"TestA/x","Output":"    got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"TestA/x"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestB","Output":"quiet when it passes\n"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p","Elapsed":0.1}
`,
			counts{1, 1, 0},
			[]string{"--- FAIL: p TestA/x", "    got 1, want 2\n", "FAIL p (0.1 s): 1 passed, 1 failed\n"},
			"",
		},
		{
			"a parent that fails by itself is one failure",
			`{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/x"}
{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
`,
			counts{1, 1, 0},
			nil,
			"",
		},
		{
			"a package that does not build is one failure",
			`{"ImportPath":"p [p.test]","Action":"build-output","Output":"p.go:3: undefined: x\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"start","Package":"p"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}
`,
			counts{0, 1, 0},
			[]string{"p.go:3: undefined: x\n"},
			"",
		},
		{
			"a process that dies is one failure and its last words are shown",
			`{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: boom\n"}
{"Action":"fail","Package":"p"}
`,
			counts{0, 1, 0},
			[]string{"panic: boom\n"},
			"",
		},
		{
			"packages without tests, and lines of others",
			`go: warning: something
{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Output":"?   \tp\t[no test files]\n"}
{"Action":"skip","Package":"p"}
`,
			counts{},
			[]string{"go: warning: something\n", "p has no tests"},
			"",
		},
		{
			"an input cut short",
			`{"Action":"run","Package":"p","Test":"TestA"}
`,
			counts{},
			nil,
			"these packages did: p",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			got, err := count(strings.NewReader(tc.in), &out)
			if got != tc.want {
				t.Errorf("counted %+v, want %+v", got, tc.want)
			}
			if tc.fails == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("error %v, want one with %q", err, tc.fails)
			}
			for _, s := range tc.contains {
				if !strings.Contains(out.String(), s) {
					t.Errorf("output lacks %q:\n%s", s, out.String())
				}
			}
			if strings.Contains(out.String(), "=== RUN") || strings.Contains(out.String(), "quiet") {
				t.Errorf("output has what nobody needs:\n%s", out.String())
			}
		})
	}
}
