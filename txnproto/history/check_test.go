package history

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestHistories checks the hand-written histories. The verdict is the output.
//
//	check promised=LEVEL [real-time] [unfinished]
func TestHistories(t *testing.T) {
	datadriven.Walk(t, "testdata/histories", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "check" {
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			promised, realTime, unfinished := Serializable, false, false
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "promised":
					l, err := ParseLevel(a.Vals[0])
					if err != nil {
						d.Fatalf(t, "%v", err)
					}
					promised = l
				case "real-time":
					realTime = true
				case "unfinished":
					unfinished = true
				default:
					d.Fatalf(t, "unknown argument %q", a.Key)
				}
			}
			h, err := parseHistory(d.Input)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			opt := h.options(promised)
			opt.RealTime = realTime
			r := NewRecorder(opt)
			for i := range h.txns {
				h.txns[i].feed(r)
			}
			if unfinished {
				r.MarkUnfinished()
			}
			res := r.Check()
			var kept []string
			for _, l := range Levels() {
				if res.Keeps(l) {
					kept = append(kept, l.String())
				}
			}
			return fmt.Sprintf("%skeeps: %s\nverdict: %s\n", res, strings.Join(kept, ", "), res.Verdict())
		})
	})
}
