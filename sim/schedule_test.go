package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"interleave/txnproto"
	"interleave/txnproto/schedule"
)

// TestScheduleFiles runs the schedules of testdata/schedules:
//
//	run protocol=(2pl,to) [param=(victim=oldest)] [explain] [retry] [brief]
//	r1(x) w2(x) c1 c2
//
// brief prints a line for each protocol: who waited, who was aborted, the final values.
func TestScheduleFiles(t *testing.T) {
	datadriven.Walk(t, "testdata/schedules", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "run" {
				t.Fatalf("unknown directive %s", d.Cmd)
			}
			s, err := schedule.Parse(d.Input)
			if err != nil {
				return err.Error() + "\n"
			}
			var protocols []string
			param := map[string]string{}
			opt := ScheduleOptions{}
			brief := false
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "protocol":
					protocols = a.Vals
				case "param":
					for _, v := range a.Vals {
						name, value, _ := strings.Cut(v, ":")
						param[name] = value
					}
				case "explain":
					opt.Explain = true
				case "retry":
					opt.Retry = true
				case "brief":
					brief = true
				default:
					t.Fatalf("unknown argument %s", a.Key)
				}
			}
			var b strings.Builder
			for i, p := range protocols {
				r, err := RunSchedule(p, param, s, opt)
				switch {
				case err != nil:
					fmt.Fprintln(&b, err)
				case brief:
					fmt.Fprintln(&b, p+": "+r.Brief())
				default:
					if i > 0 {
						b.WriteByte('\n')
					}
					b.WriteString(r.Report())
				}
			}
			return b.String()
		})
	})
}

// TestScheduleTwice: the same schedule under the same protocol gives the same, to the
// byte, and in every run under every protocol the promise is kept.
func TestScheduleTwice(t *testing.T) {
	texts := []string{
		"x=100; r1(x) r2(x) w1(x=x+10) w2(x=x-5) c1 c2",
		"a=1 c=3; r1[a..c] i2(b=2) c2 r1[a..c] d3(a) c3 c1",
		"x=1 y=1; b3 r1(x) r2(y) w1(y=x) w2(x=y) r3(x) s3(p) w3(z=x) rb3(p) r3(y) c3 c1 c2",
		"w1(x=1) r2(x) w2(y=2) r3(y) w3(z=1) a1 c2 c3",
		"w1(x=1) r2(x) w2(y=2) r3(y) c3 a1 c2",
		"0ms: r1(x) u2(y)\n5ms: w2(x=1) r1(y) nowait\n200ms: c1 c2 r3(y) skip locked",
	}
	for _, text := range texts {
		s, err := schedule.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range txnproto.Protocols() {
			if strings.HasPrefix(p.Name, "broken-") {
				continue // a test's: registered to be caught
			}
			for _, opt := range []ScheduleOptions{{}, {Retry: true, Explain: true}} {
				a, err := RunSchedule(p.Name, nil, s, opt)
				if err != nil {
					t.Fatal(err)
				}
				b, err := RunSchedule(p.Name, nil, s, opt)
				if err != nil {
					t.Fatal(err)
				}
				if a.Report() != b.Report() || a.TimelineSVG() != b.TimelineSVG() || a.Waits.SVG() != b.Waits.SVG() {
					t.Errorf("%s: %s: two runs differ:\n%s\n%s", p.Name, text, a.Report(), b.Report())
				}
				if !a.Kept || a.Stuck {
					t.Errorf("%s: %s: promise kept %v, stuck %v\n%s", p.Name, text, a.Kept, a.Stuck, a.Report())
				}
			}
		}
	}
}

// TestScheduleSerial: a serial schedule is executed as it stands by every protocol, and
// nobody waits or is aborted.
func TestScheduleSerial(t *testing.T) {
	const text = "init x=1 y=2; r1(x) w1(y=x+5) c1 r2(y) w2(x=y) c2 r3(x) c3"
	s, err := schedule.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range txnproto.Protocols() {
		if strings.HasPrefix(p.Name, "broken-") {
			continue
		}
		r, err := RunSchedule(p.Name, nil, s, ScheduleOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found := "serializable"
		if p.Promise == "strict-serializable" {
			found = p.Promise
		}
		if got := r.Brief(); got != "no waits; no aborts; x=6, y=6; "+found || r.ExecutedText != text {
			t.Errorf("%s: %s\n%s", p.Name, got, r.ExecutedText)
		}
	}
}

// TestScheduleCatchesBroken: a protocol without read locks loses an update, and the run
// says that its promise is broken.
func TestScheduleCatchesBroken(t *testing.T) {
	s, err := schedule.Parse("x=100; r1(x) r2(x) w1(x=x+10) c1 w2(x=x-5) c2")
	if err != nil {
		t.Fatal(err)
	}
	r, err := RunSchedule("broken-2pl-no-read-locks", nil, s, ScheduleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Kept || r.Class == nil || r.Class.Verdict(schedule.ConflictSerializable).Holds != schedule.No || len(r.Anomalies) == 0 {
		t.Errorf("kept %v\n%s", r.Kept, r.Report())
	}
}

func TestScheduleUnknownProtocol(t *testing.T) {
	s, err := schedule.Parse("r1(x)")
	if err != nil {
		t.Fatal(err)
	}
	_, err = RunSchedule("2pI", nil, s, ScheduleOptions{})
	if err == nil || !strings.Contains(err.Error(), "2pI") || !strings.Contains(err.Error(), "occ") {
		t.Errorf("error %v", err)
	}
}

// TestScheduleRandom runs random programs in random interleavings: what a run says was
// executed must agree with what was read, values computed serially in the order that
// the classification found must be the final ones, and promises must be kept.
func TestScheduleRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	protocols := []string{"2pl", "2pl-woundwait", "2pl-waitdie", "2pl-nowait", "to", "mvto", "occ", "silo", "ssi", "si", "rc"}
	n := 0
	for range 150 {
		s := randomSchedule(r)
		for _, p := range protocols {
			run, err := RunSchedule(p, nil, s, ScheduleOptions{Retry: true})
			if err != nil {
				t.Fatal(err)
			}
			if !run.Kept || run.Stuck {
				t.Fatalf("%s: %v\n%s", p, s, run.Report())
			}
			if run.Class == nil || run.Found != "serializable" {
				continue
			}
			if len(run.Class.ConflictOrders.List) == 0 {
				t.Fatalf("%s: found serializable, executed is not\n%s", p, run.Report())
			}
			n++
			serial := serially(s, run)
			for _, v := range run.Final {
				if v.State != "known" || v.Value != serial[v.Item] {
					t.Fatalf("%s: %s is %d %s, serially %d\n%s", p, v.Item, v.Value, v.State, serial[v.Item], run.Report())
				}
			}
		}
	}
	if n < 1000 {
		t.Errorf("only %d runs were compared with a serial one", n)
	}
}

// randomSchedule has three transactions that read two of three items and write one
// from what they read.
func randomSchedule(r *rand.Rand) *schedule.Schedule {
	items := []schedule.Item{"x", "y", "z"}
	s := &schedule.Schedule{}
	for i, it := range items {
		s.Initial = append(s.Initial, schedule.Initial{Item: it, Value: int64(1 + i)})
	}
	var left [3][]schedule.Op
	for i := range left {
		t := schedule.Txn(i + 1)
		p := r.Perm(3)
		a, b, to := items[p[0]], items[p[1]], items[p[r.IntN(3)]]
		left[i] = []schedule.Op{
			{Kind: schedule.Read, Txn: t, Item: a},
			{Kind: schedule.Read, Txn: t, Item: b},
			{Kind: schedule.Write, Txn: t, Item: to, Value: schedule.Expr{{Item: a}, {Item: b}, {Number: int64(10 * (i + 1))}}},
			{Kind: schedule.Commit, Txn: t},
		}
	}
	for len(left[0])+len(left[1])+len(left[2]) > 0 {
		if i := r.IntN(3); len(left[i]) > 0 {
			s.Ops = append(s.Ops, left[i][0])
			left[i] = left[i][1:]
		}
	}
	return s
}

// serially computes the final values of the committed transactions in an equivalent order.
func serially(s *schedule.Schedule, run *ScheduleRun) map[schedule.Item]int64 {
	db := map[schedule.Item]int64{}
	for _, in := range s.Initial {
		db[in.Item] = in.Value
	}
	for _, t := range run.Class.ConflictOrders.List[0] {
		for _, op := range s.Of(t) {
			if op.Kind == schedule.Write {
				db[op.Item] = db[op.Value[0].Item] + db[op.Value[1].Item] + op.Value[2].Number
			}
		}
	}
	return db
}

// TestScheduleForms runs random schedules of every form, complete nonsense included,
// under every protocol: nothing panics, nobody waits for good, promises are kept, and
// with one version of each item there is always a schedule that explains what was read.
func TestScheduleForms(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	explained := 0
	for range 60 {
		s := formSchedule(t, r)
		for _, p := range txnproto.Protocols() {
			if strings.HasPrefix(p.Name, "broken-") {
				continue
			}
			run, err := RunSchedule(p.Name, nil, s, ScheduleOptions{Retry: r.IntN(2) == 0, Explain: r.IntN(2) == 0})
			if err != nil {
				t.Fatal(err)
			}
			if run.Stuck || !run.Kept {
				t.Fatalf("%s: %v\n%s", p.Name, s, run.Report())
			}
			if p.Versioning == txnproto.VersionLatest {
				if run.Class == nil {
					t.Fatalf("%s: nothing explains the run of %v\n%s", p.Name, s, run.Report())
				}
				if run.Found == "serializable" && run.Class.Verdict(schedule.ViewSerializable).Holds == schedule.No {
					t.Fatalf("%s: found serializable, executed is not\n%s", p.Name, run.Report())
				}
				explained++
			}
		}
	}
	if explained == 0 {
		t.Error("no run was explained")
	}
}

// formSchedule is a random schedule of four transactions and four items.
func formSchedule(t *testing.T, r *rand.Rand) *schedule.Schedule {
	t.Helper()
	items := []string{"a", "b", "c", "d"}
	text := "a=1 b=2;"
	saves, ended := map[int]int{}, map[int]bool{}
	for range 4 + r.IntN(20) {
		n := 1 + r.IntN(4)
		if ended[n] {
			continue
		}
		it := items[r.IntN(4)]
		switch r.IntN(14) {
		case 0, 1, 2:
			text += fmt.Sprintf(" r%d(%s)", n, it)
		case 3, 4, 5:
			text += fmt.Sprintf(" w%d(%s=%s+1)", n, it, items[r.IntN(4)])
		case 6:
			text += fmt.Sprintf(" u%d(%s) %s", n, it, []string{"", "nowait", "skip locked", "wait 5ms"}[r.IntN(4)])
		case 7, 8:
			text += fmt.Sprintf(" r%d[a..%s]", n, it)
		case 9:
			text += fmt.Sprintf(" i%d(%s=7)", n, it)
		case 10:
			text += fmt.Sprintf(" d%d(%s)", n, it)
		case 11:
			text += fmt.Sprintf(" s%d(p)", n)
			saves[n]++
		case 12:
			if saves[n] > 0 {
				text += fmt.Sprintf(" rb%d(p)", n)
			}
		case 13:
			text += fmt.Sprintf(" %s%d", []string{"c", "a"}[r.IntN(2)], n)
			ended[n] = true
		}
	}
	s, err := schedule.Parse(text)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return s
}
