package history

import (
	"fmt"
	"strings"
)

// Options say against what and how a history is checked. The zero value is usable.
type Options struct {
	// Promised is the level that the history should keep.
	Promised Level
	// RealTime also looks for cycles with real-time edges, by the begin and end of
	// transactions. It is set when Promised is StrictSerializable; otherwise
	// StrictSerializable is neither judged nor found.
	RealTime bool
	// ShardOf names the shard of a key. It is needed when scans come in pieces.
	ShardOf func(Key) ShardID
	// Present says whether the initial version of a key is a row; nil: the database
	// starts empty. It decides only whether the next write, as a scan sees it, is an
	// insert or an update.
	Present func(Key) bool
	// KeyName is how explanations call a key; nil: "key 7".
	KeyName func(Key) string
	// Witnesses is how many anomalies of each kind are kept, the smallest first
	// (default 3).
	Witnesses int
	// MaxCount is up to how many of each kind are counted (default 1000).
	MaxCount int
	// SearchEdges bounds the search for smallest cycles, in edges looked at for each
	// of the five kinds of search (default 20 million). It never stops before the
	// first find.
	SearchEdges int
	// WindowBytes is the size of a recording beyond which it is checked in windows
	// (default DefaultWindowBytes).
	WindowBytes int64
}

// Defaults of Options.
const (
	defaultWitnesses   = 3
	defaultMaxCount    = 1000
	defaultSearchEdges = 20_000_000
)

func (o *Options) fill() {
	if o.Promised == StrictSerializable {
		o.RealTime = true
	}
	if o.Witnesses <= 0 {
		o.Witnesses = defaultWitnesses
	}
	if o.MaxCount <= 0 {
		o.MaxCount = defaultMaxCount
	}
	if o.SearchEdges <= 0 {
		o.SearchEdges = defaultSearchEdges
	}
	if o.WindowBytes <= 0 {
		o.WindowBytes = DefaultWindowBytes
	}
}

func (o *Options) keyName(k Key) string {
	if o.KeyName != nil {
		return o.KeyName(k)
	}
	return fmt.Sprintf("key %d", k)
}

// Result is the verdict on a history.
type Result struct {
	Promised Level
	// Found is the last level in the list of levels that the history keeps, NoLevel
	// if none. StrictSerializable is found only when real time was judged.
	Found Level
	// OK says that the promised level was kept. It is judged on its own, not by
	// comparing it with Found.
	OK bool
	// Anomalies are the smallest witnesses of each kind, kinds in order.
	Anomalies []Anomaly
	// Counts are the kinds that were found. G1a and G1b count reads. Cycles count as
	// follows: for each edge of the kind that closes the cycles (ww for G0, wr for
	// G1c, rw and predicate rw for the others), the shortest cycle through it that
	// breaks a level; cycles of the same edges count once.
	Counts []Count
	// Transactions is how many committed.
	Transactions int
	// Edges is how many edges were examined; those that lie in two windows, twice.
	Edges int
	// Exact says that the history was checked as a whole; if not, Windows is in how
	// many windows, and Note says so in words.
	Exact   bool
	Windows int
	Note    string

	broken levelSet
	strict bool
}

// Keeps reports whether the history keeps a level. NoLevel is always kept,
// StrictSerializable only when real time was judged.
func (r *Result) Keeps(l Level) bool {
	if l == StrictSerializable && !r.strict {
		return false
	}
	return !r.broken.has(l)
}

// Verdict returns "ok", or the name of the first anomaly that breaks the promised
// level.
func (r *Result) Verdict() string {
	if r.OK {
		return "ok"
	}
	for i := range r.Anomalies {
		a := &r.Anomalies[i]
		for _, l := range a.Breaks {
			if l == r.Promised {
				return a.Kind.String()
			}
		}
	}
	return "not " + r.Promised.String()
}

// String returns the whole verdict in several lines.
func (r *Result) String() string {
	kept := "ok"
	if !r.OK {
		kept = "BROKEN"
	}
	return fmt.Sprintf("promised %v, found %v: %s\n%s", r.Promised, r.Found, kept, r.shown())
}

// Against is String for a level that is not the protocol's promise, but that somebody asks
// about; the protocol promised another.
func (r *Result) Against(promised Level) string {
	kept := "kept"
	if !r.OK {
		kept = "NOT KEPT"
	}
	return fmt.Sprintf("judged against %v (promised: %v), found %v: %s\n%s", r.Promised, promised, r.Found, kept, r.shown())
}

// shown is what was found, in several lines.
func (r *Result) shown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "transactions: %d, edges: %d\n", r.Transactions, r.Edges)
	for _, c := range r.Counts {
		fmt.Fprintf(&b, "%v\n", c)
	}
	for i := range r.Anomalies {
		b.WriteString(r.Anomalies[i].Explain())
	}
	if r.Note != "" {
		fmt.Fprintf(&b, "%s\n", r.Note)
	}
	return b.String()
}

// checkChunks checks one window and adds what it shows to f.
func checkChunks(chunks []chunk, f *found, opt Options, sc scope) stats {
	c := &resolver{columns: &columns{chunks: chunks}, opt: &opt, scope: sc}
	c.load(f, sc)
	c.resolveReads(f)
	cyclic := c.judge(f)
	if opt.RealTime && !cyclic {
		c.judgeRealTime(f)
	}
	return c.stats
}
