package schedule

import (
	"fmt"
	"math"
)

// valueState says what is known of an item's value.
type valueState uint8

const (
	valueUnknown valueState = iota
	valueKnown
	valueAbsent
)

type value struct {
	state valueState
	n     int64
}

// ItemValue is an item's value after the schedule.
type ItemValue struct {
	Item  Item   `json:"item"`
	State string `json:"state"` // known, unknown or absent
	Value int64  `json:"value"` // 0 unless known
}

// values computes what each access read or wrote, as far as the schedule says.
func (a *analysis) values() []value {
	out := make([]value, len(a.acc))
	for i, x := range a.acc {
		op := a.s.Ops[x.step]
		switch {
		case !x.write && x.source == initial:
			out[i] = a.initialValue(x.item)
		case !x.write:
			out[i] = out[x.source]
		case op.Kind == Delete:
			out[i] = value{state: valueAbsent}
		default:
			out[i] = a.eval(out, i, op.Value)
		}
	}
	return out
}

func (a *analysis) initialValue(item int) value {
	for _, in := range a.s.Initial {
		if in.Item == a.items[item] {
			return value{valueKnown, in.Value}
		}
	}
	return value{}
}

// eval computes a sum at access i from what its transaction last read or wrote.
func (a *analysis) eval(known []value, i int, e Expr) value {
	if e == nil {
		return value{}
	}
	sum := value{state: valueKnown}
	for _, t := range e {
		v := value{valueKnown, t.Number}
		if t.Item != "" {
			v = a.seen(known, i, t.Item)
		}
		if v.state != valueKnown {
			return value{}
		}
		if t.Minus {
			if v.n == math.MinInt64 {
				return value{}
			}
			v.n = -v.n
		}
		if v.n > 0 && sum.n > math.MaxInt64-v.n || v.n < 0 && sum.n < math.MinInt64-v.n {
			return value{}
		}
		sum.n += v.n
	}
	return sum
}

// seen returns the value of an item as the transaction of access i last saw it.
func (a *analysis) seen(known []value, i int, item Item) value {
	now := a.acc[i].step
	for j := i - 1; j >= 0; j-- {
		x := a.acc[j]
		if x.txn != a.acc[i].txn || a.items[x.item] != item {
			continue
		}
		w := j
		if !x.write {
			w = x.source
		}
		// What it saw of its own and then rolled back, it has not seen.
		if w != initial && a.acc[w].txn == x.txn && a.acc[w].undone < now {
			continue
		}
		return known[j]
	}
	return value{}
}

// final returns the values after the schedule, or nil when nothing is known of any,
// and notes on reads that say they returned something else.
func (a *analysis) final() (out []ItemValue, notes []string) {
	vals := a.values()
	some := len(a.s.Initial) > 0
	for i, x := range a.acc {
		op := a.s.Ops[x.step]
		some = some || x.write && vals[i].state == valueKnown
		if op.Kind == Read && op.Value != nil {
			said := op.Value[0].Number
			if op.Value[0].Minus {
				said = -said
			}
			if vals[i].state == valueKnown && vals[i].n != said {
				notes = append(notes, fmt.Sprintf("%s says it read %d; with one version of each item it reads %d. The verdicts take the order of the operations, not the value.", a.op(x.step), said, vals[i].n))
			}
		}
	}
	if !some {
		return nil, notes
	}
	for it := range a.items {
		v := a.initialValue(it)
		for i, x := range a.acc {
			if x.write && x.item == it && x.undone == never {
				v = vals[i]
			}
		}
		out = append(out, ItemValue{a.items[it], [...]string{"unknown", "known", "absent"}[v.state], v.n})
	}
	return out, notes
}
