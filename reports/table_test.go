package reports

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"interleave/sim/event"
	"interleave/txnproto"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-update writes it anew):\n%s", name, d)
	}
}

// play makes the result of a run of 20 clients with a short and a long class, in
// which an attempt of a class is aborted so many times in a row for a reason.
func play(spec string, longAborts int, reason txnproto.AbortReason) *Result {
	c := NewCollector(Config{Classes: []string{"short", "long"}, Clients: 20, StarvationAttempts: 10})
	now := event.Time(0)
	for i := range 400 {
		class, aborts, ops := txnproto.ClassID(0), i%7/6, 4
		if i%10 == 9 {
			class, aborts, ops = 1, longAborts, 40
		}
		client := txnproto.ClientID(i % 20)
		arrival := event.Time(0)
		if i >= 20 {
			arrival = now - event.Time(19*ms)
		}
		now += event.Time(ms)
		attempt := now.Sub(arrival) / time.Duration(aborts+1)
		var parts txnproto.Parts
		parts[txnproto.PartLostAttempts] = attempt * time.Duration(aborts)
		parts[txnproto.PartNetwork] = attempt / 2
		parts[txnproto.PartReplication] = now.Sub(arrival) - attempt*time.Duration(aborts) - attempt/2
		for n := range aborts {
			begin := arrival.Add(attempt * time.Duration(n))
			c.AttemptEnded(&txnproto.AttemptRecord{
				Client: client, Class: class, Attempt: n + 1, Begin: begin, End: begin.Add(attempt), Outcome: txnproto.Aborted, Reason: reason,
				Key: txnproto.Key(n % 3), KeyKnown: true, Ops: ops / 2,
			})
			c.Work(false, ms)
		}
		c.AttemptEnded(&txnproto.AttemptRecord{Client: client, Class: class, Begin: now.Add(-attempt), End: now, Outcome: txnproto.Committed, Ops: ops})
		c.Work(true, ms)
		last := reason
		if aborts == 0 {
			last = txnproto.NoReason
		}
		c.RequestEnded(&txnproto.RequestRecord{
			Request: txnproto.RequestID(i + 1), Client: client, Class: class, Attempts: aborts + 1, Ops: ops,
			Arrival: arrival, Begin: arrival, LastTry: now.Add(-attempt), End: now, Parts: parts, Reason: last,
		})
	}
	r := c.Finish(now, []Open{{Request: 401, Client: 3, Class: 1, Attempts: longAborts, Arrival: now - event.Time(ms), Reason: reason}})
	r.SetOperations(14344)
	r.Spec = json.RawMessage(spec)
	r.Command = "simulate run --protocol x"
	r.Resources = Resources{
		Stations:     []Station{{Name: "n1 cpu", Utilisation: 0.2, Useful: 0.1}, {Name: "n2 disk", Utilisation: 0.95, Useful: 0.5, QueueMean: 1.5, QueueMax: 3}},
		Messages:     []Traffic{{Kind: "op", Count: 8000, Bytes: 1_000_000}},
		MessageCount: 8000, MessageBytes: 1_000_000, LogEntries: 1600, LogBatches: 700, Fsyncs: 2100,
	}
	r.Isolation = Isolation{Promised: "serializable", Found: "serializable", Exact: true, Transactions: 400, Anomalies: []Anomaly{}}
	return r
}

func testSpec(protocol, distribution, theta string) string {
	if theta != "" {
		theta = `"theta":` + theta + ","
	}
	return fmt.Sprintf(`{"protocol":%q,"workload":"ycsb","mix":"custom","distribution":%q,%s"keys":100000,"ops":10,`+
		`"clients":20,"think":"0s","rate":0,"mpl":0,"shards":3,"replicas":3,"machines":3,"replication":"raft","network":"lan","seed":1}`,
		protocol, distribution, theta)
}

func testResults() []*Result {
	bad := play(testSpec("to", "zipfian", "0.99"), 3, txnproto.TSOrder)
	bad.Verdict, bad.Why = VerdictIsolation, "to promises serializable: lost update"
	bad.Isolation.Found = "read-committed"
	bad.Isolation.Note = "checked in windows of 1000 transactions overlapping by 100"
	bad.Isolation.Anomalies = []Anomaly{{Name: "lost update", Count: 2, Cycle: []string{"T5 → T7: T7 overwrote key 3", "T7 → T5: T5 did not see it"}}}
	return []*Result{
		play(testSpec("2pl", "uniform", ""), 1, txnproto.Deadlock),
		bad,
		play(testSpec("occ", "zipfian", "0.99"), 14, txnproto.Validation),
	}
}

func TestTableGolden(t *testing.T) {
	var b bytes.Buffer
	if err := WriteTable(&b, testResults()); err != nil {
		t.Fatal(err)
	}
	golden(t, "table.txt", b.String())
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > Width {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.ContainsRune(line, '\x1b') {
			t.Errorf("an escape sequence: %q", line)
		}
	}
}

func TestTableShowsWhatVaries(t *testing.T) {
	a := play(testSpec("2pl", "uniform", ""), 1, txnproto.Deadlock)
	b := play(strings.Replace(testSpec("2pl", "uniform", ""), `"clients":20`, `"clients":40`, 1), 1, txnproto.Deadlock)
	var out bytes.Buffer
	if err := WriteTable(&out, []*Result{a, b}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if strings.Contains(lines[0], "clients") || !strings.Contains(out.String(), "protocol  distribution  clients") {
		t.Errorf("got\n%s", out.String())
	}
}

// TestManyReasons: where a column for each reason would be too wide, each row names its own.
func TestManyReasons(t *testing.T) {
	var rs []*Result
	for i := txnproto.Deadlock; i <= txnproto.SSIPivot; i++ {
		rs = append(rs, play(testSpec(fmt.Sprintf("protocol-%d", int(i)), "zipfian", "0.99"), 2, i))
	}
	last := rs[len(rs)-1]
	last.Aborts[txnproto.Validation.String()], last.Aborts[txnproto.TSOrder.String()] = 70, 800
	var out bytes.Buffer
	if err := WriteTable(&out, rs); err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(out.String(), "Aborted attempts, by reason\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if !ok || strings.Contains(table, "of attempts  per commit  wasted work  lock waits  deadlock") {
		t.Fatalf("got\n%s", out.String())
	}
	for i, line := range strings.Split(table, "\n") {
		if n := utf8.RuneCountInString(line); n > Width {
			t.Errorf("%d columns: %s", n, line)
		}
		if i >= 2 && i-2 < len(rs)-1 {
			reason := (txnproto.Deadlock + txnproto.AbortReason(i-2)).String()
			if n := rs[i-2].Aborts[reason]; n == 0 || !strings.HasSuffix(line, fmt.Sprintf("  %s %d", reason, n)) {
				t.Errorf("want %d for %s: %s", n, reason, line)
			}
		}
	}
	if wrapped := regexp.MustCompile(`  ts-order 800, validation 70,\n +ssi-pivot \d+$`); !wrapped.MatchString(table) {
		t.Errorf("three reasons are not in two lines:\n%s", table)
	}
}

// TestHeadingWithClasses: classes have their own numbers of operations.
func TestHeadingWithClasses(t *testing.T) {
	spec := strings.Replace(testSpec("2pl", "uniform", ""), `"ops":10`, `"ops":10,"classes":"short:9:ops=4;long:1:ops=40"`, 1)
	var out bytes.Buffer
	if err := WriteTable(&out, []*Result{play(spec, 1, txnproto.Deadlock)}); err != nil {
		t.Fatal(err)
	}
	heading, _, _ := strings.Cut(out.String(), "\n\n")
	if !strings.Contains(heading, "classes short:9:ops=4;long:1:ops=40") || strings.Contains(heading, "operations a transaction") {
		t.Errorf("got %s", heading)
	}
}

func TestLostLeadersAreShown(t *testing.T) {
	results := testResults()
	var without, with strings.Builder
	if err := WriteTable(&without, results); err != nil {
		t.Fatal(err)
	}
	results[1].Resources.Elections, results[1].Resources.LeaderlessNS = 3, int64(40*ms)
	if err := WriteTable(&with, results); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(without.String(), "elections") {
		t.Error("elections are shown where there were none")
	}
	if want := "3           40.0 ms\n"; !strings.Contains(with.String(), want) {
		t.Errorf("want %q in\n%s", want, with.String())
	}
}

func TestOverSeeds(t *testing.T) {
	var results []*Result
	throughput := map[string][]float64{"2pl": {100, 110, 120}, "occ": {90, 101, 109}}
	for seed := range 3 {
		for _, protocol := range []string{"2pl", "occ"} {
			r := play(strings.Replace(testSpec(protocol, "uniform", ""), `"seed":1`, fmt.Sprintf(`"seed":%d`, seed), 1), 1, txnproto.Deadlock)
			r.Throughput = throughput[protocol][seed]
			results = append(results, r)
		}
	}
	var b bytes.Buffer
	if err := WriteTable(&b, results); err != nil {
		t.Fatal(err)
	}
	// Mean 110, deviation 10, 4.303·10/√3; differences −10, −9, −11: 4.303/√3.
	for _, want := range []string{"3        110  24.8", "−10.0  2.48"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("want %q in\n%s", want, b.String())
		}
	}
}

func TestJSONGolden(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJSON(&b, testResults()[2:]); err != nil {
		t.Fatal(err)
	}
	golden(t, "run.json", b.String())
	var back struct{ Runs []*Result }
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := WriteJSON(&again, back.Runs); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(b.String(), again.String()); d != "" {
		t.Errorf("read back and written again:\n%s", d)
	}
}

func TestNoRunsIsAnEmptyList(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJSON(&b, nil); err != nil || b.String() != "{\n  \"runs\": []\n}\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	if err := WriteCSV(&b, testResults()); err != nil {
		t.Fatal(err)
	}
	golden(t, "runs.csv", b.String())
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 4 || len(rows[0]) != len(CSVHeader()) {
		t.Fatalf("%d rows of %d columns", len(rows), len(rows[0]))
	}
	seen := map[string]bool{}
	for _, h := range rows[0] {
		if seen[h] {
			t.Errorf("column %s is there twice", h)
		}
		seen[h] = true
	}
}

// TestMetricsAreTheJSON holds the list of metrics to the fields of Result.
func TestMetricsAreTheJSON(t *testing.T) {
	var fields, listed []string
	typ := reflect.TypeFor[Result]()
	for i := range typ.NumField() {
		if tag, ok := typ.Field(i).Tag.Lookup("json"); ok {
			name, _, _ := strings.Cut(tag, ",")
			fields = append(fields, name)
		}
	}
	for _, m := range Metrics() {
		listed = append(listed, m.Name)
		if m.Help == "" {
			t.Errorf("%s has no definition", m.Name)
		}
	}
	if d := cmp.Diff(fields, listed); d != "" {
		t.Error(d)
	}
}

func TestExplainNamesTheCause(t *testing.T) {
	for reason, want := range map[txnproto.AbortReason]string{
		txnproto.Validation: "validation then finds", txnproto.TSOrder: "timestamp is from its begin",
		txnproto.Deadlock: "victim of a deadlock", txnproto.WaitDie: "wait-die", txnproto.Wounded: "wounds it",
		txnproto.NoWait: "first lock that is taken", txnproto.LockTimeout: "lock timeout", txnproto.WriteConflict: "first updater wins",
		txnproto.SSIPivot: "dangerous structure", txnproto.Cascade: "abort with them", txnproto.LeaderChange: "leadership",
		txnproto.Constraint: "constraint", txnproto.CannotLock: "first lock", txnproto.RPCTimeout: "a message was lost",
	} {
		text := strings.Join(Explain(play(testSpec("x", "uniform", ""), 12, reason)), "\n")
		if !strings.Contains(text, want) || !strings.Contains(text, "class long starved") {
			t.Errorf("%v: %s", reason, text)
		}
		if strings.Contains(text, "class short starved") {
			t.Errorf("%v: nobody of class short starved: %s", reason, text)
		}
	}
	if lines := Explain(play(testSpec("x", "uniform", ""), 2, txnproto.Deadlock)); lines != nil {
		t.Errorf("nobody starved, yet: %v", lines)
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{formatCount(0), "0"},
		{formatCount(999), "999"},
		{formatCount(1000), "1,000"},
		{formatCount(1234567), "1,234,567"},
		{formatTime(0), "0"},
		{formatTime(999), "999 ns"},
		{formatTime(1500), "1.50 µs"},
		{formatTime(123456789), "123 ms"},
		{formatTime(12_345_000_000), "12.3 s"},
		{formatTime(7_200_000_000_000), "2.00 h"},
		{formatRatio(0), "0"},
		{formatRatio(0.0001), "<0.001"},
		{formatRatio(1), "1.000"},
		{formatShare(0.05), "5.0 %"},
		{formatShare(0.5), "50 %"},
		{formatShare(0.0001), "<0.1 %"},
		{formatShare(0), "0 %"},
		{formatRate(12345.6), "12,346"},
		{formatRate(99.96), "100"},
		{formatRate(1.234), "1.23"},
		{wrap("aa bb cc", 5, "  "), "aa bb\n  cc"},
		{groupDigits("12345"), "12,345"},
		{groupDigits("1e5"), "1e5"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
