package schedule

import (
	"fmt"
	"strconv"
	"time"
)

// Measures of the timeline, in pixels.
const (
	laneHeight = 44.0
	boxHeight  = 28.0
	boxGap     = 8.0
	boxText    = 13.0
	laneName   = 56.0 // width of the column of names
	bandWidth  = 1100 // a longer schedule goes on in a band below
	bandHead   = 26.0 // the row of step numbers
	bandGap    = 18.0
	timePad    = 20.0
)

// TimelineSVG returns the schedule as a picture: one lane a transaction, its
// operations as boxes in the order of the schedule, numbered by step, with their times
// when it has them. A long schedule continues in further bands.
func TimelineSVG(s *Schedule) string {
	p := &timeline{s: s, txns: s.Txns(), canvas: &canvas{}}
	p.lay()
	name := "Schedule"
	if s.Name != "" {
		name += " " + s.Name
	}
	band := bandHead + float64(laneHeight*float64(len(p.txns)))
	if s.Timed {
		band += bandHead
	}
	width, y := 220.0, timePad+24
	for _, b := range p.bands {
		width = max(width, b.width+timePad)
	}
	for i, b := range p.bands {
		if i > 0 {
			y += bandGap
		}
		p.draw(b, y, width)
		y += band
	}
	p.canvas.text(width/2, timePad+2, 15, ink, "bold", name)
	return p.canvas.wrapSVG(width, y+timePad, name+": one lane a transaction, time to the right")
}

type timeline struct {
	s      *Schedule
	txns   []Txn
	x, w   []float64 // of each operation's box
	bands  []band
	canvas *canvas
}

// band is a run of operations that stand in one row of lanes.
type band struct {
	from, to int // operations
	width    float64
}

// lay gives each operation a column as wide as its text, and starts a new band when
// the row is full.
func (p *timeline) lay() {
	x := timePad + laneName
	b := band{}
	for i, op := range p.s.Ops {
		w := max(textWidthOf(short(op), boxText)+14, 34)
		if p.stamped(i) {
			w = max(w, textWidthOf(time.Duration(op.At).String(), 11)+4)
		}
		if x+w > bandWidth && i > b.from {
			p.bands = append(p.bands, b)
			b = band{from: i}
			x = timePad + laneName
		}
		p.x, p.w = append(p.x, x), append(p.w, w)
		x += w + boxGap
		b.to, b.width = i+1, x
	}
	if len(p.s.Ops) > 0 {
		p.bands = append(p.bands, b)
	}
}

// stamped reports whether operation i is the first of its time.
func (p *timeline) stamped(i int) bool {
	return p.s.Timed && (i == 0 || p.s.Ops[i-1].At != p.s.Ops[i].At)
}

func (p *timeline) draw(b band, y, width float64) {
	c := p.canvas
	top := y + bandHead
	if p.s.Timed {
		top += bandHead
	}
	lane := func(t Txn) float64 {
		for i, u := range p.txns {
			if u == t {
				return top + float64(laneHeight*(float64(i)+0.5))
			}
		}
		panic(fmt.Sprintf("schedule: %v has no lane", t))
	}
	for i, t := range p.txns {
		if i%2 == 0 {
			c.box(timePad/2, top+float64(laneHeight*float64(i)), width-timePad, laneHeight, 4, "#f6f8fa", "none")
		}
		c.text(timePad+laneName/2-8, lane(t), 14, ink, "bold", t.String())
		p.life(b, t, lane(t))
	}
	for i := b.from; i < b.to; i++ {
		op := p.s.Ops[i]
		mid := p.x[i] + p.w[i]/2
		c.text(mid, y+bandHead/2, 11, faint, "normal", strconv.Itoa(i+1))
		if p.stamped(i) {
			c.text(mid, y+bandHead*1.4, 11, ink, "normal", time.Duration(op.At).String())
		}
		fill, stroke := boxColours(op)
		c.box(p.x[i], lane(op.Txn)-boxHeight/2, p.w[i], boxHeight, 5, fill, stroke)
		c.text(mid, lane(op.Txn), boxText, ink, "normal", short(op))
	}
}

// life draws the line of a transaction from its first to its last operation, as far
// as it lies in the band.
func (p *timeline) life(b band, t Txn, y float64) {
	first, last := -1, -1
	for i, op := range p.s.Ops {
		if op.Txn == t {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first >= b.to || last < b.from {
		return
	}
	x1, x2 := timePad+laneName-boxGap, b.width-boxGap
	if first >= b.from {
		x1 = p.x[first]
	}
	if last < b.to {
		x2 = p.x[last]
	}
	p.canvas.line(x1, y, x2, y, faint, 2)
}

// boxColours tells reads, writes and ends apart by fill and frame.
func boxColours(op Op) (fill, stroke string) {
	switch op.Kind {
	case Read, Scan:
		return "#ddf4ff", "#0969da"
	case Write, Insert, Delete:
		return "#fff1d6", "#9a6700"
	case Commit:
		return "#dafbe1", green
	case Abort, RollbackTo:
		return "#ffebe9", red
	case Begin, Savepoint, Release:
		return "#ffffff", faint
	default:
		panic(fmt.Sprintf("schedule: unknown kind %d", op.Kind))
	}
}
