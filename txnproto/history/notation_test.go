package history

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The notation of the hand-written histories, one transaction a line:
//
//	base a b          the rows of the initial database
//	shards 2          key k belongs to shard k mod 2, a being 0
//	T1: r(a,0) w(a,1) w(b,1) commit
//	T2 [10,20]: s(a..d: b@1 c@2) d(b,2) abort
//
// r(key,version) reads, w installs, d installs a deletion, s(lo..hi: key@version …)
// scans lo ≤ k < hi and lists what it saw past version 0; s0(…) is the piece of shard
// 0. Keys are letters. [begin,end] are moments; left out, all transactions are
// concurrent. A line without commit or abort leaves its transaction unfinished.
// "later" before commit puts the commit record before the installs, and "writes=N"
// makes the commit say so, whatever was installed.
type testTxn struct {
	id         TxnID
	begin, end Time
	reads      []Read
	scans      []Scan
	writes     []Write
	committed  bool
	aborted    bool
	installs   int  // writes as the commit says them, or −1: as many as there are
	later      bool // installs come after the commit record
}

// testHistory is a history small enough to be written by hand.
type testHistory struct {
	txns   []testTxn
	base   map[Key]bool
	shards int
}

func (h *testHistory) present(k Key) bool { return h.base[k] }

func (h *testHistory) shardOf(k Key) ShardID { return ShardID(uint64(k) % uint64(max(h.shards, 1))) }

func (h *testHistory) options(promised Level) Options {
	o := Options{Promised: promised, Present: h.present, KeyName: letter}
	if h.shards > 0 {
		o.ShardOf = h.shardOf
	}
	return o
}

// feed records the transaction.
func (t *testTxn) feed(s Sink) {
	if len(t.writes) > 0 && !t.later {
		s.Install(t.id, AllShards, t.writes)
	}
	if t.committed {
		t.feedCommit(s)
	}
	if t.aborted {
		s.Abort(t.id)
	}
	if len(t.writes) > 0 && t.later {
		s.Install(t.id, AllShards, t.writes)
	}
}

func (t *testTxn) feedCommit(s Sink) {
	n := t.installs
	if n < 0 {
		n = len(t.writes)
	}
	s.Commit(&Commit{
		Txn: t.id, Request: RequestID(t.id), Begin: t.begin, End: t.end,
		Writes: n, Reads: t.reads, Scans: t.scans,
	})
}

func letter(k Key) string {
	if k < 26 {
		return string(rune('a' + k))
	}
	return fmt.Sprintf("key %d", k)
}

func parseHistory(text string) (*testHistory, error) {
	h := &testHistory{base: map[Key]bool{}}
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if err := h.parseLine(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return h, nil
}

func (h *testHistory) parseLine(line string) error {
	if rest, ok := strings.CutPrefix(line, "base "); ok {
		for _, w := range strings.Fields(rest) {
			k, err := parseKey(w)
			if err != nil {
				return err
			}
			h.base[k] = true
		}
		return nil
	}
	if rest, ok := strings.CutPrefix(line, "shards "); ok {
		n, err := strconv.Atoi(rest)
		h.shards = n
		return err
	}
	head, body, ok := strings.Cut(line, ": ")
	if !ok {
		return fmt.Errorf("%q: want a transaction and a colon", line)
	}
	t := testTxn{end: math.MaxInt32, installs: -1}
	head, times, timed := strings.Cut(head, " ")
	if timed {
		if _, err := fmt.Sscanf(times, "[%d,%d]", &t.begin, &t.end); err != nil {
			return fmt.Errorf("times %q: %w", times, err)
		}
	}
	id, err := strconv.ParseUint(strings.TrimPrefix(head, "T"), 10, 64)
	if err != nil {
		return fmt.Errorf("transaction %q: %w", head, err)
	}
	t.id = TxnID(id)
	for body = strings.TrimSpace(body); body != ""; body = strings.TrimSpace(body) {
		var op string
		if i := strings.IndexAny(body, "( "); i >= 0 && body[i] == '(' {
			j := strings.IndexByte(body, ')')
			if j < 0 {
				return fmt.Errorf("%q: no closing bracket", body)
			}
			op, body = body[:j], body[j+1:]
		} else {
			op, body, _ = strings.Cut(body, " ")
		}
		if err := t.parseOp(op); err != nil {
			return fmt.Errorf("%q: %w", op, err)
		}
	}
	h.txns = append(h.txns, t)
	return nil
}

// parseOp parses an operation without its closing bracket.
func (t *testTxn) parseOp(op string) error {
	name, args, _ := strings.Cut(op, "(")
	switch {
	case op == "commit":
		t.committed = true
	case op == "abort":
		t.aborted = true
	case op == "later":
		t.later = true
	case strings.HasPrefix(op, "writes="):
		n, err := strconv.Atoi(strings.TrimPrefix(op, "writes="))
		t.installs = n
		return err
	case name == "r" || name == "w" || name == "d":
		r, err := parseRead(args, ",")
		if err != nil {
			return err
		}
		if name == "r" {
			t.reads = append(t.reads, r)
		} else {
			t.writes = append(t.writes, Write{Key: r.Key, Version: r.Version, Tombstone: name == "d"})
		}
	case strings.HasPrefix(name, "s"):
		return t.parseScan(strings.TrimPrefix(name, "s"), args)
	default:
		return fmt.Errorf("unknown operation")
	}
	return nil
}

func (t *testTxn) parseScan(shard, args string) error {
	s := Scan{Shard: AllShards}
	if shard != "" {
		n, err := strconv.Atoi(shard)
		if err != nil {
			return err
		}
		s.Shard = ShardID(n)
	}
	bounds, list, _ := strings.Cut(args, ":")
	lo, hi, _ := strings.Cut(bounds, "..")
	var err error
	if s.Lo, err = parseKey(lo); err != nil {
		return err
	}
	if s.Hi, err = parseKey(hi); err != nil {
		return err
	}
	for _, w := range strings.Fields(list) {
		r, err := parseRead(w, "@")
		if err != nil {
			return err
		}
		s.Seen = append(s.Seen, r)
	}
	t.scans = append(t.scans, s)
	return nil
}

func parseRead(s, sep string) (Read, error) {
	key, version, _ := strings.Cut(s, sep)
	k, err := parseKey(key)
	if err != nil {
		return Read{}, err
	}
	v, err := strconv.ParseUint(version, 10, 63)
	return Read{k, Version(v)}, err
}

func parseKey(s string) (Key, error) {
	s = strings.TrimSpace(s)
	if len(s) != 1 || s[0] < 'a' || s[0] > 'z' {
		return 0, fmt.Errorf("key %q: want a letter", s)
	}
	return Key(s[0] - 'a'), nil
}

// String writes the history in the notation.
func (h *testHistory) String() string {
	var b strings.Builder
	b.WriteString("base")
	for k := range Key(26) {
		if h.base[k] {
			b.WriteString(" " + letter(k))
		}
	}
	b.WriteString("\n")
	for i := range h.txns {
		t := &h.txns[i]
		fmt.Fprintf(&b, "%v [%d,%d]:", t.id, t.begin, t.end)
		for _, r := range t.reads {
			fmt.Fprintf(&b, " r(%s,%d)", letter(r.Key), r.Version)
		}
		for _, s := range t.scans {
			fmt.Fprintf(&b, " s(%s..%s:", letter(s.Lo), letter(s.Hi))
			for _, r := range s.Seen {
				fmt.Fprintf(&b, " %s@%d", letter(r.Key), r.Version)
			}
			b.WriteString(")")
		}
		for _, w := range t.writes {
			op := "w"
			if w.Tombstone {
				op = "d"
			}
			fmt.Fprintf(&b, " %s(%s,%d)", op, letter(w.Key), w.Version)
		}
		if t.committed {
			b.WriteString(" commit")
		}
		if t.aborted {
			b.WriteString(" abort")
		}
		b.WriteString("\n")
	}
	return b.String()
}
