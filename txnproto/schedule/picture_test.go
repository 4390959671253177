package schedule

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// TestPictures reads the pictures of random schedules back: they are well-formed, all
// they draw lies within the frame, and nodes, arrows and boxes are as many as they
// should be.
func TestPictures(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for range 300 {
		s := random(r, mix{txns: 7, items: 5, ops: 8, scans: true, updates: true, savepoints: true, begins: true, aborts: true, decorated: true})
		c := Classify(s, Options{MaxOrders: 1})
		graph, lanes := c.GraphSVG(), TimelineSVG(s)
		g := elements(t, graph)
		// An arrow is a shaft and a head; a label's backing is a box besides the frame's.
		if g["circle"] != len(c.Graph.Txns) || g["path"] != 2*len(c.Graph.Edges) || g["rect"] != 1+len(c.Graph.Edges) {
			t.Fatalf("%v: %d nodes and %d edges drawn as %v", s, len(c.Graph.Txns), len(c.Graph.Edges), g)
		}
		line := elements(t, lanes)
		if line["rect"] < 1+len(s.Ops) || line["text"] < 2*len(s.Ops) {
			t.Fatalf("%v: %d operations drawn as %v", s, len(s.Ops), line)
		}
		if again := Classify(s, Options{}); lanes != TimelineSVG(s) || graph != again.GraphSVG() {
			t.Fatalf("%v: two pictures of it differ", s)
		}
	}
}

// elements counts the elements of a picture, and fails when it is not well-formed or
// an element lies outside.
func elements(t *testing.T, svg string) map[string]int {
	t.Helper()
	count := map[string]int{}
	var width, height float64
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		e, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		count[e.Name.Local]++
		at := map[string]float64{}
		for _, a := range e.Attr {
			if v, err := strconv.ParseFloat(a.Value, 64); err == nil {
				at[a.Name.Local] = v
			}
		}
		if e.Name.Local == "svg" {
			width, height = at["width"], at["height"]
		}
		x, y := at["x"]+at["cx"]+at["x2"], at["y"]+at["cy"]+at["y2"]
		if !(x >= 0 && y >= 0 && x+at["width"] <= width+0.1 && y+at["height"] <= height+0.1) {
			t.Fatalf("%v lies outside of\n%s", e, svg)
		}
	}
}

// TestTurn compares the power series with package math.
func TestTurn(t *testing.T) {
	for i := range 1001 {
		x := float64(i)/500 - 1
		sin, cos := turn(x)
		if math.Abs(sin-math.Sin(2*math.Pi*x)) > 1e-8 || math.Abs(cos-math.Cos(2*math.Pi*x)) > 1e-8 {
			t.Fatalf("turn(%v) = %v, %v; want %v, %v", x, sin, cos, math.Sin(2*math.Pi*x), math.Cos(2*math.Pi*x))
		}
	}
}

// TestLargest: schedules at the bounds are classified and drawn.
func TestLargest(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	var same, mixed []Op
	for i := range MaxOps {
		op := Op{Kind: Write, Txn: Txn(i % MaxTxns), Item: "x"}
		same = append(same, op)
		op.Item = Item(fmt.Sprint("x", r.IntN(40)))
		if r.IntN(2) == 0 {
			op.Kind = Read
		}
		mixed = append(mixed, op)
	}
	for _, ops := range [][]Op{same, mixed} {
		s, err := New(nil, ops)
		if err != nil {
			t.Fatal(err)
		}
		c := Classify(s, Options{})
		if c.Verdict(ConflictSerializable).Holds != No || c.Verdict(ViewSerializable).Holds == Yes {
			t.Errorf("%v %v", c.Verdict(ConflictSerializable), c.Verdict(ViewSerializable))
		}
		elements(t, c.GraphSVG())
		elements(t, TimelineSVG(s))
	}
}

// TestViewSearchBound: twenty transactions without a view equivalent order are searched
// to the end.
func TestViewSearchBound(t *testing.T) {
	var b strings.Builder
	b.WriteString("r1(x) w2(x) w2(y) r1(y) ")
	for i := 3; i <= MaxViewTxns; i++ {
		fmt.Fprintf(&b, "r%d(z%d) w%d(z%d) ", i, i, i, i)
	}
	s, err := Parse(b.String())
	if err != nil {
		t.Fatal(err)
	}
	if v := Classify(s, Options{}).Verdict(ViewSerializable); v.Holds != No {
		t.Errorf("got %v", v)
	}
}

// TestRunTimeline: the picture of an executed schedule is well-formed, lies in its
// frame, and has a box and a shade for each step and each wait.
func TestRunTimeline(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	for range 200 {
		var marks []RunMark
		waits := 0
		for i := range 1 + r.IntN(40) {
			m := RunMark{Txn: Txn(r.IntN(5)), Text: "w(x=x+1)", Style: Write, Label: strconv.Itoa(i)}
			if r.IntN(4) == 0 {
				m.Waiting, m.Caption = true, "waits for T3 over x"
				waits++
			}
			marks = append(marks, m)
		}
		svg := RunTimelineSVG("Run under 2pl", marks)
		if got := elements(t, svg); got["rect"] < 1+len(marks)+waits || got["text"] < 2*len(marks) {
			t.Fatalf("%d steps with %d waits drawn as %v", len(marks), waits, got)
		}
	}
}

// TestWaitsFor: the cycle of a deadlock is found and drawn in red, and a graph without
// one has none.
func TestWaitsFor(t *testing.T) {
	w := NewWaitsFor([]WaitEdge{{1, 2, "x"}, {2, 3, "y"}, {3, 1, "z"}, {4, 1, "z"}, {1, 2, "q"}})
	if got := arrows(w.Cycle, " "); got != "T1 T2 T3 T1" {
		t.Errorf("cycle %s", got)
	}
	svg, dot := w.SVG(), w.DOT()
	if got := elements(t, svg); got["circle"] != 4 || got["path"] != 8 || strings.Count(svg, red) != 3*3+1 {
		t.Errorf("drawn as %v with %d red parts", got, strings.Count(svg, red))
	}
	if !strings.Contains(dot, `T1 -> T2 [label="x\nq", color=`) || !strings.Contains(dot, `T4 -> T1 [label="z"];`) {
		t.Errorf("%s", dot)
	}
	none := NewWaitsFor([]WaitEdge{{1, 2, "x"}, {2, 3, "y"}})
	if len(none.Cycle) != 0 || strings.Contains(none.SVG(), red) {
		t.Errorf("cycle %v", none.Cycle)
	}
	empty := WaitsFor{}
	elements(t, empty.SVG())
}
