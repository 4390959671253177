// Package layout lays out lines of reports, whose widths are counted in characters.
package layout

import (
	"strings"
	"unicode/utf8"
)

// Pad fills s with blanks on the right up to width characters.
func Pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// Hang returns the words of s after lead, in lines of at most width characters; those
// after the first begin under its end. A word that is too long has a line of its own.
func Hang(lead, s string, width int) []string {
	hang := strings.Repeat(" ", utf8.RuneCountInString(lead))
	var lines []string
	line, empty := lead, true
	for _, w := range strings.Fields(s) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(w) > width {
			lines = append(lines, line)
			line, empty = hang, true
		}
		if !empty {
			line += " "
		}
		line += w
		empty = false
	}
	return append(lines, line)
}
