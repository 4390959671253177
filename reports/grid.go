package reports

import (
	"strings"
	"unicode/utf8"
)

// Width is the number of columns that a table is made for.
const Width = 120

// columnGap lies between two columns.
const columnGap = "  "

// grid is a plain aligned table: no frame, a rule under the heading, the first
// left columns aligned to the left and the others to the right.
type grid struct {
	heads [][]string // one or more lines
	left  int        // columns aligned left
	prose bool       // the last one, too
	rows  [][]string
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// widths returns how wide each column is.
func (g *grid) widths() []int {
	widths := make([]int, len(g.heads[0]))
	for _, lines := range [][][]string{g.heads, g.rows} {
		for _, cells := range lines {
			for i, c := range cells {
				widths[i] = max(widths[i], utf8.RuneCountInString(c))
			}
		}
	}
	return widths
}

// width returns how wide the table is.
func (g *grid) width() int {
	n := -utf8.RuneCountInString(columnGap)
	for _, w := range g.widths() {
		n += w + utf8.RuneCountInString(columnGap)
	}
	return n
}

func (g *grid) render() string {
	widths := g.widths()
	var b strings.Builder
	for _, h := range g.heads {
		g.line(&b, widths, h)
	}
	rule := make([]string, len(widths))
	for i, w := range widths {
		rule[i] = strings.Repeat("─", w)
	}
	g.line(&b, widths, rule)
	for _, r := range g.rows {
		g.line(&b, widths, r)
	}
	return b.String()
}

func (g *grid) line(b *strings.Builder, widths []int, cells []string) {
	var l strings.Builder
	for i, c := range cells {
		if i > 0 {
			l.WriteString(columnGap)
		}
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
		if i < g.left || g.prose && i == len(cells)-1 {
			l.WriteString(c + pad)
		} else {
			l.WriteString(pad + c)
		}
	}
	b.WriteString(strings.TrimRight(l.String(), " "))
	b.WriteByte('\n')
}
