package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// timestampOrder runs the schedule through timestamp ordering as in Bernstein,
// Hadzilacos and Goodman, section 4.2, each transaction with the place of its first
// operation as its timestamp: a read is too late when a younger transaction has
// written the item, a write when a younger one has read or written it. With thomas, a
// write that only a younger write has overtaken is skipped (Thomas, "A majority
// consensus approach to concurrency control", ACM TODS 4(2), 1979). Timestamps on
// items stay when their transaction aborts.
func (a *analysis) timestampOrder(thomas bool) Verdict {
	class := TimestampOrdering
	if thomas {
		class = ThomasWriteRule
	}
	type stamp struct{ ts, access int } // the youngest, and the access that set it
	read := slices.Repeat([]stamp{{-1, -1}}, len(a.items))
	write := slices.Repeat([]stamp{{-1, -1}}, len(a.items))
	var skipped []string
	for i, x := range a.acc {
		ts := a.members[x.txn].first
		r, w := &read[x.item], &write[x.item]
		late := func(by int) Verdict {
			return no(class, "%s comes too late: %v is older than %v, whose %s is already done",
				a.at(i), a.txn(x.txn), a.txn(a.acc[by].txn), a.at(by))
		}
		switch {
		case !x.write && ts < w.ts:
			return late(w.access)
		case !x.write:
			if ts > r.ts {
				*r = stamp{ts, i}
			}
		case ts < r.ts:
			return late(r.access)
		case ts < w.ts && thomas:
			skipped = append(skipped, a.at(i))
		case ts < w.ts:
			return late(w.access)
		default:
			*w = stamp{ts, i}
		}
	}
	if len(skipped) > 0 {
		return yes(class, "accepted, with writes skipped as obsolete: %s", strings.Join(skipped, ", "))
	}
	return yes(class, "no operation comes too late in the order %s", a.ages())
}

// ages lists the transactions from the oldest.
func (a *analysis) ages() string {
	order := slices.Clone(a.members)
	slices.SortFunc(order, func(x, y member) int { return x.first - y.first })
	out := ""
	for i, m := range order {
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprint(m.txn)
	}
	return out
}
