package history

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// found gathers what the check of one or several windows has shown.
type found struct {
	opt    *Options
	broken levelSet
	edges  int
	counts [numKinds]int
	more   [numKinds]bool // there may be more than counted
	best   [numKinds][]Anomaly
	seen   map[string]struct{} // of anomalies counted, so that overlapping windows count once
}

func (f *found) init(opt *Options) {
	f.opt = opt
	f.seen = make(map[string]struct{})
}

func (f *found) clone() found {
	g := *f
	g.seen = maps.Clone(f.seen)
	for k := range g.best {
		g.best[k] = slices.Clone(f.best[k])
	}
	return g
}

// full reports whether no more anomalies of a kind are counted, and notes that
// there was one.
func (f *found) full(k Kind) bool {
	if f.counts[k] < f.opt.MaxCount {
		return false
	}
	f.more[k] = true
	return true
}

// add counts an anomaly unless its signature is known, and keeps it if it is among
// the smallest of its kind.
func (f *found) add(a Anomaly, breaks levelSet, sig string) {
	f.broken |= breaks
	if f.full(a.Kind) {
		return
	}
	if _, ok := f.seen[sig]; ok {
		return
	}
	f.seen[sig] = struct{}{}
	f.counts[a.Kind]++
	a.Breaks = breaks.list()
	best := f.best[a.Kind]
	i := len(best)
	for i > 0 && len(best[i-1].Cycle) > len(a.Cycle) {
		i--
	}
	if i >= f.opt.Witnesses {
		return
	}
	best = slices.Insert(best, i, a)
	f.best[a.Kind] = best[:min(len(best), f.opt.Witnesses)]
}

// key returns a key's name.
func (f *found) key(k Key) string { return f.opt.keyName(k) }

// inconsistent reports a history that contradicts itself.
func (f *found) inconsistent(t TxnID, text string) {
	f.broken |= everyLevel
	if f.full(Inconsistent) {
		return
	}
	f.add(Anomaly{Kind: Inconsistent, Txns: []TxnID{t}, Because: text}, everyLevel, "i"+text)
}

// unknownVersion reports a read of a version that nobody installed.
func (f *found) unknownVersion(reader TxnID, r Read) {
	f.broken |= everyLevel
	if f.full(Inconsistent) {
		return
	}
	f.inconsistent(reader, fmt.Sprintf("%v read %s at version %d, which nobody installed", reader, f.key(r.Key), r.Version))
}

// abortedRead reports a G1a.
func (f *found) abortedRead(reader TxnID, r Read, writer TxnID, aborted bool) {
	f.broken |= fromCommitted
	if f.full(G1a) {
		return
	}
	what := "aborted"
	if !aborted {
		what = "never committed"
	}
	f.add(Anomaly{
		Kind: G1a, Txns: []TxnID{writer, reader},
		Because: fmt.Sprintf("%v read %s at version %d, written by %v, which %s", reader, f.key(r.Key), r.Version, writer, what),
	}, fromCommitted, signature('a', uint64(reader), uint64(r.Key), uint64(r.Version)))
}

// intermediateRead reports a G1b.
func (f *found) intermediateRead(reader TxnID, r Read, writer TxnID) {
	f.broken |= fromCommitted
	if f.full(G1b) {
		return
	}
	f.add(Anomaly{
		Kind: G1b, Txns: []TxnID{writer, reader},
		Because: fmt.Sprintf("%v read %s at version %d, which %v overwrote itself", reader, f.key(r.Key), r.Version, writer),
	}, fromCommitted, signature('b', uint64(reader), uint64(r.Key), uint64(r.Version)))
}

func signature(tag byte, parts ...uint64) string {
	b := []byte{tag}
	for _, p := range parts {
		b = binary.LittleEndian.AppendUint64(b, p)
	}
	return string(b)
}

// Count is how often a phenomenon was found.
type Count struct {
	Kind Kind `json:"anomaly"`
	N    int  `json:"count"`
	// AtLeast says that counting was stopped at a bound.
	AtLeast bool `json:"at_least,omitempty"`
}

// String returns the count as reports print it: "G2-item ×3" or "G2-item ×1000 or more".
func (c Count) String() string {
	s := c.Kind.String() + " ×" + strconv.Itoa(c.N)
	if c.AtLeast {
		s += " or more"
	}
	return s
}

// result judges what was found.
func (f *found) result(opt *Options) *Result {
	r := &Result{Promised: opt.Promised, broken: f.broken, strict: opt.RealTime}
	for k := range numKinds {
		if f.counts[k] > 0 {
			r.Counts = append(r.Counts, Count{Kind: k, N: f.counts[k], AtLeast: f.more[k]})
		}
		r.Anomalies = append(r.Anomalies, f.best[k]...)
	}
	for _, l := range Levels() {
		if r.Keeps(l) {
			r.Found = l
		}
	}
	r.OK = r.Keeps(opt.Promised)
	return r
}
