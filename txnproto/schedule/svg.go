package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Colours of the pictures, all legible on white.
const (
	ink    = "#1f2328"
	faint  = "#8c959f"
	red    = "#b3261e"
	green  = "#1a7f37"
	sans   = "ui-sans-serif, 'DejaVu Sans', Arial, sans-serif"
	glyphW = 0.62 // width of a character, in font sizes: a little more than most have
)

// canvas collects the elements of an SVG picture.
type canvas struct{ b strings.Builder }

// wrapSVG puts the head and the foot around a picture's elements.
func (c *canvas) wrapSVG(width, height float64, title string) string {
	w, h := num(width), num(height)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img" font-family="%s">
<title>%s</title>
<rect width="%s" height="%s" fill="#ffffff"/>
%s</svg>
`, w, h, w, h, sans, escape(title), w, h, c.b.String())
}

// num writes a coordinate with one decimal at most: what an eye can tell, and the
// same digits on every processor.
func num(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}

func textWidthOf(s string, size float64) float64 {
	return float64(float64(utf8.RuneCountInString(s)) * float64(glyphW*size))
}

// text writes one line centred at x, its middle at y.
func (c *canvas) text(x, y, size float64, colour, weight, s string) {
	fmt.Fprintf(&c.b, `<text x="%s" y="%s" font-size="%s" fill="%s" font-weight="%s" text-anchor="middle">%s</text>`+"\n",
		num(x), num(y+float64(size*0.35)), num(size), colour, weight, escape(s))
}

func (c *canvas) line(x1, y1, x2, y2 float64, colour string, width float64) {
	fmt.Fprintf(&c.b, `<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s" stroke-width="%s"/>`+"\n",
		num(x1), num(y1), num(x2), num(y2), colour, num(width))
}

func (c *canvas) box(x, y, w, h, radius float64, fill, stroke string) {
	fmt.Fprintf(&c.b, `<rect x="%s" y="%s" width="%s" height="%s" rx="%s" fill="%s" stroke="%s"/>`+"\n",
		num(x), num(y), num(w), num(h), num(radius), fill, stroke)
}
