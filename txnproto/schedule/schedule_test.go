package schedule

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestTextbook runs the cases of testdata. Each opens with its reference. Commands:
//
//	classify [complete=after|end]   classes it is in and not in, orders, anomalies
//	report [complete=…]             the whole text report
//	json, dot                       the other forms
//	parse                           the schedule printed back, or the error
//	parse-all                       each line by itself
func TestTextbook(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "cases"), func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			opt := Options{Complete: completion(t, d)}
			switch d.Cmd {
			case "parse":
				return parsed(d.Input)
			case "parse-all":
				var out strings.Builder
				for line := range strings.SplitSeq(d.Input, "\n") {
					out.WriteString(parsed(line))
				}
				return out.String()
			}
			s, err := Parse(d.Input)
			if err != nil {
				return err.Error() + "\n"
			}
			c := Classify(s, opt)
			switch d.Cmd {
			case "classify":
				return summary(c)
			case "report":
				return c.Report()
			case "json":
				out, err := c.JSON()
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			case "dot":
				return c.GraphDOT()
			default:
				t.Fatalf("unknown command %s", d.Cmd)
				return ""
			}
		})
	})
}

func completion(t *testing.T, d *datadriven.TestData) Completion {
	how := LeaveActive
	for _, arg := range d.CmdArgs {
		switch arg.String() {
		case "complete=after":
			how = CommitAfterLast
		case "complete=end":
			how = CommitAtEnd
		default:
			t.Fatalf("unknown argument %s", arg)
		}
	}
	return how
}

func parsed(text string) string {
	s, err := Parse(text)
	if err != nil {
		return err.Error() + "\n"
	}
	return s.String() + "\n"
}

// summary is a classification in a few lines.
func summary(c *Classification) string {
	var b strings.Builder
	for _, answer := range []Answer{Yes, No, Unknown} {
		var names []string
		for _, v := range c.Verdicts {
			if v.Holds == answer {
				names = append(names, strings.ReplaceAll(v.Class.String(), "_", "-"))
			}
		}
		if names != nil {
			fmt.Fprintf(&b, "%v: %s\n", answer, strings.Join(names, " "))
		}
	}
	if len(c.Graph.Cycle) > 0 {
		fmt.Fprintf(&b, "cycle: %s\n", arrows(c.Graph.Cycle, " → "))
	}
	for _, o := range []struct {
		name string
		Orders
	}{{"conflict orders", c.ConflictOrders}, {"view orders", c.ViewOrders}} {
		if o.Count > 0 {
			var list []string
			for _, order := range o.List {
				list = append(list, arrows(order, " "))
			}
			fmt.Fprintf(&b, "%s: %d: %s\n", o.name, o.Count, strings.Join(list, "; "))
		}
	}
	var found []string
	for _, n := range c.Anomalies {
		if !slices.Contains(found, n.Code.String()) {
			found = append(found, n.Code.String())
		}
	}
	if found == nil {
		found = []string{"none"}
	}
	fmt.Fprintf(&b, "anomalies: %s\n", strings.Join(found, " "))
	if c.Final != nil {
		b.WriteString("final:")
		for _, v := range c.Final {
			fmt.Fprintf(&b, " %s %s %d", v.Item, v.State, v.Value)
		}
		b.WriteString("\n")
	}
	return b.String()
}
