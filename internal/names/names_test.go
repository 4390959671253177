package names

import "testing"

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"2lp", "2pl", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"same", "same", 0}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"2pl", "to", "occ", "2pl-woundwait", "a", "uniform"}
	for name, want := range map[string]string{
		"2lp": "2pl", "OCC": "occ", "2pl-wouldwait": "2pl-woundwait", "unifrom": "uniform",
		"g": "", "": "", "xyz": "", "t": "to", "zipfian": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
