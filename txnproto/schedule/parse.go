package schedule

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"interleave/sim/event"
)

// Parse reads a schedule in any of the notations that docs/schedules.md lists: r1(x)
// w2(x) c1 c2, R1(X); W2(Y); C1;, r1x, w2x, w₁[x], with initial values, values,
// ranges, savepoints, lock clauses, times and comments. The error is a
// *SyntaxError that points at the first token that does not fit.
func Parse(text string) (*Schedule, error) {
	if len(text) > MaxText {
		return nil, errorAt(text[:MaxText], MaxText, MaxText, "the text is longer than %d bytes", MaxText)
	}
	p := &parser{text: text}
	if !utf8.ValidString(text) {
		i := strings.IndexRune(text, utf8.RuneError)
		return nil, errorAt(text, i, i, "not valid UTF-8")
	}
	if err := p.schedule(); err != nil {
		return nil, err
	}
	if err := p.out.validate(); err != nil {
		return nil, p.placed(err)
	}
	return &p.out, nil
}

// placed turns an error about an operation into one about its token.
func (p *parser) placed(err error) error {
	e, ok := err.(*OpError)
	if !ok {
		panic("schedule: validate returned " + err.Error())
	}
	if e.Index < 0 || e.Index >= len(p.spans) {
		return errorAt(p.text, p.initAt.from, p.initAt.to, "%s", e.Msg)
	}
	at := p.spans[e.Index]
	return errorAt(p.text, at.from, at.to, "%s", e.Msg)
}

type span struct{ from, to int }

// parser reads one text from left to right, without going back beyond the
// statement it is in.
type parser struct {
	text   string
	pos    int
	at     event.Time
	timed  bool   // a time has been read
	owner  string // the number in the last "T1:", for operations without their own
	out    Schedule
	spans  []span // of out.Ops
	initAt span   // of the last initial value
}

// expected lists the operations, for errors.
const expected = "expected an operation such as r1(x), w1(x), u1(x), i1(x), d1(x), r1[a..c], b1, c1, a1, s1(name), rb1(name)"

func (p *parser) schedule() error {
	p.name()
	for {
		p.skip()
		if p.pos == len(p.text) {
			return nil
		}
		if err := p.statement(); err != nil {
			return err
		}
		if len(p.out.Ops) > MaxOps {
			return nil // validate refuses it, with the operation at fault
		}
	}
}

// name reads a leading "S:" or "S =", as exercises label their schedules.
func (p *parser) name() {
	p.skip()
	word, next := p.word(p.pos)
	if word == "" || isDigit(word[0]) {
		return
	}
	next = p.spaces(next)
	rest := p.text[next:]
	after := strings.TrimLeft(strings.TrimPrefix(rest, "="), " \t")
	switch {
	case strings.HasPrefix(rest, ":") && !strings.HasPrefix(rest, ":=") && !ownerPattern.MatchString(word):
	case strings.HasPrefix(rest, "=") && beginsOp(after):
	default:
		return
	}
	p.out.Name = word
	p.pos = next + 1
}

// beginsOp reports whether text begins with an operation or with "T1:".
func beginsOp(text string) bool {
	_, is := splitHead(text)
	word, _, colon := strings.Cut(text, ":")
	return is || colon && ownerPattern.MatchString(strings.TrimRight(word, " \t"))
}

// statement reads one operation, time mark or initial value.
func (p *parser) statement() error {
	start := p.pos
	if isDigit(p.text[start]) {
		return p.timeMark()
	}
	word, end := p.word(start)
	if word == "" {
		_, n := utf8.DecodeRuneInString(p.text[start:])
		return p.fail(start, start+n, "unexpected %q: %s", p.text[start:start+n], expected)
	}
	if strings.EqualFold(word, "init") && !p.assigned(end) {
		p.pos = end
		return p.initial()
	}
	if next := p.spaces(end); ownerPattern.MatchString(word) && strings.HasPrefix(p.text[next:], ":") && !p.assigned(end) {
		p.owner, p.pos = word[1:], next+1
		return nil
	}
	h, isOp := splitHead(p.text[start:])
	if !isOp && p.owner != "" && !p.assigned(end) {
		h, isOp = ownedHead(word, p.owner)
	}
	if p.assigned(end) && (!isOp || h.item == "") {
		return p.assignment()
	}
	if !isOp {
		return p.fail(start, end, "%s", unknownWord(word))
	}
	return p.operation(start, h)
}

// initial reads the assignments after the word init.
func (p *parser) initial() error {
	for {
		at := p.pos
		p.skip()
		word, end := p.word(p.pos)
		if strings.ContainsAny(p.text[at:p.pos], ";\n") || word == "" || !p.assigned(end) {
			return nil
		}
		if err := p.assignment(); err != nil {
			return err
		}
	}
}

func (p *parser) assignment() error {
	start := p.pos
	word, end := p.word(start)
	if len(p.out.Ops) > 0 {
		return p.fail(start, end, "initial values stand before the first operation; a write of a value is w1(%s=5)", word)
	}
	p.pos = p.equals(end)
	from := p.pos
	minus := false
	if p.pos < len(p.text) && (p.text[p.pos] == '-' || p.text[p.pos] == '+') {
		minus = p.text[p.pos] == '-'
		p.pos++
	}
	n, err := p.number(from)
	if err != nil {
		return err
	}
	if minus {
		n = -n
	}
	p.initAt = span{start, p.pos}
	p.out.Initial = append(p.out.Initial, Initial{Item(word), n})
	// Checked here, so that the error points at the second and not at the last.
	if verr := (&Schedule{Initial: p.out.Initial}).validate(); verr != nil {
		return p.placed(verr)
	}
	return nil
}

// timeMark reads "10ms:", which holds for the operations up to the next.
func (p *parser) timeMark() error {
	d, start, err := p.duration()
	if err != nil {
		return err
	}
	stop := p.pos
	p.pos = p.spaces(p.pos)
	if p.pos == len(p.text) || p.text[p.pos] != ':' {
		return p.fail(start, stop, "expected a colon after the time: %s: r1(x)", p.text[start:stop])
	}
	p.pos++
	if event.Time(d) < p.at {
		return p.fail(start, stop, "time %v is before the %v above: times may not go back", d, p.at)
	}
	if !p.timed && len(p.out.Ops) > 0 {
		return p.fail(start, stop, "the operations before the first time have none: give them one, such as 0ms:")
	}
	p.at = event.Time(d)
	p.timed = true
	return nil
}

// duration reads a time with its unit at the cursor, and where it began.
func (p *parser) duration() (d time.Duration, start int, err error) {
	start = p.pos
	for p.pos < len(p.text) {
		r, n := utf8.DecodeRuneInString(p.text[p.pos:])
		if !isDigit(byte(min(r, 127))) && r != '.' && !strings.ContainsRune("nuµμmsh", r) {
			break
		}
		p.pos += n
	}
	word := p.text[start:p.pos]
	d, perr := time.ParseDuration(word)
	if perr != nil || d < 0 || d > MaxTime {
		if word == "" {
			_, p.pos = p.word(start)
		}
		return 0, start, p.fail(start, p.pos, "%q is no time: expected a number with a unit, such as 10ms, 1.5s or 200us, and at most %dh", p.text[start:p.pos], MaxTime/time.Hour)
	}
	return d, start, nil
}

// number reads an unsigned number; its error points from from.
func (p *parser) number(from int) (int64, error) {
	start := p.pos
	p.pos += digits(p.text[p.pos:])
	if _, end := p.word(p.pos); end != p.pos || p.pos == start {
		if end == p.pos && end < len(p.text) {
			_, n := utf8.DecodeRuneInString(p.text[end:])
			end += n
		}
		return 0, p.fail(from, end, "expected a whole number")
	}
	n, err := strconv.ParseInt(p.text[start:p.pos], 10, 64)
	if err != nil {
		return 0, p.fail(from, p.pos, "%s is too large: the largest number is 2^63 - 1", p.text[start:p.pos])
	}
	return n, nil
}

// skip passes over separators and comments: spaces, commas, semicolons, dots of
// omission, and # or -- to the end of the line.
func (p *parser) skip() {
	for p.pos < len(p.text) {
		rest := p.text[p.pos:]
		r, n := utf8.DecodeRuneInString(rest)
		switch {
		case unicode.IsSpace(r) || r == ',' || r == ';' || r == '…':
			p.pos += n
		case strings.HasPrefix(rest, "..."):
			p.pos += 3
		case r == '#' || strings.HasPrefix(rest, "--"):
			if i := strings.IndexByte(rest, '\n'); i >= 0 {
				p.pos += i
			} else {
				p.pos = len(p.text)
			}
		default:
			return
		}
	}
}

// spaces returns the position after blanks at i.
func (p *parser) spaces(i int) int {
	for i < len(p.text) && (p.text[i] == ' ' || p.text[i] == '\t') {
		i++
	}
	return i
}

// word returns the letters, digits and underscores at i, subscript digits made
// ordinary ones, and where they end.
func (p *parser) word(i int) (word string, end int) {
	var b strings.Builder
	for end = i; end < len(p.text); {
		r, n := utf8.DecodeRuneInString(p.text[end:])
		switch {
		case r < utf8.RuneSelf && nameByte(byte(r)):
			b.WriteRune(r)
		case r >= '₀' && r <= '₉':
			b.WriteRune(r - '₀' + '0')
		default:
			return b.String(), end
		}
		end += n
	}
	return b.String(), end
}

// assigned reports whether "=" or ":=" follows at i.
func (p *parser) assigned(i int) bool {
	rest := p.text[p.spaces(i):]
	return strings.HasPrefix(rest, "=") || strings.HasPrefix(rest, ":=")
}

// equals returns the position after the "=" or ":=" at i and the blanks around it.
func (p *parser) equals(i int) int {
	i = p.spaces(i)
	if p.text[i] == ':' {
		i++
	}
	return p.spaces(i + 1)
}

func (p *parser) fail(from, to int, format string, args ...any) error {
	return errorAt(p.text, from, to, format, args...)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
