package sim_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"interleave/reports"
	"interleave/sim"
	"interleave/txnproto"
	"interleave/txnproto/schedule"
)

// drawing returns the protocols that draw timestamps, those that cannot have them from
// clocks only when inOrder.
func drawing(t *testing.T, inOrder bool) []string {
	t.Helper()
	var names []string
	for _, name := range protocols {
		p, ok := txnproto.ProtocolNamed(name)
		if !ok {
			t.Fatalf("no protocol %s", name)
		}
		if p.Draws != 0 && (inOrder || p.OnClocks()) {
			names = append(names, name)
		}
	}
	return names
}

// clocked are settings under which clocks differ by more than a transaction takes.
var clocked = [][]string{
	{"clock-skew=5ms"},
	{"clock-skew=20ms", "clock-catch-up=true"},
	{"clock-skew=2ms", "clock-drift=50000"},
}

// TestSkewedClocksKeepThePromise: loose clocks cost aborts, never the isolation.
func TestSkewedClocksKeepThePromise(t *testing.T) {
	for _, protocol := range drawing(t, false) {
		for _, replication := range []string{"none", "quorum", "raft"} {
			clocks := clocked
			if replication == "raft" {
				clocks = clocked[:1] // one kind is enough where runs take longer
			}
			for i, c := range clocks {
				t.Run(fmt.Sprintf("%s/%s/%d", protocol, replication, i), func(t *testing.T) {
					mixedTwice(t, append([]string{"protocol=" + protocol, "replication=" + replication, "timestamps=clock"}, c...))
				})
			}
		}
	}
}

// TestOracleKeepsThePromise, with one that is slow, so that commits are decided long
// before they have their timestamps, and overtake each other.
func TestOracleKeepsThePromise(t *testing.T) {
	for _, protocol := range drawing(t, true) {
		for _, replication := range []string{"none", "quorum", "raft"} {
			t.Run(protocol+"/"+replication, func(t *testing.T) {
				mixedTwice(t, []string{"protocol=" + protocol, "replication=" + replication, "timestamps=oracle", "oracle-service=exp:300us"})
			})
		}
	}
}

// mixedTwice runs two workloads, the first of them twice.
func mixedTwice(t *testing.T, settings []string) {
	t.Helper()
	settings = append(settings, "clients=8", "requests=150", "warmup=10ms", "distribution=uniform")
	spec := specOf(t, append(settings, "workload=ycsb", "keys=60", "ops=4", "scan=0.2", "insert=0.1", "update=0.4")...)[0]
	first := runOne(t, spec)
	mustBeOK(t, first)
	if again := runOne(t, spec); again.Digest != first.Digest {
		t.Errorf("digests differ: %s and %s\nrepeat it: %s", first.Digest, again.Digest, first.Command)
	}
	mustBeOK(t, runOne(t, specOf(t, append(settings, "workload=bank", "keys=40", "workload-param=audit=0.1")...)[0]))
}

// TestTimestampsSurviveCrashes loses leaders under clocks and under an oracle.
func TestTimestampsSurviveCrashes(t *testing.T) {
	for _, source := range []string{"clock", "oracle"} {
		for _, protocol := range drawing(t, source == "oracle") {
			t.Run(source+"/"+protocol, func(t *testing.T) {
				spec := specOf(t, "protocol="+protocol, "workload=bank", "distribution=uniform", "keys=60", "workload-param=audit=0.05",
					"workload-param=audit-keys=5", "clients=8", "requests=600", "warmup=10ms", "crash=n1@50ms+1s,n2@3s+1s", "timestamps="+source)[0]
				if source == "clock" {
					spec.ClockSkew = 5 * time.Millisecond
				} else if err := spec.Set("oracle-service", "exp:1ms"); err != nil { // commits are lost that wait for it
					t.Fatal(err)
				}
				res := runOne(t, spec)
				mustBeOK(t, res)
				if res.Resources.Elections == 0 {
					t.Error("a node crashed, and nobody was elected")
				}
			})
		}
	}
}

// TestExactClocksAreNearlyACounter: without skew, clocks give the order in which the
// attempts begin, as the counter does.
func TestExactClocksAreNearlyACounter(t *testing.T) {
	for _, protocol := range []string{"to", "2pl-waitdie"} {
		var rates []reports.Interval
		for _, source := range []string{"counter", "clock"} {
			res := runOne(t, specOf(t, "protocol="+protocol, "replication=quorum", "distribution=uniform", "keys=1000", "timestamps="+source, "requests=4000")[0])
			mustBeOK(t, res)
			rates = append(rates, res.Confidence.AbortRatio)
		}
		if d := math.Abs(rates[0].Mean - rates[1].Mean); d > rates[0].Half+rates[1].Half {
			t.Errorf("%s: abort ratio %.4f ± %.4f with a counter, %.4f ± %.4f with exact clocks", protocol, rates[0].Mean, rates[0].Half, rates[1].Mean, rates[1].Half)
		}
	}
}

// TestSlowClocksStarve: with clocks that differ by more than a transaction takes, those
// behind come too late; under wait-die and wound-wait they count as old and win. A
// client that moves its clock on past what it was too late for fares as the others.
func TestSlowClocksStarve(t *testing.T) {
	ratios := func(protocol string, settings ...string) (slow, fast, all float64) {
		base := []string{"protocol=" + protocol, "replication=quorum", "distribution=uniform", "keys=500", "requests=2000", "timestamps=clock"}
		res := runOne(t, specOf(t, append(base, settings...)...)[0])
		mustBeOK(t, res)
		if len(res.ClientGroups) == 0 {
			return 0, 0, res.AbortRatio
		}
		return res.ClientGroups[0].AbortRatio, res.ClientGroups[3].AbortRatio, res.AbortRatio
	}
	for _, protocol := range []string{"to", "mvto"} {
		_, _, exact := ratios(protocol)
		slow, fast, all := ratios(protocol, "clock-skew=10ms")
		if slow < 2*fast || all < 1.5*exact {
			t.Errorf("%s: abort ratio %.3f of slow clocks, %.3f of fast ones; %.3f in all, without skew %.3f", protocol, slow, fast, all, exact)
		}
		slow, fast, caught := ratios(protocol, "clock-skew=10ms", "clock-catch-up=true")
		if slow > 1.5*fast+0.05 || caught > (all+exact)/2 {
			t.Errorf("%s, catching up: abort ratio %.3f of slow clocks, %.3f of fast ones; %.3f in all, before %.3f", protocol, slow, fast, caught, all)
		}
	}
	for _, protocol := range []string{"2pl-waitdie", "2pl-woundwait"} {
		if slow, fast, _ := ratios(protocol, "clock-skew=20ms"); slow > 0.9*fast {
			t.Errorf("%s: abort ratio %.3f of slow clocks, %.3f of fast ones", protocol, slow, fast)
		}
	}
}

// TestSnapshotsWaitForClocks: under si with exact clocks no operation comes before its
// machine's clock is as far; with skew those of fast clients do, and wait.
func TestSnapshotsWaitForClocks(t *testing.T) {
	run := func(skew string) *reports.Result {
		res := runOne(t, specOf(t, "protocol=si", "replication=quorum", "distribution=uniform", "keys=10000", "requests=2000", "timestamps=clock", "clock-skew="+skew)[0])
		mustBeOK(t, res)
		return res
	}
	if waited := run("0s").Breakdown[txnproto.PartTimestamp]; waited != 0 {
		t.Errorf("with exact clocks operations waited %v", waited)
	}
	res := run("10ms")
	if share := res.Breakdown.Share(txnproto.PartTimestamp); share < 0.1 {
		t.Errorf("with clocks 10 ms off operations waited %.3f of the time", share)
	}
	slow, fast := res.ClientGroups[0].Latency.P50NS, res.ClientGroups[3].Latency.P50NS
	if fast < slow+int64(3*time.Millisecond) {
		t.Errorf("median latency %v of slow clocks, %v of fast ones", time.Duration(slow), time.Duration(fast))
	}
}

// TestOracleAloneByHand works out what a client alone pays for its timestamps: a way
// there, a way back and the oracle's service for each.
func TestOracleAloneByHand(t *testing.T) {
	const service = 70 * time.Microsecond
	asks := map[string]func(r *reports.Result) uint64{
		"to":          func(r *reports.Result) uint64 { return r.Committed },
		"mvto":        func(r *reports.Result) uint64 { return r.Committed },
		"2pl-waitdie": func(r *reports.Result) uint64 { return r.Committed },
		"2pl":         func(*reports.Result) uint64 { return 0 },
		"occ":         func(*reports.Result) uint64 { return 0 },
		"si":          func(r *reports.Result) uint64 { return r.Committed + wrote(r) },
		"ssi":         func(r *reports.Result) uint64 { return r.Committed + wrote(r) },
		"rc":          func(r *reports.Result) uint64 { return 3 * r.Committed }, // of readers
		"mv2pl":       func(r *reports.Result) uint64 { return r.Committed - wrote(r) + wrote(r) },
	}
	for protocol, count := range asks { // order: each is a test of its own
		t.Run(protocol, func(t *testing.T) {
			share := []string{"read=0.7", "update=0.3"}
			if protocol == "rc" {
				share = []string{"read=1", "update=0"}
			}
			spec := specOf(t, "protocol="+protocol, "replication=none", "distribution=uniform", "clients=1", "shards=1", "machines=1", "replicas=1",
				"ops=3", share[0], share[1], "requests=200", "warmup=0s", "timestamps=oracle", "oracle-service=constant:70us")[0]
			res := runOne(t, spec)
			mustBeOK(t, res)
			n := count(res)
			asked, answered := traffic(res, "timestamp"), traffic(res, "timestamp-reply")
			if asked != n || answered != n {
				t.Fatalf("%d requests to the oracle and %d answers, by hand %d", asked, answered, n)
			}
			spent := time.Duration(res.Breakdown[txnproto.PartTimestamp])
			// The ways are lognormal around 45 µs each with a mean 2 % above; their sum is
			// within five deviations of its mean.
			ways := float64(spent - time.Duration(n)*service)
			mean, dev := 45_900.0*2*float64(n), 9_300*math.Sqrt(2*float64(n))
			if math.Abs(ways-mean) > 5*dev {
				t.Errorf("ways to and from the oracle took %v, want %v ± %v", time.Duration(ways), time.Duration(mean), time.Duration(5*dev))
			}
			for _, s := range res.Resources.Stations {
				if s.Name != reports.OracleStation {
					continue
				}
				if want := float64(n) * float64(service) / float64(res.WindowNS); math.Abs(s.Utilisation-want) > 1e-9 {
					t.Errorf("the oracle is busy %.6f, by hand %.6f", s.Utilisation, want)
				}
				return
			}
			if n > 0 {
				t.Error("the oracle is no station of the report")
			}
		})
	}
}

func traffic(r *reports.Result, kind string) uint64 {
	for _, m := range r.Resources.Messages {
		if m.Kind == kind {
			return m.Count
		}
	}
	return 0
}

// wrote is how many of a lone client's requests wrote: each did in one log entry.
func wrote(r *reports.Result) uint64 { return r.Resources.LogEntries }

// TestOracleIsABottleneck: however many clients there are, no more attempts begin than
// the oracle serves.
func TestOracleIsABottleneck(t *testing.T) {
	res := runOne(t, specOf(t, "protocol=to", "replication=none", "distribution=uniform", "keys=1000000", "clients=64", "ops=2", "requests=2000",
		"timestamps=oracle", "oracle-service=constant:1ms")[0])
	mustBeOK(t, res)
	if res.Throughput > 1001 || res.Throughput < 950 {
		t.Errorf("%.0f commits/s behind an oracle that serves 1,000 requests/s", res.Throughput)
	}
	if share := res.Breakdown.Share(txnproto.PartTimestamp); share < 0.8 {
		t.Errorf("%.2f of the time is spent at the oracle, want nearly all", share)
	}
}

// TestSlowServiceIsNoStall: whoever waits for a clock, for the oracle, or for a disk or a
// processor that is slow, has not been forgotten.
func TestSlowServiceIsNoStall(t *testing.T) {
	for _, settings := range [][]string{
		{"protocol=si", "timestamps=clock", "clock-skew=3m"},
		{"protocol=to", "timestamps=oracle", "oracle-service=3m"},
		{"protocol=si", "timestamps=oracle", "oracle-service=3m", "clients=4"},
		{"protocol=2pl", "fsync=3m"},
		{"protocol=2pl", "cpu-op=3m"},
		{"protocol=2pl", "workload-param=op-think=4s", "ops=60", "clients=1"}, // slow altogether, and no step of it
		{"protocol=rc", "timestamps=oracle", "oracle-service=4s", "ops=60", "read=1", "update=0", "clients=1"},
	} {
		all := append([]string{"replication=quorum", "distribution=uniform", "requests=5", "max-virtual-time=100h"}, settings...)
		mustBeOK(t, runOne(t, specOf(t, all...)[0]))
	}
}

// TestWaitForAClockIsAWait: a run that ends while all wait for clocks or for the oracle says so.
func TestWaitForAClockIsAWait(t *testing.T) {
	for settings, want := range map[string]string{
		"protocol=si timestamps=clock clock-skew=40m":      "^1m of virtual time passed before the end; requests open: 24, operations that wait: [1-9][0-9]*$",
		"protocol=to timestamps=oracle oracle-service=10h": "; requests open: 24, operations that wait: 0, requests that wait for a timestamp: 24$",
	} { // order: each is a test of its own
		res := runOne(t, specOf(t, append(strings.Fields(settings), "replication=quorum", "distribution=uniform", "requests=5000000", "max-virtual-time=1m")...)[0])
		if ok, _ := regexp.MatchString(want, res.Why); !ok || res.Verdict != reports.VerdictVirtualTimeBound {
			t.Errorf("%s: %s, %s; want %s", settings, res.Verdict, res.Why, want)
		}
	}
}

// TestTimestampSettingsAreChecked names field, value and what is allowed.
func TestTimestampSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		settings []string
		want     string
	}{
		{[]string{"protocol=ssi", "timestamps=clock"}, "timestamps: clock cannot be used with protocol ssi, whose snapshots need timestamps in order of real time: want counter or oracle"},
		{[]string{"protocol=to", "clock-skew=1ms"}, "clock-skew: 1ms has no use with timestamps counter: want timestamps clock"},
		{[]string{"protocol=to", "timestamps=clock", "oracle-service=1ms"}, "oracle-service: 1ms has no use with timestamps clock: want timestamps oracle"},
		{[]string{"protocol=to", "timestamps=clock", "clock-drift=50"}, "clock-drift: 50 has no use with clock-skew 0s, under which all clocks are right: want a clock-skew above 0s"},
		{[]string{"protocol=to", "timestamps=clock", "clock-catch-up=true,false"}, "clock-catch-up: true,false has no use with clock-skew 0s"},
		{[]string{"protocol=to", "timestamps=sundial"}, `timestamps: "sundial" is unknown`},
		{[]string{"protocol=to", "timestamps=clock", "clock-skew=-1ms"}, `clock-skew: "-1ms" is not allowed`},
		{[]string{"protocol=to", "timestamps=clock", "clients=10000000"}, "max-virtual-time: 1h is too long for the clock timestamps of 10000000 clients within 0s: want at most 8m9"},
	} {
		if err := specError(c.settings...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.settings, err, c.want)
		}
	}
	runs := specOf(t, "protocol=to", "distribution=uniform", "timestamps=counter,clock,oracle", "clock-skew=1ms,10ms")
	var got []string
	for i := range runs {
		got = append(got, fmt.Sprint(runs[i].Timestamps, " ", runs[i].ClockSkew))
	}
	if want := "counter 0s, clock 1ms, clock 10ms, oracle 0s"; strings.Join(got, ", ") != want {
		t.Errorf("runs %s, want %s", strings.Join(got, ", "), want)
	}
	got = nil
	for _, r := range specOf(t, "protocol=to", "distribution=uniform", "timestamps=clock", "clock-skew=0s,1ms", "clock-drift=0,50", "clock-catch-up=true") {
		got = append(got, fmt.Sprint(r.ClockSkew, " ", r.ClockDrift, " ", r.ClockCatchUp))
	}
	if want := "0s 0 false, 1ms 0 true, 1ms 50 true"; strings.Join(got, ", ") != want {
		t.Errorf("runs %s, want %s", strings.Join(got, ", "), want)
	}
}

// TestSettingsWithoutEffectAreSaid: a protocol that cannot do anything with a setting says so.
func TestSettingsWithoutEffectAreSaid(t *testing.T) {
	for settings, want := range map[string]string{
		"protocol=2pl timestamps=clock clock-skew=1ms":    "2pl draws no timestamps: where they come from changes nothing",
		"protocol=occ timestamps=oracle":                  "occ draws no timestamps: where they come from changes nothing",
		"protocol=2pl":                                    "",
		"protocol=to timestamps=clock":                    "",
		"protocol=calvin workload-param=wait=nowait":      "calvin knows no wait clauses: wait=nowait has no effect, as wait=block",
		"protocol=calvin workload=queue":                  "calvin knows no wait clauses: wait=skip-locked has no effect, as wait=block",
		"protocol=2pl-ordered workload-param=wait=nowait": "2pl-ordered knows no wait clauses: wait=nowait has no effect, as wait=block",
		"protocol=calvin":                                 "",
		"protocol=2pl workload-param=wait=nowait":         "",
	} { // order: each is a test of its own
		all := append(strings.Fields(settings), "replication=none", "requests=50", "keys=60", "clients=2")
		if !strings.Contains(settings, "workload=") {
			all = append(all, "distribution=uniform")
		}
		res := runOne(t, specOf(t, all...)[0])
		mustBeOK(t, res)
		if got := strings.Join(res.Notes, "; "); got != want {
			t.Errorf("%s: notes %q, want %q", settings, got, want)
		}
	}
}

// TestWaitClausesAreKnownByWhoHeedsThem: under a protocol registered with wait clauses, and
// no other, somebody who may not wait for a row that is written ends at once.
func TestWaitClausesAreKnownByWhoHeedsThem(t *testing.T) {
	for _, p := range txnproto.Protocols() {
		if strings.HasPrefix(p.Name, "broken-") { // may heed them by halves
			continue
		}
		s, err := schedule.Parse("x=1 y=1; u1(x) w1(x=2) u2(x) nowait r1(y) c1 c2")
		if err != nil {
			t.Fatal(err)
		}
		out, err := sim.RunSchedule(p.Name, nil, s, sim.ScheduleOptions{})
		if err != nil {
			t.Fatal(err)
		}
		heeded := slices.ContainsFunc(out.Steps, func(s sim.RunStep) bool { return s.Reason == txnproto.CannotLock.String() })
		said := slices.ContainsFunc(out.Notes, func(n string) bool { return strings.Contains(n, "have no effect") })
		if heeded != p.WaitClauses || said == p.WaitClauses {
			t.Errorf("%s: wait clauses: registered %v, heeded %v, said to have no effect %v", p.Name, p.WaitClauses, heeded, said)
		}
	}
}

func specError(settings ...string) error {
	s := sim.NewSpec()
	for _, kv := range settings {
		name, value, _ := strings.Cut(kv, "=")
		if err := s.Set(name, value); err != nil {
			return err
		}
	}
	_, err := s.Expand()
	return err
}

// TestFewClientsHaveGroups: three clients are three rows.
func TestFewClientsHaveGroups(t *testing.T) {
	for clients, want := range map[string]int{"1": 1, "3": 3, "4": 4, "9": 4} { // order: each is a test of its own
		res := runOne(t, specOf(t, "protocol=to", "replication=none", "distribution=uniform", "keys=1000", "requests=50", "timestamps=clock", "clock-skew=1ms", "clients="+clients)[0])
		mustBeOK(t, res)
		var done uint64
		for i := range res.ClientGroups {
			done += res.ClientGroups[i].Committed
		}
		if len(res.ClientGroups) != want || done != res.Committed {
			t.Errorf("%s clients: %d groups with %d of %d commits, want %d groups", clients, len(res.ClientGroups), done, res.Committed, want)
		}
	}
}
