// Package predicate is two-phase locking with predicate locks and without waiting:
// a lock covers the keys that the operation names, there or not.
package predicate

import (
	"slices"
	"strconv"

	"interleave/txnproto"
)

func init() {
	txnproto.Register(&txnproto.Protocol{
		Name: "predicate-nowait", Family: "two-phase locking", Promise: "serializable",
		Help:         "predicate locks; aborts where it would have to wait",
		Source:       "Eswaran, Gray, Lorie, Traiger 1976",
		DropReadOnly: true,
		New:          func(txnproto.Host, txnproto.Params) txnproto.Controller { return &controller{} },
	})
}

// lock keeps others from writing the keys [lo, hi), or, exclusive, from reading them.
type lock struct {
	owner     txnproto.TxnID
	lo, hi    txnproto.Key
	exclusive bool
}

func (l *lock) conflicts(o *lock) bool {
	return l.owner != o.owner && (l.exclusive || o.exclusive) && l.lo < o.hi && o.lo < l.hi
}

type controller struct{ locks []lock }

// Access locks what op names, or aborts.
func (c *controller) Access(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	l := lock{tx.ID, op.Key, op.Key + 1, op.Kind.Writes() || op.Kind == txnproto.ReadForUpdate}
	if op.Kind == txnproto.Scan {
		l.hi = op.End
	}
	for i := range c.locks {
		if c.locks[i].conflicts(&l) {
			return txnproto.Abort(txnproto.NoWait)
		}
	}
	c.locks = append(c.locks, l)
	return txnproto.Granted
}

// Prepare has nothing to find out: everything is locked.
func (c *controller) Prepare(*txnproto.Txn) txnproto.Verdict { return txnproto.Granted }

// Finish unlocks.
func (c *controller) Finish(tx *txnproto.Txn, _ txnproto.Outcome) {
	c.locks = slices.DeleteFunc(c.locks, func(l lock) bool { return l.owner == tx.ID })
}

// Recover locks again what a transaction that an earlier leader prepared will write.
func (c *controller) Recover(tx *txnproto.Txn) {
	for _, p := range tx.Puts {
		c.locks = append(c.locks, lock{tx.ID, p.Key, p.Key + 1, true})
	}
}

// Leftover tells the conformance suite what is kept.
func (c *controller) Leftover() string {
	if len(c.locks) == 0 {
		return ""
	}
	return strconv.Itoa(len(c.locks)) + " locks"
}
