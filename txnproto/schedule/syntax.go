package schedule

import (
	"fmt"
	"strings"
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
func (e *SyntaxError) Error() string {
	var caret strings.Builder
	col := 1
	for _, r := range e.source {
		if col == e.Col {
			break
		}
		if r == '\t' {
			caret.WriteByte('\t')
		} else {
			caret.WriteByte(' ')
		}
		col++
	}
	caret.WriteByte('^')
	if n := utf8.RuneCountInString(e.Token); n > 1 {
		caret.WriteString(strings.Repeat("~", n-1))
	}
	return fmt.Sprintf("line %d, column %d: %s\n  %s\n  %s", e.Line, e.Col, e.Msg, e.source, caret.String())
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
