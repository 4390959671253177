package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"interleave/sim/event"
)

// TestPrintParse: what String prints, Parse reads back.
func TestPrintParse(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for range 3000 {
		s := random(r, mix{txns: 5, items: 5, ops: 6, scans: true, updates: true, savepoints: true, begins: true, aborts: true, decorated: true})
		back, err := Parse(s.String())
		if err != nil {
			t.Fatalf("%s\n%v", s, err)
		}
		if d := cmp.Diff(s, back); d != "" {
			t.Fatalf("%s\n%s", s, d)
		}
	}
}

// FuzzParse: no text makes Parse panic, what it accepts comes back from String the
// same, and its errors point into the text.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"r1(x) w2(x) c1 c2", "R1(X); W2(Y); C1;", "r1x, w2x", "w1(A);r2(A)", "b1 a1", "w1(x=5)", "r1(x) u", "r1[a..c]",
		"init x=10 y=-20; i1(z=x+y-3) d1(x) s1(p) rb1(p) rel1(p)", "S = r₁(x) w_2[y, 3] ... r_{3}(z)", "10ms: r1(x) nowait\n1.5s: u2(x) skip locked",
		"T1: R(A), W(A) T2: Commit", "r1(x) for update wait 50ms # done\n-- more", "r1xr2y", "r1(x", "10: ", "r1[a…c] share", "x=5 x=6",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			checkSyntaxError(t, text, err)
			return
		}
		back, err := Parse(s.String())
		if err != nil {
			t.Fatalf("%q is printed as %q, which is refused: %v", text, s, err)
		}
		if d := cmp.Diff(s, back); d != "" {
			t.Fatalf("%q is printed as %q, which is read otherwise:\n%s", text, s, d)
		}
		if len(s.Ops) < 60 {
			Classify(s, Options{MaxOrders: 1}).Report()
		}
	})
}

func checkSyntaxError(t *testing.T, text string, err error) {
	t.Helper()
	var e *SyntaxError
	if !errors.As(err, &e) {
		t.Fatalf("%q: the error %v is no SyntaxError", text, err)
	}
	if !utf8.ValidString(text) {
		return
	}
	lines := strings.Split(text, "\n")
	if e.Line < 1 || e.Line > len(lines) {
		t.Fatalf("%q: line %d of %d", text, e.Line, len(lines))
	}
	at := []rune(lines[e.Line-1])
	if e.Col < 1 || e.Col > len(at)+1 || !strings.HasPrefix(string(at[e.Col-1:]), e.Token) {
		t.Fatalf("%q: token %q is not at line %d, column %d", text, e.Token, e.Line, e.Col)
	}
}

// TestLongLine: the error about a long line shows the part around the token.
func TestLongLine(t *testing.T) {
	for _, c := range []struct {
		before, after int // operations
		want          string
	}{
		{100, 100, "  …x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) q1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(…\n" +
			"                                                ^~"},
		{0, 100, "  q1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) …\n" +
			"  ^~"},
		{100, 0, "  …r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) r1(x) q1(x) \n" +
			"                                                                                       ^~"},
	} {
		_, err := Parse(strings.Repeat("r1(x) ", c.before) + "q1(x) " + strings.Repeat("r1(x) ", c.after))
		if err == nil {
			t.Fatal("accepted")
		}
		_, got, _ := strings.Cut(err.Error(), "\n")
		if got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
	_, err := Parse("r1(x) \x1b[2J q1(x)\x00")
	if want := "  r1(x) ·[2J q1(x)·\n        ^"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got\n%v\nwant it to end in\n%s", err, want)
	}
}

// TestRefusals: what New refuses of operations made by a program.
func TestRefusals(t *testing.T) {
	x := Op{Kind: Read, Txn: 1, Item: "x"}
	for _, c := range []struct {
		ops  []Op
		want string
	}{
		{[]Op{{Kind: Read, Txn: 1}}, "no name of an item"},
		{[]Op{{Kind: Read, Txn: -1, Item: "x"}}, "transaction number -1"},
		{[]Op{x, {Kind: Begin, Txn: 1}}, "operation 2: T1 has already begun"},
		{[]Op{{Kind: Abort, Txn: 1}, x}, "operation 2: T1 has already aborted"},
		{[]Op{{Kind: Scan, Txn: 1, Item: "c", End: "a"}}, "the range c..a is empty"},
		{[]Op{{Kind: Write, Txn: 1, Item: "x", Lock: ForShare}}, "belongs to a read"},
		{[]Op{{Kind: Commit, Txn: 1, Wait: NoWait}}, "belongs to a read or a write"},
		{[]Op{{Kind: Read, Txn: 1, Item: "x", Wait: WaitFor}}, "want a time above 0"},
		{[]Op{{Kind: Write, Txn: 1, Item: "x", Value: Expr{{Item: "1y"}}}}, "cannot stand in a value"},
		{[]Op{{Kind: Read, Txn: 1, Item: "x", At: 5}, x}, "times may not go back"},
		{[]Op{{Kind: Read, Txn: 1, Item: "x", At: event.Time(MaxTime) + 1}}, "a schedule takes at most 24h"},
		{make([]Op, MaxOps+1), "at most 1000 operations"},
		{nil, ""},
	} {
		_, err := New(nil, c.ops)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got error %v, want %q", c.ops[:min(len(c.ops), 3)], err, c.want)
		}
	}
	var many []Op
	for i := range MaxTxns + 1 {
		many = append(many, Op{Kind: Commit, Txn: Txn(i)})
	}
	if _, err := New(nil, many); err == nil || !strings.Contains(err.Error(), "at most 64") {
		t.Errorf("%d transactions: got error %v", len(many), err)
	}
	var wide []Op
	for i := range 400 {
		wide = append(wide, Op{Kind: Write, Txn: 1, Item: Item(fmt.Sprint("x", i))})
	}
	for range 10 {
		wide = append(wide, Op{Kind: Scan, Txn: 2, Item: "x0", End: "x399"})
	}
	if _, err := New(nil, wide); err == nil || !strings.Contains(err.Error(), "operation 410: the operations up to here touch more than 4000 items") {
		t.Errorf("scans of 4400 items: got error %v", err)
	}
	if s, err := New([]Initial{{"x", 1}}, []Op{x}); err != nil || s.String() != "init x=1; r1(x)" {
		t.Errorf("got %v, %v", s, err)
	}
}

// TestItemOrder: ranges take numbers in names by their size.
func TestItemOrder(t *testing.T) {
	names := []Item{"1", "2", "010", "10", "X1", "a", "a1", "a2", "a2b", "a10", "b"}
	for i, x := range names {
		for j, y := range names {
			if got := CompareItems(x, y); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("CompareItems(%s, %s) = %d", x, y, got)
			}
		}
	}
}
