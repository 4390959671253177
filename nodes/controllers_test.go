package nodes

import (
	"fmt"

	"interleave/txnproto"
)

// testLocks is strict two-phase locking with exclusive locks only and wait-die:
// an older attempt waits for a younger one, a younger one dies.
type testLocks struct {
	h     txnproto.Host
	locks map[txnproto.Key]*testLock
	held  map[txnproto.TxnID][]txnproto.Key
	waits map[txnproto.TxnID]txnproto.Key
	free  []*testLock
	lists [][]txnproto.Key
}

type testLock struct {
	owner *txnproto.Txn
	id    txnproto.TxnID
	queue []*txnproto.Txn
}

func newTestLocks(h txnproto.Host, _ txnproto.Params) txnproto.Controller {
	return &testLocks{
		h: h, locks: map[txnproto.Key]*testLock{}, held: map[txnproto.TxnID][]txnproto.Key{},
		waits: map[txnproto.TxnID]txnproto.Key{},
	}
}

func (c *testLocks) lock(tx *txnproto.Txn, k txnproto.Key) txnproto.Verdict {
	l := c.locks[k]
	if l == nil {
		if n := len(c.free); n > 0 {
			l = c.free[n-1]
			c.free = c.free[:n-1]
		} else {
			l = &testLock{}
		}
		c.locks[k] = l
		c.grant(l, tx, k)
		return txnproto.Granted
	}
	if l.id == tx.ID {
		return txnproto.Granted
	}
	// Wait-die against the owner and all that wait, so that who waits is always
	// older than who is before it.
	young := l.owner.FirstTS
	for _, q := range l.queue {
		young = min(young, q.FirstTS)
	}
	if tx.FirstTS > young {
		return txnproto.Abort(txnproto.WaitDie)
	}
	l.queue = append(l.queue, tx)
	c.waits[tx.ID] = k
	c.h.Blocked(tx, k, nil)
	return txnproto.Waiting
}

func (c *testLocks) grant(l *testLock, tx *txnproto.Txn, k txnproto.Key) {
	l.owner, l.id = tx, tx.ID
	delete(c.waits, tx.ID)
	keys, ok := c.held[tx.ID]
	if n := len(c.lists); !ok && n > 0 {
		keys, c.lists = c.lists[n-1][:0], c.lists[:n-1]
	}
	c.held[tx.ID] = append(keys, k)
}

func (c *testLocks) Access(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	return c.lock(tx, op.Key)
}

func (c *testLocks) Prepare(*txnproto.Txn) txnproto.Verdict { return txnproto.Granted }

func (c *testLocks) Finish(tx *txnproto.Txn, _ txnproto.Outcome) {
	if k, ok := c.waits[tx.ID]; ok {
		l := c.locks[k]
		for i, q := range l.queue {
			if q == tx {
				l.queue = append(l.queue[:i], l.queue[i+1:]...)
				break
			}
		}
		delete(c.waits, tx.ID)
	}
	for _, k := range c.held[tx.ID] {
		l := c.locks[k]
		if l.id != tx.ID {
			panic(fmt.Sprintf("key %d is not locked by %v", k, tx.ID))
		}
		if len(l.queue) == 0 {
			delete(c.locks, k)
			l.owner = nil
			c.free = append(c.free, l)
			continue
		}
		next := l.queue[0]
		l.queue = append(l.queue[:0], l.queue[1:]...)
		c.grant(l, next, k)
		c.h.Resolve(next, txnproto.Granted)
	}
	if keys, ok := c.held[tx.ID]; ok {
		c.lists = append(c.lists, keys)
		delete(c.held, tx.ID)
	}
}

func (c *testLocks) Recover(tx *txnproto.Txn) {
	for i := range tx.Puts {
		if v := c.lock(tx, tx.Puts[i].Key); !v.IsGranted() {
			panic(fmt.Sprintf("recovered %v: key %d: %v", tx.ID, tx.Puts[i].Key, v))
		}
	}
}

// grantAll is no concurrency control at all.
type grantAll struct{}

func newGrantAll(txnproto.Host, txnproto.Params) txnproto.Controller { return grantAll{} }

func (grantAll) Access(*txnproto.Txn, *txnproto.Op) txnproto.Verdict { return txnproto.Granted }
func (grantAll) Prepare(*txnproto.Txn) txnproto.Verdict              { return txnproto.Granted }
func (grantAll) Finish(*txnproto.Txn, txnproto.Outcome)              {}

// guarded is a controller that holds its host to the contract: one Access at a
// time and none while it waits, one Prepare, one Finish after everything.
type guarded struct {
	txnproto.Controller
	state map[txnproto.TxnID]string
	fail  func(format string, args ...any)
}

// guard wraps a protocol's controllers with the check.
func guard(p *txnproto.Protocol, fail func(format string, args ...any)) *txnproto.Protocol {
	q := *p
	q.New = func(h txnproto.Host, params txnproto.Params) txnproto.Controller {
		g := &guarded{state: map[txnproto.TxnID]string{}, fail: fail}
		g.Controller = p.New(guardHost{h, g}, params)
		return g
	}
	return &q
}

type guardHost struct {
	txnproto.Host
	g *guarded
}

func (h guardHost) Resolve(tx *txnproto.Txn, v txnproto.Verdict) {
	switch h.g.state[tx.ID] {
	case "op waits":
		h.g.state[tx.ID] = "live"
	case "prepare waits":
		h.g.state[tx.ID] = "prepared"
	}
	if _, bad := v.Aborted(); bad {
		h.g.state[tx.ID] = "to be finished"
	}
	h.Host.Resolve(tx, v)
}

func (h guardHost) Kill(tx *txnproto.Txn, r txnproto.AbortReason) bool {
	ok := h.Host.Kill(tx, r)
	if ok {
		h.g.state[tx.ID] = "to be finished"
	}
	return ok
}

func (g *guarded) Access(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	if s := g.state[tx.ID]; s != "" && s != "live" {
		g.fail("Access of %v: it is %s", tx.ID, s)
	}
	return g.verdict(tx, g.Controller.Access(tx, op), "op waits", "live")
}

func (g *guarded) Prepare(tx *txnproto.Txn) txnproto.Verdict {
	if s := g.state[tx.ID]; s != "live" {
		g.fail("Prepare of %v: it is %q", tx.ID, s)
	}
	return g.verdict(tx, g.Controller.Prepare(tx), "prepare waits", "prepared")
}

func (g *guarded) verdict(tx *txnproto.Txn, v txnproto.Verdict, waits, granted string) txnproto.Verdict {
	switch _, bad := v.Aborted(); {
	case bad:
		g.state[tx.ID] = "to be finished"
	case v.IsWaiting():
		g.state[tx.ID] = waits
	default:
		g.state[tx.ID] = granted
	}
	return v
}

func (g *guarded) Finish(tx *txnproto.Txn, o txnproto.Outcome) {
	switch s := g.state[tx.ID]; {
	case s == "finished":
		g.fail("Finish of %v twice", tx.ID)
	case o == txnproto.Committed && s != "prepared":
		g.fail("%v committed: it is %q", tx.ID, s)
	}
	g.state[tx.ID] = "finished"
	g.Controller.Finish(tx, o)
}

func (g *guarded) Recover(tx *txnproto.Txn) {
	g.state[tx.ID] = "prepared"
	if r, ok := g.Controller.(txnproto.Recoverer); ok {
		r.Recover(tx)
	}
}
