package schedule

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// head is the part of an operation before its parentheses.
type head struct {
	kind  Kind
	lock  LockClause
	txn   string
	item  string // of the compact form r1x
	width int    // bytes of the text that word, subscript and compact item take
	bare  int    // bytes of word and subscript alone
}

// words are the operations' names, in lower case. The long ones are spelled out
// so that read1(x) and commit1 can be written too.
var words = map[string]struct {
	kind Kind
	lock LockClause
}{
	"b": {kind: Begin}, "begin": {kind: Begin}, "start": {kind: Begin}, "bot": {kind: Begin},
	"r": {kind: Read}, "read": {kind: Read}, "scan": {kind: Scan},
	"u": {Read, ForUpdate},
	"w": {kind: Write}, "write": {kind: Write},
	"i": {kind: Insert}, "ins": {kind: Insert}, "insert": {kind: Insert},
	"d": {kind: Delete}, "del": {kind: Delete}, "delete": {kind: Delete},
	"s": {kind: Savepoint}, "sp": {kind: Savepoint}, "savepoint": {kind: Savepoint},
	"rb": {kind: RollbackTo}, "rollback": {kind: RollbackTo},
	"rel": {kind: Release}, "release": {kind: Release},
	"c": {kind: Commit}, "commit": {kind: Commit},
	"a": {kind: Abort}, "abort": {kind: Abort},
}

// lockWords are the lock requests that some books write into schedules.
var lockWords = map[string]bool{
	"x": true, "l": true, "sl": true, "xl": true, "rl": true, "wl": true, "ul": true,
	"lock": true, "unlock": true, "lx": true, "ls": true,
}

var (
	// ownerPattern is the transaction of T1: R(x), with the colon cut off.
	ownerPattern = regexp.MustCompile(`^[Tt][0-9]+$`)
	headPattern  = regexp.MustCompile(`^([A-Za-z]+)(_?(?:\{([0-9₀-₉]+)\}|([0-9₀-₉]+)))([A-Za-z0-9_₀-₉]*)`)
	// glued finds an operation that has grown onto a compact item: x w2y in r1xw2y.
	glued = regexp.MustCompile(`^[A-Za-z0-9_]+?[rwiduRWIDU][0-9]+[A-Za-z_]`)
)

// splitHead reads an operation's word and subscript from the front of text, and
// reports whether they are one.
func splitHead(text string) (head, bool) {
	m := headPattern.FindStringSubmatch(text)
	if m == nil {
		return head{}, false
	}
	w, ok := words[strings.ToLower(m[1])]
	if !ok {
		return head{}, false
	}
	h := head{
		kind: w.kind, lock: w.lock,
		txn: ordinary(m[3] + m[4]), item: ordinary(m[5]),
		width: len(m[0]), bare: len(m[1]) + len(m[2]),
	}
	switch h.kind {
	case Begin, Commit, Abort:
		// They take no item: in c1c2 a new operation begins.
		h.item, h.width = "", h.bare
	case RollbackTo, Savepoint, Release, Read, Scan, Write, Insert, Delete:
	default:
		panic("schedule: unknown kind")
	}
	return h, true
}

// ownedHead reads a word without a number as an operation of the owner: T1: R(x).
func ownedHead(word, owner string) (head, bool) {
	w, ok := words[strings.ToLower(word)]
	return head{kind: w.kind, lock: w.lock, txn: owner, width: len(word), bare: len(word)}, ok
}

// ordinary turns subscript digits into ordinary ones.
func ordinary(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '₀' && r <= '₉' {
			return r - '₀' + '0'
		}
		return r
	}, s)
}

func unknownWord(word string) string {
	letters := strings.TrimRight(strings.ToLower(word), "0123456789_")
	if i := strings.IndexAny(strings.ToLower(word), "0123456789_"); i > 0 {
		letters = strings.ToLower(word[:i])
	}
	switch _, known := words[letters]; {
	case known:
		return "the transaction's number is missing after " + strconv.Quote(word) + ": " + expected
	case lockWords[letters]:
		return "lock requests are not written, each protocol takes its own: " + expected
	case letters == "nowait" || letters == "skip" || letters == "for" || letters == "wait" || letters == "share":
		return "the clause " + strconv.Quote(word) + " stands after a read or a write, not here: " + expected
	default:
		return "unknown operation " + strconv.Quote(word) + ": " + expected
	}
}

// operation reads one operation whose head is h; the cursor is at start.
func (p *parser) operation(start int, h head) error {
	n, err := strconv.ParseInt(h.txn, 10, 32)
	if err != nil || n > MaxTxn {
		return p.fail(start, start+h.bare, "transaction number %q: expected 0 to %d", h.txn, MaxTxn)
	}
	op := Op{Kind: h.kind, Txn: Txn(n), Lock: h.lock, At: p.at}
	p.pos = start + h.width
	switch h.kind {
	case Begin, Commit, Abort:
	case RollbackTo:
		if h.item == "" && !p.opens() {
			op.Kind = Abort // rollback1, rb1
			break
		}
		op.Savepoint, err = p.savepoint(start, h)
	case Savepoint, Release:
		op.Savepoint, err = p.savepoint(start, h)
	case Read, Scan, Write, Insert, Delete:
		if err = p.operand(start, h, &op); err == nil {
			err = p.clauses(&op)
		}
	default:
		panic("schedule: unknown kind")
	}
	if err != nil {
		return err
	}
	p.out.Ops = append(p.out.Ops, op)
	p.out.Timed = p.timed
	p.spans = append(p.spans, span{start, p.pos})
	return nil
}

// opens reports whether a bracket follows, and moves to it if so.
func (p *parser) opens() bool {
	i := p.spaces(p.pos)
	if i < len(p.text) && (p.text[i] == '(' || p.text[i] == '[') {
		p.pos = i
		return true
	}
	return false
}

func (p *parser) savepoint(start int, h head) (string, error) {
	if h.item != "" {
		return h.item, nil
	}
	if !p.opens() {
		return "", p.fail(start, p.pos, "expected the savepoint's name: %s(name)", p.text[start:p.pos])
	}
	closer := p.open()
	name, end := p.word(p.pos)
	if name == "" {
		return "", p.failHere("expected the savepoint's name")
	}
	p.pos = end
	return name, p.close(closer)
}

// open takes the bracket at the cursor and returns the one that closes it.
func (p *parser) open() byte {
	closer := byte(')')
	if p.text[p.pos] == '[' {
		closer = ']'
	}
	p.pos = p.spaces(p.pos + 1)
	return closer
}

func (p *parser) close(closer byte) error {
	p.pos = p.spaces(p.pos)
	if p.pos < len(p.text) && p.text[p.pos] == closer {
		p.pos++
		return nil
	}
	return p.failHere("expected %q", string(closer))
}

// failHere makes an error for the word or character at the cursor.
func (p *parser) failHere(format string, args ...any) error {
	_, end := p.word(p.pos)
	if end == p.pos && end < len(p.text) && p.text[end] != '\n' {
		_, n := utf8.DecodeRuneInString(p.text[end:])
		end += n
	}
	found := "the end"
	if end > p.pos {
		found = strconv.Quote(p.text[p.pos:end])
	} else if p.pos < len(p.text) {
		found = "the end of the line"
	}
	return p.fail(p.pos, end, format+", found %s", append(args, found)...)
}

// operand reads the item, range or item and value that op works on.
func (p *parser) operand(start int, h head, op *Op) error {
	if h.item != "" {
		if glued.MatchString(h.item) {
			return p.fail(start, p.pos, "%s may be one operation or two: write the item in parentheses, or separate them", p.text[start:p.pos])
		}
		op.Item = Item(h.item)
		if p.assigned(p.pos) {
			p.pos = p.equals(p.pos)
			return p.value(op)
		}
		return p.scanOnly(start, op)
	}
	if !p.opens() {
		return p.fail(start, p.pos, "expected the item: %s(x)", p.text[start:p.pos])
	}
	closer := p.open()
	name, end := p.word(p.pos)
	if name == "" {
		return p.failHere("expected an item's name: letters, digits and underscores")
	}
	op.Item, p.pos = Item(name), p.spaces(end)
	rest := p.text[p.pos:]
	switch {
	case strings.HasPrefix(rest, ".."), strings.HasPrefix(rest, "…"):
		if err := p.rangeEnd(op); err != nil {
			return err
		}
	case p.assigned(p.pos):
		p.pos = p.equals(p.pos)
		if err := p.value(op); err != nil {
			return err
		}
	case strings.HasPrefix(rest, ","):
		p.pos = p.spaces(p.pos + 1)
		if err := p.value(op); err != nil {
			return err
		}
	}
	if err := p.close(closer); err != nil {
		return err
	}
	return p.scanOnly(start, op)
}

// scanOnly refuses a scan without a range.
func (p *parser) scanOnly(start int, op *Op) error {
	if op.Kind == Scan && op.End == "" {
		return p.fail(start, p.pos, "expected a range: scan%d[a..c]", op.Txn)
	}
	return nil
}

func (p *parser) rangeEnd(op *Op) error {
	if !op.Kind.Reads() {
		return p.failHere("a range is for reads, and %s is for one item: expected a closing bracket", op.Kind)
	}
	if strings.HasPrefix(p.text[p.pos:], "…") {
		p.pos += len("…")
	} else {
		for p.pos < len(p.text) && p.text[p.pos] == '.' {
			p.pos++
		}
	}
	p.pos = p.spaces(p.pos)
	name, end := p.word(p.pos)
	if name == "" {
		return p.failHere("expected the last item of the range")
	}
	op.Kind, op.End, p.pos = Scan, Item(name), end
	return nil
}

// value reads a sum such as 5, -3, x+5 or x - y.
func (p *parser) value(op *Op) error {
	for first := true; ; first = false {
		p.pos = p.spaces(p.pos)
		var t Term
		signed := p.pos < len(p.text) && (p.text[p.pos] == '+' || p.text[p.pos] == '-')
		switch {
		case signed:
			t.Minus = p.text[p.pos] == '-'
			p.pos = p.spaces(p.pos + 1)
		case !first:
			return nil
		}
		word, end := p.word(p.pos)
		switch {
		case word == "":
			return p.failHere("expected a value: a number, or items and numbers added, such as x+5")
		case isDigit(word[0]):
			n, err := p.number(p.pos)
			if err != nil {
				return err
			}
			t.Number = n
		default:
			t.Item, p.pos = Item(word), end
		}
		op.Value = append(op.Value, t)
	}
}

// clauses reads what may follow an operation: u, for update, share, nowait, skip
// locked, wait 50ms.
func (p *parser) clauses(op *Op) error {
	for {
		at := p.spaces(p.pos)
		word, end := p.word(at)
		switch strings.ToLower(word) {
		case "u":
			op.Lock = ForUpdate
		case "share":
			op.Lock = ForShare
		case "for":
			second, stop := p.word(p.spaces(end))
			switch strings.ToLower(second) {
			case "update":
				op.Lock = ForUpdate
			case "share":
				op.Lock = ForShare
			default:
				return p.fail(at, stop, "expected for update or for share")
			}
			end = stop
		case "nowait":
			op.Wait, op.Timeout = NoWait, 0
		case "skip":
			op.Wait, op.Timeout = SkipLocked, 0
			if second, stop := p.word(p.spaces(end)); strings.EqualFold(second, "locked") {
				end = stop
			}
		case "wait":
			p.pos = p.spaces(end)
			d, _, err := p.duration()
			if err != nil {
				return err
			}
			op.Wait, op.Timeout, end = WaitFor, d, p.pos
		default:
			return nil
		}
		p.pos = end
	}
}
