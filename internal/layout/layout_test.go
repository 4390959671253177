package layout

import (
	"slices"
	"testing"
)

func TestHang(t *testing.T) {
	for _, c := range []struct {
		lead, s string
		want    []string
	}{
		{"ab  ", "one two three", []string{"ab  one two", "    three"}},
		{"→ ", "é é é é é é", []string{"→ é é é é é", "  é"}},
		{"x ", "", []string{"x "}},
		{"x ", "a incomprehensible b", []string{"x a", "  incomprehensible", "  b"}},
	} {
		if got := Hang(c.lead, c.s, 11); !slices.Equal(got, c.want) {
			t.Errorf("Hang(%q, %q) = %q, want %q", c.lead, c.s, got, c.want)
		}
	}
}

func TestPad(t *testing.T) {
	for s, want := range map[string]string{"": "   ", "é": "é  ", "abc": "abc", "abcd": "abcd"} {
		if got := Pad(s, 3); got != want {
			t.Errorf("Pad(%q, 3) = %q, want %q", s, got, want)
		}
	}
}
