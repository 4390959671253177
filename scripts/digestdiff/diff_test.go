package main

import (
	"strings"
	"testing"
)

const three = `{"runs":[
	{"spec":{"protocol":"2pl"},"digest":"aa","verdict":"ok","throughput":1.5},
	{"spec":{"protocol":"to"},"digest":"bb","verdict":"ok"},
	{"spec":{"protocol":"occ"},"digest":"cc","verdict":"ok"}]}`

func TestDiffer(t *testing.T) {
	for _, tc := range []struct {
		name, b string
		rows    int
		want    string
	}{
		{"equal, and other fields do not matter", strings.Replace(three, "1.5", "9", 1), 0, ""},
		{"a digest", strings.Replace(three, "bb", "b0", 1), 1, "row 2: {\"protocol\":\"to\"}\n  here         bb ok\n  there        b0 ok\n"},
		{"a verdict", strings.Replace(three, `"cc","verdict":"ok"`, `"cc","verdict":"G1a"`, 1), 1, "  there        cc G1a\n"},
		{"a missing row", three[:strings.LastIndex(three, ",\n")] + "]}", 1, "  there        no such row\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, err := parse([]byte(three))
			if err != nil {
				t.Fatal(err)
			}
			b, err := parse([]byte(tc.b))
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if got := differ(a, b, "here", "there", &out); got != tc.rows {
				t.Errorf("%d rows differ, want %d", got, tc.rows)
			}
			if !strings.Contains(out.String(), tc.want) || (tc.rows == 0 && out.Len() > 0) {
				t.Errorf("printed %q, want %q in it", out.String(), tc.want)
			}
		})
	}
}

func TestParseRejects(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"no JSON", `simulate: unknown protocol`, "invalid character"},
		{"no runs", `{"runs":[]}`, "no runs"},
		{"no digest", `{"runs":[{"verdict":"ok"}]}`, "run 1 has no digest"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := parse([]byte(tc.in)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}
