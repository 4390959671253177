package history

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestLevelNames(t *testing.T) {
	for _, l := range append(Levels(), NoLevel) {
		got, err := ParseLevel(l.String())
		if err != nil || got != l {
			t.Errorf("%v: parsed %v, %v", l, got, err)
		}
	}
	_, err := ParseLevel("serialisable")
	if err == nil || !strings.Contains(err.Error(), `"serialisable"`) || !strings.Contains(err.Error(), "repeatable-read") {
		t.Errorf("error %v does not name the value and what is allowed", err)
	}
}

func TestNamesInJSON(t *testing.T) {
	in := struct {
		L Level
		K []Kind
		C Count
		E EdgeKind
	}{RepeatableRead, []Kind{G2Item, LostUpdate, Inconsistent}, Count{G1a, 3, true}, PredicateRW}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"L":"repeatable-read","K":["G2-item","lost-update","inconsistent"],` +
		`"C":{"anomaly":"G1a","count":3,"at_least":true},"E":"predicate rw"}`
	if string(text) != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
	var back struct {
		L Level
		K []Kind
	}
	if err := json.Unmarshal(text, &back); err != nil || back.L != in.L || len(back.K) != 3 || back.K[1] != LostUpdate {
		t.Errorf("read back %+v, %v", back, err)
	}
}

func TestKindsAreNamed(t *testing.T) {
	seen := map[string]bool{}
	for k := range numKinds {
		if seen[k.String()] || k.Title() == "" {
			t.Errorf("kind %d is called %q, %q", k, k.String(), k.Title())
		}
		seen[k.String()] = true
	}
}
