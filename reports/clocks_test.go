package reports

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"interleave/txnproto"
)

// clocked is a run of the given settings whose groups of clients have these abort ratios.
func clocked(settings string, ratios ...float64) *Result {
	r := play(strings.Replace(testSpec("to", "uniform", ""), `"seed":1`, `"seed":1,"timestamps":"clock","clock-skew":"10ms",`+settings, 1), 14, txnproto.TSOrder)
	for i, x := range ratios {
		k := ClockRange{From: time.Duration(i-1) * ms, To: time.Duration(i-1) * ms}
		r.ClientGroups = append(r.ClientGroups, ClientGroup{int64(k.From), int64(k.To), Class{Name: k.name(), AbortRatio: x}})
	}
	r.Breakdown[txnproto.PartTimestamp], r.Breakdown[txnproto.PartNetwork] = r.Breakdown[txnproto.PartNetwork], 0
	return r
}

// TestClocksAreSaidAsFarAsTheyAreKnown: the offsets of the start hold only where clocks
// neither drift nor are moved on, and blame is put on them only where it shows.
func TestClocksAreSaidAsFarAsTheyAreKnown(t *testing.T) {
	const still = `"clock-drift":0,"clock-catch-up":false`
	for _, c := range []struct {
		run    *Result
		head   string
		blames string // "": nobody
	}{
		{clocked(still, 0.9, 0.5, 0.4, 0.1), "By client clock, a quarter of the clients a row (by how much theirs are ahead of time)", "the quarter of the clients with the slowest clocks 90 %"},
		{clocked(still, 0.9, 0.1), "By client clock, a client a row (by how much theirs are ahead of time)", "the client with the slowest clock 90 % are aborted, of that with the fastest 10 %"},
		{clocked(still, 0.9), "By client clock, a client a row (by how much theirs are ahead of time)", ""},
		{clocked(still, 0.1, 0.5, 0.4, 0.9), "By client clock, a quarter of the clients a row (by how much theirs are ahead of time)", ""},
		{clocked(`"clock-drift":50,"clock-catch-up":false`, 0.9, 0.5, 0.4, 0.1), "a row (by how much theirs were ahead of time at the start; clocks move)", ""},
		{clocked(`"clock-drift":0,"clock-catch-up":true`, 0.9, 0.5, 0.4, 0.1), "a row (by how much theirs were ahead of time at the start; clocks move)", ""},
	} {
		var out bytes.Buffer
		if err := WriteTable(&out, []*Result{c.run}); err != nil {
			t.Fatal(err)
		}
		prose := strings.Join(Explain(c.run), " ")
		if !strings.Contains(out.String(), c.head+"\n") {
			t.Errorf("no heading %q in\n%s", c.head, out.String())
		}
		if blames := strings.Contains(prose, "Whose clock is behind"); blames != (c.blames != "") || !strings.Contains(prose, c.blames) {
			t.Errorf("want %q blamed in\n%s", c.blames, prose)
		}
		if !strings.Contains(out.String(), "timestamp: asking the oracle, or waiting for a clock)\n") {
			t.Errorf("timestamp is not explained in\n%s", out.String())
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > Width {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}

// TestNotesOfAProtocolAreSaidOnce, however many of its runs have them.
func TestNotesOfAProtocolAreSaidOnce(t *testing.T) {
	a, b := play(testSpec("2pl", "uniform", ""), 1, txnproto.Deadlock), play(testSpec("2pl", "zipfian", "0.99"), 1, txnproto.Deadlock)
	a.Notes = []string{"2pl has no use for it", "a crash did not happen"}
	b.Notes = a.Notes
	var out bytes.Buffer
	if err := WriteTable(&out, []*Result{a, b}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"note: 2pl has no use for it\n":                               1,
		"note: 2pl under uniform keys: a crash did not happen\n":      1,
		"note: 2pl under zipfian 0.99 keys: a crash did not happen\n": 1,
		"note:": 3,
	} { // order: each is a test of its own
		if n := strings.Count(out.String(), text); n != want {
			t.Errorf("%q %d times, want %d, in\n%s", text, n, want, out.String())
		}
	}
}

// TestColumnsOfWhatDiffers: sweeping the skew from none on makes one column, not one
// for each setting that clocks without skew have no use for.
func TestColumnsOfWhatDiffers(t *testing.T) {
	with := func(settings string) *Result {
		return play(strings.Replace(testSpec("to", "uniform", ""), `"seed":1`, `"seed":1,"timestamps":"clock",`+settings, 1), 1, txnproto.TSOrder)
	}
	none, some := with(`"clock-skew":"0s"`), with(`"clock-skew":"5ms","clock-drift":0,"clock-catch-up":false`)
	drifting := with(`"clock-skew":"5ms","clock-drift":50,"clock-catch-up":false`)
	for _, c := range []struct {
		results []*Result
		want    []string
	}{
		{[]*Result{none, some}, []string{"clock-skew"}},
		{[]*Result{none, some, drifting}, []string{"clock-skew", "clock-drift"}},
		{[]*Result{some, drifting}, []string{"clock-drift"}},
	} {
		if got := newComparison(c.results).vary; !slices.Equal(got, c.want) {
			t.Errorf("columns %v, want %v", got, c.want)
		}
	}
}
