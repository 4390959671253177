package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

// The brute force knows nothing of graphs: it looks for a serial order, or an order
// of starts and commits, in which every transaction sees what it recorded.

// oracle is a history prepared for it: committed transactions only.
type oracle struct {
	h      *testHistory
	txns   []*testTxn
	final  [][]Write                 // by txn: its last version of each key, in key order
	chains map[Key][]Write           // by key: the final versions of committed transactions, ascending
	state  map[Key]Version           // now
	bad    bool                      // G1a or G1b
	owner  map[Key]map[Version]TxnID // of every installed version
}

func newOracle(h *testHistory) *oracle {
	o := &oracle{h: h, chains: map[Key][]Write{}, state: map[Key]Version{}, owner: map[Key]map[Version]TxnID{}}
	last := map[TxnID]map[Key]Write{}
	for i := range h.txns {
		t := &h.txns[i]
		last[t.id] = map[Key]Write{}
		for _, w := range t.writes {
			if w.Version >= last[t.id][w.Key].Version {
				last[t.id][w.Key] = w
			}
			if o.owner[w.Key] == nil {
				o.owner[w.Key] = map[Version]TxnID{}
			}
			o.owner[w.Key][w.Version] = t.id
		}
		if !t.committed {
			continue
		}
		var final []Write
		for _, w := range last[t.id] {
			final = append(final, w)
		}
		sort.Slice(final, func(i, j int) bool { return final[i].Key < final[j].Key })
		o.txns = append(o.txns, t)
		o.final = append(o.final, final)
		for _, w := range final {
			o.chains[w.Key] = append(o.chains[w.Key], w)
		}
	}
	for _, c := range o.chains {
		sort.Slice(c, func(i, j int) bool { return c[i].Version < c[j].Version })
	}
	for i := range o.txns {
		for _, r := range o.allReads(i) {
			if !o.inChain(r) {
				o.bad = true
			}
		}
	}
	return o
}

func (o *oracle) inChain(r Read) bool {
	return r.Version == 0 || slices.ContainsFunc(o.chains[r.Key], func(w Write) bool { return w.Version == r.Version })
}

// allReads returns the reads of others' versions, and every key of every scan.
func (o *oracle) allReads(i int) []Read {
	t := o.txns[i]
	var out []Read
	for _, r := range append(slices.Clone(t.reads), o.scanned(t)...) {
		if r.Version == 0 || o.owner[r.Key][r.Version] != t.id {
			out = append(out, r)
		}
	}
	return out
}

func (o *oracle) scanned(t *testTxn) []Read {
	var out []Read
	for _, s := range t.scans {
		for k := s.Lo; k < s.Hi; k++ {
			r := Read{Key: k}
			for _, x := range s.Seen {
				if x.Key == k {
					r.Version = x.Version
				}
			}
			out = append(out, r)
		}
	}
	return out
}

// row reports whether the key is a row at that version.
func (o *oracle) row(k Key, v Version) bool {
	if v == 0 {
		return o.h.present(k)
	}
	for _, w := range o.chains[k] {
		if w.Version == v {
			return !w.Tombstone
		}
	}
	return false
}

// order searches for a serial order. may says whether a transaction may come next.
func (o *oracle) order(may func(i int, done []bool) bool) bool {
	done := make([]bool, len(o.txns))
	var place func(n int) bool
	place = func(n int) bool {
		if n == len(o.txns) {
			return true
		}
		for i := range o.txns {
			if done[i] || !may(i, done) || !o.writable(i) {
				continue
			}
			undo := o.apply(i)
			done[i] = true
			ok := place(n + 1)
			done[i] = false
			for k, w := range o.final[i] {
				o.state[w.Key] = undo[k]
			}
			if ok {
				return true
			}
		}
		return false
	}
	return place(0)
}

func (o *oracle) writable(i int) bool {
	for _, w := range o.final[i] {
		if w.Version <= o.state[w.Key] {
			return false
		}
	}
	return true
}

func (o *oracle) apply(i int) (undo []Version) {
	for _, w := range o.final[i] {
		undo = append(undo, o.state[w.Key])
		o.state[w.Key] = w.Version
	}
	return undo
}

func (o *oracle) readUncommitted() bool {
	return o.order(func(int, []bool) bool { return true })
}

func (o *oracle) readCommitted() bool {
	return !o.bad && o.order(func(i int, _ []bool) bool {
		for _, r := range o.allReads(i) {
			if o.state[r.Key] < r.Version {
				return false
			}
		}
		return true
	})
}

// repeatableRead lets a scan miss what came into its range or left it.
func (o *oracle) repeatableRead() bool {
	return !o.bad && o.order(func(i int, _ []bool) bool {
		item := map[Read]bool{}
		for _, r := range o.txns[i].reads {
			item[r] = true
		}
		for _, r := range o.allReads(i) {
			now := o.state[r.Key]
			if now == r.Version {
				continue
			}
			if now < r.Version || item[r] {
				return false
			}
			next := Version(0)
			for _, w := range o.chains[r.Key] {
				if w.Version > r.Version {
					next = w.Version
					break
				}
			}
			if o.owner[r.Key][next] == o.txns[i].id {
				return false // its own next version came after others': not placed yet
			}
			if o.row(r.Key, r.Version) == o.row(r.Key, next) {
				return false
			}
		}
		return true
	})
}

func (o *oracle) serializable(strict bool) bool {
	return !o.bad && o.order(func(i int, done []bool) bool {
		for j := range o.txns {
			if strict && !done[j] && o.txns[j].end < o.txns[i].begin {
				return false
			}
		}
		for _, r := range o.allReads(i) {
			if o.state[r.Key] != r.Version {
				return false
			}
		}
		return true
	})
}

// snapshot searches for starts and commits: a transaction sees the state at its
// start, and commits only if nobody wrote its keys since.
func (o *oracle) snapshot() bool {
	if o.bad {
		return false
	}
	n := len(o.txns)
	phase := make([]int, n)
	atStart := make([]map[Key]Version, n)
	var step func(left int) bool
	step = func(left int) bool {
		if left == 0 {
			return true
		}
		for i := range o.txns {
			if phase[i] == 0 && o.sees(i) {
				atStart[i] = map[Key]Version{}
				for _, w := range o.final[i] {
					atStart[i][w.Key] = o.state[w.Key]
				}
				phase[i] = 1
				ok := step(left - 1)
				phase[i] = 0
				if ok {
					return true
				}
			} else if phase[i] == 1 && o.unchanged(i, atStart[i]) && o.writable(i) {
				undo := o.apply(i)
				phase[i] = 2
				ok := step(left - 1)
				phase[i] = 1
				for k, w := range o.final[i] {
					o.state[w.Key] = undo[k]
				}
				if ok {
					return true
				}
			}
		}
		return false
	}
	return step(2 * n)
}

func (o *oracle) sees(i int) bool {
	for _, r := range o.allReads(i) {
		if o.state[r.Key] != r.Version {
			return false
		}
	}
	return true
}

func (o *oracle) unchanged(i int, at map[Key]Version) bool {
	for _, w := range o.final[i] {
		if o.state[w.Key] != at[w.Key] {
			return false
		}
	}
	return true
}

// verdicts returns which levels the brute force finds kept, in the order of Levels.
// Snapshots are tried for up to five transactions.
func (o *oracle) verdicts() (kept []bool, snapshot bool) {
	snapshot = len(o.txns) <= 5
	return []bool{
		o.readUncommitted(), o.readCommitted(), snapshot && o.snapshot(),
		o.repeatableRead(), o.serializable(false), o.serializable(true),
	}, snapshot
}

// generator draws small histories.
type generator struct{ *rand.Rand }

// serial draws transactions that ran one after another: every level is kept.
func (g generator) serial(txns, keys int) *testHistory {
	h := &testHistory{base: map[Key]bool{}}
	for k := range keys {
		h.base[Key(k)] = g.IntN(2) == 0
	}
	state := make([]Version, keys)
	stride := Version(1 + 6*g.IntN(2))
	for i := range txns {
		t := testTxn{id: TxnID(i + 1), begin: Time(20 * i), end: Time(20*i + 10), committed: true, installs: -1}
		t.later = g.IntN(2) == 0
		for range g.IntN(4) {
			k := g.IntN(keys)
			t.reads = append(t.reads, Read{Key(k), state[k]})
		}
		if g.IntN(4) == 0 {
			s := Scan{Lo: Key(g.IntN(keys)), Shard: AllShards}
			s.Hi = s.Lo + Key(g.IntN(keys+1))
			for k := s.Lo; k < s.Hi && int(k) < keys; k++ {
				if state[k] != 0 {
					s.Seen = append(s.Seen, Read{k, state[k]})
				}
			}
			t.scans = append(t.scans, s)
		}
		for range g.IntN(4) {
			k := g.IntN(keys)
			if slices.ContainsFunc(t.writes, func(w Write) bool { return w.Key == Key(k) }) && g.IntN(4) != 0 {
				continue
			}
			state[k] += stride
			t.writes = append(t.writes, Write{Key: Key(k), Version: state[k], Tombstone: g.IntN(3) == 0})
		}
		h.txns = append(h.txns, t)
	}
	return h
}

// mutate spoils a history: other versions are read, versions change places,
// transactions abort, begins and ends move.
func (g generator) mutate(h *testHistory) {
	installed := map[Key][]*Write{}
	for i := range h.txns {
		for j := range h.txns[i].writes {
			w := &h.txns[i].writes[j]
			installed[w.Key] = append(installed[w.Key], w)
		}
	}
	other := func(r *Read) {
		if c := installed[r.Key]; len(c) > 0 {
			r.Version = 0
			if n := g.IntN(len(c) + 1); n > 0 {
				r.Version = c[n-1].Version
			}
		}
	}
	for i := range h.txns {
		t := &h.txns[i]
		for j := range t.reads {
			if g.IntN(4) == 0 {
				other(&t.reads[j])
			}
		}
		for j := range t.scans {
			s := &t.scans[j]
			for k := range s.Seen {
				if g.IntN(3) == 0 {
					other(&s.Seen[k])
				}
			}
			s.Seen = slices.DeleteFunc(s.Seen, func(r Read) bool { return r.Version == 0 || g.IntN(6) == 0 })
		}
		if g.IntN(12) == 0 {
			t.committed, t.aborted = false, g.IntN(2) == 0
		}
		t.begin = max(0, t.begin-Time(g.IntN(60)))
		t.end += Time(g.IntN(60))
	}
	g.swapTimes(h)
	for k := range Key(26) {
		if c := installed[k]; len(c) > 1 && g.IntN(4) == 0 {
			a, b := c[g.IntN(len(c))], c[g.IntN(len(c))]
			a.Version, b.Version = b.Version, a.Version
		}
	}
}

// swapTimes has two transactions run in each other's time, which only real time sees.
func (g generator) swapTimes(h *testHistory) {
	a, b := &h.txns[g.IntN(len(h.txns))], &h.txns[g.IntN(len(h.txns))]
	a.begin, a.end, b.begin, b.end = b.begin, b.end, a.begin, a.end
}

// shuffled records the history with all records in a random order, as far as
// that may happen: installs may come before or after any commit.
func (g generator) shuffled(h *testHistory, s Sink) {
	var feeds []func()
	for i := range h.txns {
		t := &h.txns[i]
		for j := range t.writes {
			feeds = append(feeds, func() { s.Install(t.id, AllShards, t.writes[j:j+1]) })
		}
		if t.committed {
			feeds = append(feeds, func() { t.feedCommit(s) })
		}
		if t.aborted {
			feeds = append(feeds, func() { s.Abort(t.id) })
		}
	}
	g.Shuffle(len(feeds), func(i, j int) { feeds[i], feeds[j] = feeds[j], feeds[i] })
	for _, f := range feeds {
		f()
	}
}

// compareWithBruteForce draws n histories and compares every verdict. It returns
// how often each level was broken.
func compareWithBruteForce(t *testing.T, seed uint64, n int) []int {
	broken := make([]int, len(Levels()))
	for i := range n {
		g := generator{rand.New(rand.NewPCG(seed, uint64(i)))}
		h := g.serial(2+g.IntN(5), 2+g.IntN(3))
		for range g.IntN(4) {
			g.mutate(h)
		}
		if g.IntN(4) == 0 {
			g.swapTimes(h)
		}
		opt := h.options(StrictSerializable)
		r := NewRecorder(opt)
		g.shuffled(h, r)
		res := r.Check()
		want, snapshot := newOracle(h).verdicts()
		for j, l := range Levels() {
			if l == Snapshot && !snapshot {
				continue
			}
			if res.Keeps(l) != want[j] {
				t.Fatalf("seed %d, history %d: %v kept: checker says %v, brute force %v\n%v%v", seed, i, l, res.Keeps(l), want[j], h, res)
			}
			if !want[j] {
				broken[j]++
			}
		}
		if err := witnessed(res); err != nil {
			t.Fatalf("seed %d, history %d: %v\n%v%v", seed, i, err, h, res)
		}
	}
	return broken
}

// witnessed checks that every broken level has an anomaly that breaks it, and that
// cycles are cycles.
func witnessed(res *Result) error {
	for _, l := range Levels() {
		ok := res.Keeps(l) || l == StrictSerializable && !res.strict
		for i := range res.Anomalies {
			a := &res.Anomalies[i]
			if slices.Contains(a.Breaks, l) {
				if res.Keeps(l) {
					return fmt.Errorf("%v is kept and %v breaks it", l, a.Kind)
				}
				ok = true
			}
			for j, e := range a.Cycle {
				if next := a.Cycle[(j+1)%len(a.Cycle)]; e.To != next.From || e.From == e.To {
					return fmt.Errorf("%v is no cycle", a.Kind)
				}
			}
		}
		if !ok {
			return fmt.Errorf("%v is broken and no anomaly shows it", l)
		}
	}
	return nil
}

func TestAgainstBruteForce(t *testing.T) {
	const n = 20_000
	broken := compareWithBruteForce(t, 1, n)
	t.Logf("broken of %d, by level: %v", n, broken)
	for i, l := range Levels() {
		if broken[i] < n/100 || broken[i] > n-n/100 {
			t.Errorf("%v was broken %d times of %d: the histories do not test it", l, broken[i], n)
		}
	}
}
