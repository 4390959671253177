package schedule

// RunMark is one step of an executed schedule, as RunTimelineSVG shows it.
type RunMark struct {
	Txn  Txn
	Text string // in the box
	// Style colours the box as an operation of that kind.
	Style Kind
	// Waiting says that the operation waits from here on, up to the next mark of its
	// transaction, or for good.
	Waiting bool
	Label   string // above the box: the operation's place, or its time
	Caption string // below it: on whom it waits, what it read, why it was aborted
}

// Measures of the executed timeline, in pixels.
const (
	runLane    = 58.0
	runCaption = 10.0 // size of the captions
	runTail    = 24.0 // room at the end, where waits without an end are seen
)

// RunTimelineSVG returns an executed schedule as a picture: one lane a transaction,
// a column for each step, and a shaded bar for as long as a transaction waits. A long
// one goes on in further bands.
func RunTimelineSVG(title string, marks []RunMark) string {
	p := &runTimeline{marks: marks, canvas: &canvas{}}
	for _, m := range marks {
		p.lane(m.Txn)
	}
	p.lay()
	width, y := max(220.0, textWidthOf(title, 15)+float64(2*timePad)), timePad+24
	for _, b := range p.bands {
		width = max(width, b.width+timePad)
	}
	for i, b := range p.bands {
		if i > 0 {
			y += bandGap
		}
		p.draw(b, y, width)
		y += bandHead + float64(runLane*float64(len(p.txns)))
	}
	p.canvas.text(width/2, timePad+2, 15, ink, "bold", title)
	return p.canvas.wrapSVG(width, y+timePad, title+": one lane a transaction, time to the right, waiting shaded")
}

type runTimeline struct {
	marks  []RunMark
	txns   []Txn
	x, w   []float64 // of each mark's column
	bands  []band
	canvas *canvas
}

// boxOf is the width of a mark's box, which its caption may exceed.
func (m *RunMark) boxOf() float64 { return max(textWidthOf(m.Text, boxText)+14, 34) }

// lane is the place of t among the transactions, which are in order of number.
func (p *runTimeline) lane(t Txn) int {
	at := 0
	for at < len(p.txns) && p.txns[at] < t {
		at++
	}
	if at == len(p.txns) || p.txns[at] != t {
		p.txns = append(p.txns, 0)
		copy(p.txns[at+1:], p.txns[at:])
		p.txns[at] = t
	}
	return at
}

func (p *runTimeline) lay() {
	x := timePad + laneName
	b := band{}
	for i, m := range p.marks {
		w := max(m.boxOf(), textWidthOf(m.Caption, runCaption)+6, textWidthOf(m.Label, 11)+4)
		if x+w > bandWidth && i > b.from {
			p.bands = append(p.bands, b)
			b = band{from: i}
			x = timePad + laneName
		}
		p.x, p.w = append(p.x, x), append(p.w, w)
		x += w + boxGap
		b.to, b.width = i+1, x
	}
	if len(p.marks) > 0 {
		b.width += runTail
		p.bands = append(p.bands, b)
	}
}

func (p *runTimeline) draw(b band, y, width float64) {
	c := p.canvas
	top := y + bandHead
	mid := func(t Txn) float64 { return top + float64(runLane*float64(p.lane(t))) + runLane/2 - 5 }
	for i, t := range p.txns {
		if i%2 == 0 {
			c.box(timePad/2, top+float64(runLane*float64(i)), width-timePad, runLane, 4, "#f6f8fa", "none")
		}
		c.text(timePad+laneName/2-8, mid(t), 14, ink, "bold", t.String())
		p.life(b, t, mid(t))
		p.waits(b, t, mid(t))
	}
	for i := b.from; i < b.to; i++ {
		m := &p.marks[i]
		at := p.x[i] + p.w[i]/2
		c.text(at, y+bandHead/2, 11, faint, "normal", m.Label)
		fill, stroke := boxColours(Op{Kind: m.Style})
		if m.Waiting {
			fill, stroke = "#ffffff", "#8250df"
		}
		c.box(at-m.boxOf()/2, mid(m.Txn)-boxHeight/2, m.boxOf(), boxHeight, 5, fill, stroke)
		c.text(at, mid(m.Txn), boxText, ink, "normal", m.Text)
		colour := "#57606a"
		switch {
		case m.Waiting:
			colour = "#8250df"
		case m.Style == Abort:
			colour = red
		}
		c.text(at, mid(m.Txn)+boxHeight/2+9, runCaption, colour, "normal", m.Caption)
	}
}

// life draws the line from a transaction's first mark to its last.
func (p *runTimeline) life(b band, t Txn, y float64) {
	first, last := -1, -1
	for i := range p.marks {
		if p.marks[i].Txn == t {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if from, to, ok := p.within(b, first, last); ok {
		p.canvas.line(from, y, to, y, faint, 2)
	}
}

// waits shades the time from each mark that waits to the transaction's next.
func (p *runTimeline) waits(b band, t Txn, y float64) {
	for i := range p.marks {
		if p.marks[i].Txn != t || !p.marks[i].Waiting {
			continue
		}
		end := len(p.marks)
		for j := i + 1; j < len(p.marks) && end == len(p.marks); j++ {
			if p.marks[j].Txn == t {
				end = j
			}
		}
		if from, to, ok := p.within(b, i, end); ok {
			p.canvas.box(from, y-8, max(to-from, 4), 16, 3, "#e8ddfb", "none")
		}
	}
}

// within is the part of the way from mark i to mark j that lies in the band.
func (p *runTimeline) within(b band, i, j int) (from, to float64, ok bool) {
	if i >= b.to || j < b.from {
		return 0, 0, false
	}
	from, to = timePad+laneName-boxGap, b.width-boxGap/2
	if i >= b.from {
		from = p.x[i] + p.w[i]/2
	}
	if j < b.to {
		to = p.x[j] + p.w[j]/2
	}
	return from, to, true
}
