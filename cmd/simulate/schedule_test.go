package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"interleave/sim"
	"interleave/txnproto"
)

// TestScheduleTable: without --protocol there is a row for every protocol.
func TestScheduleTable(t *testing.T) {
	out, errs, code := command(sim.Run, "", "schedule", "x=1; r1(x) r2(x) w1(x=x+1) w2(x=x+1) c1 c2")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	_, table, ok := strings.Cut(out, "\nUnder each protocol")
	if !ok {
		t.Fatalf("no table:\n%s", out)
	}
	for _, p := range txnproto.Protocols() {
		if !strings.Contains(table, "\n  "+p.Name+" ") {
			t.Errorf("no row for %s:\n%s", p.Name, table)
		}
	}
	for line := range strings.SplitSeq(out, "\n") {
		if n := len([]rune(line)); n > 120 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestScheduleJSON(t *testing.T) {
	args := []string{"schedule", "x=1; r1(x) r2(x) w1(x=x+1) w2(x=x+1) c1 c2", "--protocol", "2pl,rc", "--explain", "--format", "json"}
	out, errs, code := command(sim.Run, "", args...)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var doc struct {
		Classification struct {
			Schedule string
			Verdicts []struct{ Class, Holds string }
		}
		Runs []struct {
			Protocol, Found, Executed string
			Kept                      bool
			Transactions              []struct{ Outcome, Reason string }
			Steps                     []struct {
				Number, Transaction int
				Op, Event           string
				State               []string
			}
			WaitsFor struct {
				Edges []struct{ From, To int }
				Cycle []int
			} `json:"waits_for"`
			Final []struct {
				Item  string
				Value int
			} `json:"final_values"`
		}
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Runs) != 2 || len(doc.Classification.Verdicts) == 0 {
		t.Fatalf("%d runs", len(doc.Runs))
	}
	lock, rc := doc.Runs[0], doc.Runs[1]
	if lock.Final[0].Value != 2 || lock.Transactions[1].Reason != "deadlock" || len(lock.WaitsFor.Cycle) != 3 || len(lock.Steps[1].State) == 0 {
		t.Errorf("2pl: %+v", lock)
	}
	if rc.Final[0].Value != 2 || rc.Transactions[1].Outcome != "committed" || rc.Found != "read-committed" || !rc.Kept {
		t.Errorf("rc: %+v", rc)
	}
	if again, _, _ := command(sim.Run, "", args...); again != out {
		t.Error("two runs differ")
	}
}

func TestSchedulePictures(t *testing.T) {
	t.Chdir(t.TempDir())
	_, errs, code := command(sim.Run, "", "schedule", "w1(x) w2(y) w1(y) w2(x)", "--protocol", "2pl,occ", "--svg", "out")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for name, part := range map[string]string{
		"precedence.svg": "Precedence graph", "precedence.dot": "digraph", "timeline.svg": "w(x)",
		"2pl-timeline.svg": "waits for T2 over y", "2pl-waits.svg": "Waits-for graph", "2pl-waits.dot": "T1 -> T2",
		"2pl-precedence.svg": "<svg", "occ-timeline.svg": "Run under occ", "occ-precedence.dot": "digraph",
	} {
		text, err := os.ReadFile(filepath.Join("out", name))
		if err != nil || !strings.Contains(string(text), part) {
			t.Errorf("%s: %v, want %q in it", name, err, part)
		}
	}
	if _, err := os.Stat("out/occ-waits.svg"); err == nil {
		t.Error("a waits-for graph where nobody waits")
	}
}

// TestSchedulePicturesFirst: that a picture cannot be written is said before anything
// is run, and a file of an earlier run stays.
func TestSchedulePicturesFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("file", []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, flag := range [][]string{
		{"--waits", "none/w.svg"}, {"--timeline", "none/t.svg"}, {"--precedence", "file/p.dot"}, {"--svg", "file"}, {"--svg", "file/pictures"},
	} {
		args := append([]string{"schedule", "w1(x) w2(x)", "--protocol", "2pl"}, flag...)
		out, errs, code := command(sim.Run, "", args...)
		if code != exitBadInput || out != "" || !strings.HasPrefix(errs, "simulate: "+flag[0][2:]+": ") {
			t.Errorf("%v: exit %d, %q:\n%s", flag, code, errs, out)
		}
	}
	if err := os.WriteFile("t.svg", []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, _, code := command(sim.Run, "", "schedule", "w1(x)", "--protocol", "2pI", "--timeline", "t.svg", "--waits", "w.svg")
	text, err := os.ReadFile("t.svg")
	if code != exitBadInput || string(text) != "old" {
		t.Errorf("exit %d, and the picture is %q (%v)", code, text, err)
	}
	if _, err := os.Stat("w.svg"); err == nil {
		t.Error("an empty picture is left")
	}
}

// TestScheduleRetryTable: without --protocol, --retry is for the table of all protocols.
func TestScheduleRetryTable(t *testing.T) {
	const deadlock = "x=100; r1(x) r2(x) w1(x=x+10) w2(x=x-5) c1 c2"
	once, _, _ := command(sim.Run, "", "schedule", deadlock)
	again, _, code := command(sim.Run, "", "schedule", deadlock, "--retry")
	if code != 0 || !strings.Contains(once, "x=110") || strings.Contains(again, "x=110") {
		t.Errorf("exit %d:\n%s\n%s", code, once, again)
	}
}

func TestScheduleUnknownProtocol(t *testing.T) {
	_, errs, code := command(sim.Run, "", "schedule", "r1(x)", "--protocol", "2pI")
	if code != exitBadInput || !strings.HasPrefix(errs, `simulate: protocol: "2pI" is unknown (did you mean "2pl"?)`) {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestScheduleExamples runs every example of the help.
func TestScheduleExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("exercise.txt", []byte("r1(x) w2(x)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	help, _, _ := command(sim.Run, "", "schedule", "--help")
	n := 0
	for line := range strings.SplitSeq(help, "\n") {
		line, ok := strings.CutPrefix(line, "  simulate ")
		if !ok {
			continue
		}
		n++
		line, _, _ = strings.Cut(line, "     ")
		if _, errs, code := command(sim.Run, "", words(t, line)...); code != 0 {
			t.Errorf("simulate %s: exit %d: %s", line, code, errs)
		}
	}
	if n != 5 || !strings.HasPrefix(help, "Classify") || strings.Index(help, "Examples:") > strings.Index(help, "Flags:") {
		t.Errorf("%d examples in\n%s", n, help)
	}
}
