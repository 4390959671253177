package schedule

import (
	"fmt"
	"math"
)

// Measures of the precedence graph's picture, in pixels.
const (
	nodeRadius = 24.0
	labelSize  = 12.0
	labelLine  = 15.0
	graphTitle = 34.0 // height of the heading
	graphPad   = 24.0
	// maxLabel bounds the lines at an edge; the rest is counted.
	maxLabel = 3
	// maxCrossed is the number of edges up to which labels keep clear of them; beyond,
	// there is no clear place.
	maxCrossed = 120
)

type point struct{ x, y float64 }

func (p point) plus(q point) point { return point{p.x + q.x, p.y + q.y} }

func (p point) minus(q point) point { return point{p.x - q.x, p.y - q.y} }

func (p point) times(k float64) point { return point{float64(p.x * k), float64(p.y * k)} }

func (p point) length() float64 { return math.Sqrt(float64(p.x*p.x) + float64(p.y*p.y)) }

// unit returns p at length 1; p is not zero, since no two nodes share a place.
func (p point) unit() point { return p.times(1 / p.length()) }

// left returns p turned by a quarter to the left of its way, as seen on the screen.
func (p point) left() point { return point{p.y, -p.x} }

// area is a rectangle by its corners.
type area struct{ x1, y1, x2, y2 float64 }

func around(p point, w, h float64) area {
	return area{p.x - w/2, p.y - h/2, p.x + w/2, p.y + h/2}
}

func (a area) meets(b area) bool {
	return a.x1 < b.x2 && b.x1 < a.x2 && a.y1 < b.y2 && b.y1 < a.y2
}

func (a area) union(b area) area {
	return area{min(a.x1, b.x1), min(a.y1, b.y1), max(a.x2, b.x2), max(a.y2, b.y2)}
}

// GraphSVG returns the precedence graph as a picture: the transactions on a circle in
// order of their numbers, an arrow for each edge with its items and kinds, the
// shortest cycle in red.
func (c *Classification) GraphSVG() string { return drawGraph(&c.Graph, "Precedence graph") }

func drawGraph(g *Graph, title string) string {
	p := &graphPicture{g: g, title: title, at: circle(len(g.Txns), radiusFor(g))}
	for _, n := range p.at {
		p.taken = append(p.taken, around(n, 2*nodeRadius, 2*nodeRadius))
	}
	// Curves first, all of them: a label may not lie on a later arrow's head.
	for i := range g.Edges {
		z := p.curve(&g.Edges[i])
		p.curves = append(p.curves, z)
		p.taken = append(p.taken, around(z.c, 16, 16))
	}
	for i := range g.Edges {
		p.label(i)
	}
	return p.draw()
}

// radiusFor gives every node of the circle room for its neighbours' labels.
func radiusFor(g *Graph) float64 {
	widest := 40.0
	for i := range g.Edges {
		for _, l := range shortLabels(&g.Edges[i]) {
			widest = max(widest, textWidthOf(l, labelSize))
		}
	}
	n := float64(len(g.Txns))
	// Neighbours stand a label and two arrowheads apart; many arrows need more room.
	return max(70, widest/2+60, float64(n*(widest+2*nodeRadius+50))/6.2, float64(6*float64(len(g.Edges))))
}

// shortLabels are an edge's labels, the rest counted when there are many.
func shortLabels(e *Edge) []string {
	l := e.labels()
	if len(l) > maxLabel {
		l = append(l[:maxLabel-1:maxLabel-1], fmt.Sprintf("and %d more", len(l)-maxLabel+1))
	}
	return l
}

// circle returns n places on a circle: from the top clockwise, two side by side.
func circle(n int, radius float64) []point {
	out := make([]point, n)
	first := -0.25
	switch n {
	case 1:
		return out
	case 2:
		first = 0.5
	}
	for i := range out {
		sin, cos := turn(first + float64(i)/float64(n))
		out[i] = point{float64(radius * cos), float64(radius * sin)}
	}
	return out
}

// turn returns sine and cosine of t whole turns. It is the power series after taking
// the angle to an eighth of a turn, to about 1e-10; the functions of package math
// differ between processors, and pictures do not.
func turn(t float64) (sin, cos float64) {
	t -= math.Floor(t)
	quarter := math.Floor(float64(t*4) + 0.5)
	x := float64((t - quarter/4) * (2 * math.Pi))
	x2 := float64(x * x)
	sin = float64(x * (1 - float64(x2/6*(1-float64(x2/20*(1-float64(x2/42*(1-float64(x2/72*(1-x2/110))))))))))
	cos = 1 - float64(x2/2*(1-float64(x2/12*(1-float64(x2/30*(1-float64(x2/56*(1-x2/90))))))))
	switch quarter {
	case 1:
		return cos, -sin
	case 2:
		return -sin, -cos
	case 3:
		return -cos, sin
	default:
		return sin, cos
	}
}

// bezier is a quadratic curve from a to c with control point b.
type bezier struct{ a, b, c point }

func (z bezier) at(t float64) point {
	u := 1 - t
	return z.a.times(float64(u * u)).plus(z.b.times(float64(2 * float64(u*t)))).plus(z.c.times(float64(t * t)))
}

type graphPicture struct {
	g      *Graph
	title  string
	at     []point
	curves []bezier
	labels []area
	taken  []area
}

// curve bends an edge to the left of its way, so that two opposite edges part.
func (p *graphPicture) curve(e *Edge) bezier {
	from, to := p.place(e.From), p.place(e.To)
	d := to.minus(from)
	bend := float64(d.length() * 0.10)
	if p.g.Edge(e.To, e.From) != nil {
		bend = max(float64(d.length()*0.22), 34)
	}
	b := from.plus(to).times(0.5).plus(d.unit().left().times(bend))
	// The ends stand off the nodes, in the direction of the control point; the
	// head's end a little further.
	return bezier{
		from.plus(b.minus(from).unit().times(nodeRadius + 1)), b,
		to.plus(b.minus(to).unit().times(nodeRadius + 3)),
	}
}

func (p *graphPicture) place(t Txn) point {
	for i, u := range p.g.Txns {
		if u == t {
			return p.at[i]
		}
	}
	panic(fmt.Sprintf("schedule: %v is not in the graph", t))
}

// label finds the place for an edge's label: the one along its curve that covers least
// of what is there, the middle if none is better.
func (p *graphPicture) label(i int) {
	lines := shortLabels(&p.g.Edges[i])
	w, h := 0.0, float64(labelLine*float64(len(lines)))
	for _, l := range lines {
		w = max(w, textWidthOf(l, labelSize))
	}
	z := p.curves[i]
	var best area
	cost := -1
	for _, t := range []float64{0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74} {
		here := around(z.at(t), w+6, h+2)
		n := 0
		for _, o := range p.taken {
			if here.meets(o) {
				n += 4
			}
		}
		if len(p.curves) <= maxCrossed {
			for j, o := range p.curves {
				if j != i && crosses(o, here) {
					n++
				}
			}
		}
		if cost < 0 || n < cost {
			best, cost = here, n
		}
	}
	p.labels = append(p.labels, best)
	p.taken = append(p.taken, best)
}

func crosses(z bezier, a area) bool {
	for k := range 33 {
		q := z.at(float64(k) / 32)
		if a.meets(around(q, 4, 4)) {
			return true
		}
	}
	return false
}

func (p *graphPicture) draw() string {
	all := area{-88, -nodeRadius, 88, nodeRadius} // room for the heading
	for _, a := range p.taken {
		all = all.union(a)
	}
	for _, z := range p.curves {
		for k := range 17 {
			all = all.union(around(z.at(float64(k)/16), 6, 6))
		}
	}
	shift := point{graphPad - all.x1, graphPad + graphTitle - all.y1}
	width, height := all.x2-all.x1+2*graphPad, all.y2-all.y1+2*graphPad+graphTitle
	c := &canvas{}
	c.text(width/2, graphPad+2, 15, ink, "bold", p.title)
	for i := range p.g.Edges {
		e, z := &p.g.Edges[i], p.curves[i]
		colour, stroke := ink, 1.4
		if p.g.onCycle(e) {
			colour, stroke = red, 2
		}
		c.arrow(bezier{z.a.plus(shift), z.b.plus(shift), z.c.plus(shift)}, colour, stroke)
	}
	for i := range p.g.Edges {
		e, l := &p.g.Edges[i], p.labels[i]
		colour := ink
		if p.g.onCycle(e) {
			colour = red
		}
		c.box(l.x1+shift.x, l.y1+shift.y, l.x2-l.x1, l.y2-l.y1, 3, "#ffffff", "none")
		for k, s := range shortLabels(e) {
			c.text((l.x1+l.x2)/2+shift.x, l.y1+1+shift.y+float64(labelLine*(float64(k)+0.5)), labelSize, colour, "normal", s)
		}
	}
	for i, t := range p.g.Txns {
		n := p.at[i].plus(shift)
		fmt.Fprintf(&c.b, `<circle cx="%s" cy="%s" r="%s" fill="#eef2f7" stroke="%s" stroke-width="1.5"/>`+"\n", num(n.x), num(n.y), num(nodeRadius), ink)
		c.text(n.x, n.y, 15, ink, "bold", t.String())
	}
	return c.wrapSVG(width, height, p.title+" of "+arrows(p.g.Txns, ", "))
}

// arrow draws a curve with a head at its end.
func (c *canvas) arrow(z bezier, colour string, stroke float64) {
	const long, half = 11.0, 4.5
	back := z.b.minus(z.c).unit()
	base := z.c.plus(back.times(long))
	side := back.left().times(half)
	l, r := base.plus(side), base.minus(side)
	fmt.Fprintf(&c.b, `<path d="M%s %s Q%s %s %s %s" fill="none" stroke="%s" stroke-width="%s"/>`+"\n",
		num(z.a.x), num(z.a.y), num(z.b.x), num(z.b.y), num(base.x), num(base.y), colour, num(stroke))
	fmt.Fprintf(&c.b, `<path d="M%s %s L%s %s L%s %s Z" fill="%s"/>`+"\n",
		num(z.c.x), num(z.c.y), num(l.x), num(l.y), num(r.x), num(r.y), colour)
}
