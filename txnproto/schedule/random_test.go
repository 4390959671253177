package schedule

import (
	"math/rand/v2"
	"time"

	"interleave/sim/event"
)

// mix says what random schedules are made of.
type mix struct {
	txns, items, ops int  // at most; ops for each transaction
	scans            bool // and inserts and deletes
	updates          bool // reads for update
	savepoints       bool
	begins           bool
	aborts           bool
	allEnd           bool // no transaction stays active
	decorated        bool // values, clauses, times, names: nothing that decides a verdict
}

// random draws a schedule.
func random(r *rand.Rand, m mix) *Schedule {
	items := []Item{"x", "y", "z", "k9", "k10"}[:m.items]
	var programs [][]Op
	for t := range 1 + r.IntN(m.txns) {
		programs = append(programs, randomProgram(r, m, Txn(t+1), items))
	}
	s := &Schedule{}
	for {
		var open []int
		for i, p := range programs {
			if len(p) > 0 {
				open = append(open, i)
			}
		}
		if len(open) == 0 {
			break
		}
		i := open[r.IntN(len(open))]
		s.Ops = append(s.Ops, programs[i][0])
		programs[i] = programs[i][1:]
	}
	if m.decorated {
		decorate(r, s, items)
	}
	if err := s.validate(); err != nil {
		panic(err)
	}
	return s
}

func randomProgram(r *rand.Rand, m mix, t Txn, items []Item) []Op {
	var out []Op
	if m.begins && r.IntN(2) == 0 {
		out = append(out, Op{Kind: Begin, Txn: t})
	}
	marks := 0
	for range 1 + r.IntN(m.ops) {
		op := Op{Kind: Read, Txn: t, Item: items[r.IntN(len(items))]}
		switch k := r.IntN(10); {
		case k < 4:
			op.Kind = Write
		case k == 4 && m.updates:
			op.Lock = ForUpdate
		case k == 5 && m.scans:
			op.Kind = []Kind{Insert, Delete}[r.IntN(2)]
		case k == 6 && m.scans:
			op.Kind, op.End = Scan, items[r.IntN(len(items))]
			if CompareItems(op.Item, op.End) > 0 {
				op.Item, op.End = op.End, op.Item
			}
		case k == 7 && m.savepoints:
			op = Op{Kind: Savepoint, Txn: t, Savepoint: "p"}
			marks++
		case k >= 8 && m.savepoints && marks > 0:
			op = Op{Kind: RollbackTo, Txn: t, Savepoint: "p"}
			if r.IntN(4) == 0 {
				op.Kind = Release
				marks--
			}
		}
		out = append(out, op)
	}
	switch k := r.IntN(6); {
	case k == 0 && m.aborts:
		out = append(out, Op{Kind: Abort, Txn: t})
	case k < 4 || m.allEnd:
		out = append(out, Op{Kind: Commit, Txn: t})
	}
	return out
}

func decorate(r *rand.Rand, s *Schedule, items []Item) {
	if r.IntN(3) == 0 {
		s.Name = "S_1"
	}
	for _, it := range items {
		if r.IntN(3) == 0 {
			s.Initial = append(s.Initial, Initial{it, r.Int64N(200) - 100})
		}
	}
	s.Timed = r.IntN(3) == 0
	at := event.Time(0)
	for i := range s.Ops {
		op := &s.Ops[i]
		if s.Timed {
			at = at.Add(time.Duration(r.IntN(3)) * 1500 * time.Microsecond)
			op.At = at
		}
		if (op.Kind == Write || op.Kind == Insert) && r.IntN(2) == 0 {
			op.Value = Expr{{Minus: r.IntN(2) == 0, Number: r.Int64N(50)}}
			if r.IntN(2) == 0 {
				op.Value = append(op.Value, Term{Minus: r.IntN(2) == 0, Item: items[r.IntN(len(items))]})
			}
		}
		if op.Kind == Read && r.IntN(4) == 0 {
			op.Value = Expr{{Minus: r.IntN(2) == 0, Number: r.Int64N(50)}}
		}
		if op.Kind.Reads() && op.Lock == Plain && r.IntN(5) == 0 {
			op.Lock = ForShare
		}
		if op.Kind.Reads() || op.Kind.Writes() {
			op.Wait = WaitClause(r.IntN(4))
			if op.Wait == WaitFor {
				op.Timeout = 1500 * time.Millisecond
			}
		}
	}
}
