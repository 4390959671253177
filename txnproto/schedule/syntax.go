package schedule

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SyntaxError says what in a text is no schedule, and where.
type SyntaxError struct {
	Line, Col int    // from 1; Col counts characters
	Token     string // what stands there, empty at the end of the text
	Msg       string // what is wrong, and what was expected
	source    string // the line's text
}

// Error returns the position, what is wrong, and the line with the token
// underlined:
//
//	line 1, column 7: unknown operation "q": expected r, w, …
//	  r1(x) q2(x)
//	        ^~~~~
//
// Of a long line the part around the token is shown; what cannot be printed is shown
// as a dot.
func (e *SyntaxError) Error() string {
	shown, at := excerpt([]rune(e.source), e.Col-1)
	var caret strings.Builder
	for _, r := range shown[:at] {
		if r == '\t' {
			caret.WriteByte('\t')
		} else {
			caret.WriteByte(' ')
		}
	}
	caret.WriteByte('^')
	if n := min(utf8.RuneCountInString(e.Token), len(shown)-at); n > 1 {
		caret.WriteString(strings.Repeat("~", n-1))
	}
	return fmt.Sprintf("line %d, column %d: %s\n  %s\n  %s", e.Line, e.Col, e.Msg, string(shown), caret.String())
}

// maxExcerpt is how many characters of a line an error shows.
const maxExcerpt = 90

// excerpt returns the part of a line around its place at, and the place in that part.
func excerpt(line []rune, at int) ([]rune, int) {
	at = min(at, len(line))
	from, to := 0, len(line)
	if len(line) > maxExcerpt {
		from = max(0, min(at-maxExcerpt/2, len(line)-maxExcerpt))
		to = from + maxExcerpt
	}
	shown := slices.Clone(line[from:to])
	for i, r := range shown {
		if r != '\t' && !unicode.IsPrint(r) {
			shown[i] = '·'
		}
	}
	at -= from
	if to < len(line) {
		shown = append(shown, '…')
	}
	if from > 0 {
		shown = append([]rune{'…'}, shown...)
		at++
	}
	return shown, at
}

// errorAt makes the error for the token text[from:to].
func errorAt(text string, from, to int, format string, args ...any) *SyntaxError {
	start := strings.LastIndexByte(text[:from], '\n') + 1
	stop := len(text)
	if i := strings.IndexByte(text[from:], '\n'); i >= 0 {
		stop = from + i
	}
	return &SyntaxError{
		Line:   strings.Count(text[:from], "\n") + 1,
		Col:    utf8.RuneCountInString(text[start:from]) + 1,
		Token:  text[from:min(to, stop)],
		Msg:    fmt.Sprintf(format, args...),
		source: strings.TrimRight(text[start:stop], "\r"),
	}
}
