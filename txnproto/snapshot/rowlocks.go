package snapshot

import (
	"strconv"

	"interleave/txnproto"
)

// rowLocks is the controller of 2pl used as a lock table: it is asked about the
// operations that lock, and its answers after a wait come to this package's
// controller, which has its own checks, instead of the host.
type rowLocks struct {
	txnproto.Host
	control  txnproto.Controller
	answered []answer
}

// answer ends a wait for a lock.
type answer struct {
	tx *txnproto.Txn
	v  txnproto.Verdict
}

// newRowLocks makes the lock table with those of this protocol's parameters p that
// are defined by defs, which are 2pl's too.
func newRowLocks(h txnproto.Host, p txnproto.Params, defs []txnproto.Param) *rowLocks {
	m := lockManager()
	given := map[string]string{}
	for i := range defs {
		given[defs[i].Name] = value(p, &defs[i])
	}
	params, err := txnproto.NewParams(m.Name, m.Params, given)
	if err != nil {
		panic("snapshot: " + err.Error()) // they were checked as this protocol's
	}
	l := &rowLocks{Host: h}
	l.control = m.New(l, params)
	return l
}

// Resolve keeps an answer until the call is over.
func (l *rowLocks) Resolve(tx *txnproto.Txn, v txnproto.Verdict) {
	l.answered = append(l.answered, answer{tx, v})
}

// value is the value of a parameter as text.
func value(p txnproto.Params, d *txnproto.Param) string {
	switch d.Kind {
	case txnproto.ParamInt:
		return strconv.Itoa(p.Int(d.Name))
	case txnproto.ParamFloat:
		return strconv.FormatFloat(p.Float(d.Name), 'g', -1, 64)
	case txnproto.ParamBool:
		return strconv.FormatBool(p.Bool(d.Name))
	case txnproto.ParamDuration:
		return p.Duration(d.Name).String()
	case txnproto.ParamChoice:
		return p.Choice(d.Name)
	case txnproto.ParamString:
		return p.String(d.Name)
	default:
		panic("snapshot: unknown kind of parameter " + d.Name)
	}
}
