package reports

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// formatCount writes 1234567 as 1,234,567.
func formatCount(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// formatTime writes a duration with three significant digits and its unit.
func formatTime(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d == 0:
		return "0"
	case d < time.Microsecond:
		return strconv.FormatInt(ns, 10) + " ns"
	case d < time.Millisecond:
		return digits(float64(ns)/1e3) + " µs"
	case d < time.Second:
		return digits(float64(ns)/1e6) + " ms"
	case d < time.Hour:
		return digits(float64(ns)/1e9) + " s"
	default:
		return digits(float64(ns)/3.6e12) + " h"
	}
}

// formatOffset writes by how much something is ahead, with its sign: behind is minus.
func formatOffset(d time.Duration) string {
	switch {
	case d > 0:
		return "+" + formatTime(int64(d))
	case d < 0:
		return "−" + formatTime(int64(-d))
	default:
		return "0"
	}
}

// digits writes x with three significant digits, all of them before the point
// when there are more.
func digits(x float64) string {
	switch a := math.Abs(x); {
	case a >= 99.95:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	default:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
}

// formatRate writes a rate per second.
func formatRate(x float64) string {
	if x >= 1000 {
		return formatCount(uint64(math.Floor(x + 0.5)))
	}
	return digits(x)
}

// formatRatio writes a number between 0 and 1.
func formatRatio(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 0.001:
		return "<0.001"
	default:
		return strconv.FormatFloat(x, 'f', 3, 64)
	}
}

// formatShare writes a share in percent.
func formatShare(x float64) string {
	switch {
	case x == 0:
		return "0 %"
	case x < 0.001:
		return "<0.1 %"
	case x < 0.0995:
		return strconv.FormatFloat(x*100, 'f', 1, 64) + " %"
	default:
		return strconv.FormatFloat(x*100, 'f', 0, 64) + " %"
	}
}

// plural writes a count with its noun.
func plural(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return formatCount(n) + " " + many
}

// wrap breaks text between words so that no line is longer than width; lines
// after the first begin with indent.
func wrap(text string, width int, indent string) string {
	var b strings.Builder
	used := 0
	for _, word := range strings.Split(text, " ") {
		n := len([]rune(word))
		switch {
		case used == 0:
		case used+1+n > width:
			b.WriteString("\n" + indent)
			used = len(indent)
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String()
}
