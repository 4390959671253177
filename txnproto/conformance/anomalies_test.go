package conformance

import (
	"errors"
	"slices"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/txnproto/controltest"
	"interleave/txnproto/history"
)

// TestEveryProtocolIsInTheTable: whoever adds a protocol says what it prevents.
func TestEveryProtocolIsInTheTable(t *testing.T) {
	var names []string
	for _, a := range Anomalies() {
		names = append(names, a.Name)
	}
	for _, p := range txnproto.Protocols() {
		possible, ok := Possible[p.Name]
		if !ok && !isBroken(p.Name) {
			t.Errorf("%s is not in the table", p.Name)
		}
		for _, a := range possible {
			if !slices.Contains(names, a) {
				t.Errorf("%s: there is no anomaly %q", p.Name, a)
			}
		}
	}
}

// TestEveryInterleavingAgreesWithTheTable runs the schedules of every anomaly in all
// interleavings: the possible shows in some, the prevented in none.
func TestEveryInterleavingAgreesWithTheTable(t *testing.T) {
	for _, p := range txnproto.Protocols() {
		if isBroken(p.Name) {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			for _, a := range Anomalies() {
				for _, shards := range []int{1, 2} {
					example, err := shows(p, &a, shards)
					if err != nil {
						t.Fatalf("%s on %d shards: %v", a.Name, shards, err)
					}
					possible := slices.Contains(Possible[p.Name], a.Name)
					switch {
					case possible && example == nil:
						t.Errorf("%s on %d shards: possible by the table, shown by no interleaving", a.Name, shards)
					case !possible && example != nil:
						t.Errorf("%s on %d shards: prevented by the table, shown by the interleaving %v", a.Name, shards, example)
					}
				}
			}
		})
	}
}

// exploring are parameters under which a protocol ends its waits without the clock,
// which stands while interleavings are tried.
var exploring = map[string]map[string]string{"2pl-timeout": {"lock-timeout": "0s"}}

// shows returns an interleaving in which the anomaly occurs, or nil.
func shows(p *txnproto.Protocol, a *Anomaly, shards int) (example []int, err error) {
	level, err := history.ParseLevel(p.Promise)
	if err != nil {
		return nil, err
	}
	_, err = controltest.Explore(controltest.Config{
		Protocol: p, Params: exploring[p.Name], Shards: shards, Keys: 6, Present: []txnproto.Key{1, 2, 5}, LateBegin: true,
	}, a.Programs, func(r controltest.Run) error {
		for _, n := range controltest.CheckLevel(r.History, level).Counts {
			if n.Kind == a.Kind && example == nil {
				example = slices.Clone(r.Schedule)
			}
		}
		return nil
	})
	return example, err
}

// prevented returns the checker's kinds that must not occur under p at all: a kind
// that several anomalies go by is prevented when all of them are.
func prevented(name string) []history.Kind {
	var kinds, possible []history.Kind
	for _, a := range Anomalies() {
		if slices.Contains(Possible[name], a.Name) {
			possible = append(possible, a.Kind)
		} else {
			kinds = append(kinds, a.Kind)
		}
	}
	kinds = append(kinds, history.Inconsistent, history.G1a)
	return slices.DeleteFunc(kinds, func(k history.Kind) bool { return slices.Contains(possible, k) })
}

// random runs random small transactions, at least so many, and fails when something that
// p prevents occurs.
func random(t *testing.T, p *txnproto.Protocol, transactions int, from rng.Seed) {
	level, err := history.ParseLevel(p.Promise)
	if err != nil {
		t.Fatal(err)
	}
	never := prevented(p.Name)
	starved := 0
	for seed, n := from, 0; n < transactions; seed++ {
		r, err := controltest.RunWorld(controltest.WorldConfig{
			Config: controltest.Config{
				Protocol: p, Shards: 1 + 2*int(seed%2), Keys: 8, Present: []txnproto.Key{0, 1, 3, 6}, Seed: seed,
				Early: seed%3 == 0,
			},
			Clients: 8, Requests: 25, Ops: 5, LeaderChanges: int(seed%3) * int(seed%2),
		})
		if errors.Is(err, controltest.ErrStarved) {
			// Liveness is the conformance suite's business. Here it must stay rare.
			if starved++; 100*starved > int(seed-from)+100 {
				t.Fatalf("seed %d: starved for the %d. time: %v", seed, starved, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		n += r.Commits
		res := controltest.CheckLevel(r.History, level)
		if !res.OK {
			t.Fatalf("seed %d: %v", seed, res)
		}
		for _, c := range res.Counts {
			if slices.Contains(never, c.Kind) {
				t.Fatalf("seed %d: %v is prevented by the table:\n%v", seed, c.Kind, res)
			}
		}
	}
}

// TestThePreventedNeverOccurs: a few thousand random transactions for each protocol.
func TestThePreventedNeverOccurs(t *testing.T) {
	for _, p := range txnproto.Protocols() {
		if !isBroken(p.Name) {
			t.Run(p.Name, func(t *testing.T) { random(t, p, 3000, 1) })
		}
	}
}
