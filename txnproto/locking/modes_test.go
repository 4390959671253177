package locking

import "testing"

// The compatibility table of Gray, Lorie, Putzolu and Traiger (1976), table 1, with
// the update mode: Gray and Reuter (1993), table 7.11 but symmetric.
func TestCompatibility(t *testing.T) {
	const yes, no = true, false
	modes := []Mode{IS, IX, S, SIX, U, X}
	want := [][]bool{
		{yes, yes, yes, yes, yes, no}, // IS
		{yes, yes, no, no, no, no},    // IX
		{yes, no, yes, no, yes, no},   // S
		{yes, no, no, no, no, no},     // SIX
		{yes, no, yes, no, no, no},    // U
		{no, no, no, no, no, no},      // X
	}
	for i, a := range modes {
		for j, b := range modes {
			if Compatible(a, b) != want[i][j] {
				t.Errorf("%v with %v: %v", a, b, Compatible(a, b))
			}
		}
		if !Compatible(None, a) || !Compatible(a, None) {
			t.Errorf("none with %v", a)
		}
	}
}

// A conversion leads to the weakest mode that forbids what both forbid, and that is unique.
func TestConversion(t *testing.T) {
	for a := None; a < NumModes; a++ {
		for b := None; b < NumModes; b++ {
			forbids := clash[a] | clash[b]
			best, n := None, 0
			for m := None; m < NumModes; m++ {
				if clash[m]&forbids != forbids {
					continue
				}
				weakest := true
				for o := None; o < NumModes; o++ {
					if clash[o]&forbids == forbids && clash[o] != clash[m] && clash[m]&clash[o] == clash[o] {
						weakest = false
					}
				}
				if weakest {
					best, n = m, n+1
				}
			}
			if a == b {
				best, n = a, 1
			}
			if n != 1 || Join(a, b) != best {
				t.Errorf("%v and %v: %v, want %v (%d candidates)", a, b, Join(a, b), best, n)
			}
		}
	}
}

func TestLockText(t *testing.T) {
	for l, want := range map[Lock]string{ // order: each stands for itself
		{}: "-", {Row: X}: "X", {Gap: IX}: "gap:IX", {Row: S, Gap: S}: "S+gap:S",
	} {
		if l.String() != want {
			t.Errorf("%v, want %s", l, want)
		}
	}
}
