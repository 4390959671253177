package locking

import (
	"time"

	"interleave/sim/event"
	"interleave/txnproto"
)

func init() {
	txnproto.Register(&txnproto.Protocol{
		Name:    "2pl",
		Family:  "two-phase locking",
		Promise: "serializable",
		Help:    "strict two-phase locking with fair queues, next-key range locks and deadlock detection",
		Source: "Eswaran, Gray, Lorie, Traiger 1976; Gray, Reuter 1993 ch. 7-8; " +
			"key-range locks: Mohan 1990 (ARIES/KVL), Lomet 1993",
		Params:       params,
		DropReadOnly: true,
		New: func(h txnproto.Host, p txnproto.Params) txnproto.Controller {
			return newTwoPhase(h, configOf(p))
		},
	})
}

var params = []txnproto.Param{
	{
		Name: "detect", Kind: txnproto.ParamChoice, Default: "immediate",
		Choices: []string{"immediate", "interval", "wait", "off"},
		Help:    "when to search for deadlocks: as a wait begins, at intervals, when a wait has lasted, never",
	},
	{
		Name: "detect-interval", Kind: txnproto.ParamDuration, Default: "100ms",
		Help: "time between searches with detect=interval",
	},
	{
		Name: "detect-after", Kind: txnproto.ParamDuration, Default: "100ms",
		Help: "how long a wait lasts before its search with detect=wait",
	},
	{
		Name: "lock-timeout", Kind: txnproto.ParamDuration, Default: "0s",
		Help: "a lock waited for longer aborts the transaction; 0s: never",
	},
	{
		Name: "victim", Kind: txnproto.ParamChoice, Default: "youngest", Choices: victimNames,
		Help: "who of a deadlock's members is aborted",
	},
	{
		Name: "update-lock", Kind: txnproto.ParamChoice, Default: "x", Choices: []string{"x", "u"},
		Help: "what a read for update takes: an exclusive lock, or an update lock that readers may share",
	},
}

type detectMode uint8

const (
	detectImmediate detectMode = iota
	detectInterval
	detectWait
	detectOff
)

// config is the protocol's parameters.
type config struct {
	detect      detectMode
	interval    time.Duration
	after       time.Duration
	lockTimeout time.Duration
	victim      victimPolicy
	forUpdate   Mode
}

func configOf(p txnproto.Params) config {
	c := config{
		interval:    max(p.Duration("detect-interval"), 1),
		after:       p.Duration("detect-after"),
		lockTimeout: p.Duration("lock-timeout"),
		victim:      victimNamed(p.Choice("victim")),
		forUpdate:   X,
	}
	switch p.Choice("detect") {
	case "immediate":
		c.detect = detectImmediate
	case "interval":
		c.detect = detectInterval
	case "wait":
		c.detect = detectWait
	case "off":
		c.detect = detectOff
	default:
		panic("locking: unknown value of detect")
	}
	if p.Choice("update-lock") == "u" {
		c.forUpdate = U
	}
	return c
}

// twoPhase is one shard's controller.
type twoPhase struct {
	host     txnproto.Host
	config   config
	table    *table
	branches []branch // by Txn.Slot

	// uncommitted holds keys that a granted insert, or write or delete of an
	// absent row, is about to make present, and those about to be deleted. With the
	// store's they are the keys that gaps lie between. See nextkey.go.
	uncommitted keySet

	current owner // whose Access is being answered, or nobody
	answer  bool  // current's operation was granted after all

	wokenDone, looksDone int // how far settle has got in table.woken and looks

	deadlocks
}

const nobody owner = -1

// branch is what the controller keeps per transaction.
type branch struct {
	id     txnproto.TxnID
	tx     *txnproto.Txn
	op     *txnproto.Op
	cursor txnproto.Key // scan: everything in the range before it is locked
	doomed bool         // aborted by us; Finish follows

	// While it waits:
	request   requestID
	epoch     uint64 // of the wait; no two waits at a shard share one
	looked    bool   // its first look is over
	published bool   // the detector knows of it
	detectAt  event.Timer
	timeoutAt event.Timer

	// An insert's granted right to enter a gap, while it is being used.
	entering requestID

	// During a search:
	mark uint64
	from owner
}

func newTwoPhase(h txnproto.Host, c config) *twoPhase {
	t := &twoPhase{host: h, config: c, table: newTable(), current: nobody}
	t.startDeadlocks()
	return t
}

func (c *twoPhase) branch(tx *txnproto.Txn) owner {
	o := owner(tx.Slot)
	for int(o) >= len(c.branches) {
		c.branches = append(c.branches, branch{})
	}
	if b := &c.branches[o]; b.id != tx.ID {
		*b = branch{id: tx.ID, tx: tx}
		c.table.grow(o)
	}
	return o
}

// Access locks what op touches.
func (c *twoPhase) Access(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	o := c.branch(tx)
	b := &c.branches[o]
	b.op, b.cursor = op, op.Key
	if c.advance(o) && c.quiet() {
		return txnproto.Granted
	}
	c.current, c.answer = o, b.request == 0
	c.settle()
	c.current = nobody
	switch {
	case b.doomed:
		return txnproto.Abort(txnproto.Deadlock)
	case c.answer:
		return txnproto.Granted
	default:
		return txnproto.Waiting
	}
}

// Prepare has nothing to validate: who holds all its locks may commit.
func (c *twoPhase) Prepare(*txnproto.Txn) txnproto.Verdict { return txnproto.Granted }

// Finish releases tx's locks and grants them to whom they were denied.
func (c *twoPhase) Finish(tx *txnproto.Txn, _ txnproto.Outcome) {
	o := owner(tx.Slot)
	if int(o) >= len(c.branches) || c.branches[o].id != tx.ID {
		return
	}
	if b := &c.branches[o]; b.request != 0 {
		id := b.request
		c.endWait(o)
		c.table.abandon(id)
	}
	c.releaseAll(o)
	c.branches[o] = branch{}
	if !c.quiet() {
		c.settle()
	}
}

func (c *twoPhase) releaseAll(o owner) {
	t := c.table
	ids := t.owned[o]
	for _, id := range ids {
		r := &t.requests[id]
		wrote, indexed := r.held.Row == X, r.indexed
		eid := t.take(id)
		k := t.entries[eid].key
		if indexed {
			c.uncommitted.Delete(k)
		}
		if wrote && t.entries[eid].held.gapped != 0 {
			c.mergeGap(eid)
		}
		t.walk(eid)
		t.dropIfIdle(eid)
	}
	t.owned[o] = ids[:0]
}

// Recover takes back the exclusive locks of a prepared transaction's writes.
// Its read locks are not needed any more: it is past its lock point.
func (c *twoPhase) Recover(tx *txnproto.Txn) {
	o := c.branch(tx)
	for i := range tx.Puts {
		p := &tx.Puts[i]
		id, ok := c.table.acquire(o, p.Key, Lock{Row: X})
		if !ok {
			panic("locking: two prepared transactions wrote one key: " + tx.ID.String())
		}
		if p.Deleted || !c.present(p.Key) {
			c.place(id)
		}
	}
}

// advance locks what b's operation still lacks and reports whether it has all.
// Otherwise a wait has begun.
func (c *twoPhase) advance(o owner) bool {
	op := c.branches[o].op
	switch op.Kind {
	case txnproto.Read:
		return c.lock(o, op.Key, Lock{Row: S})
	case txnproto.ReadForUpdate:
		return c.lock(o, op.Key, Lock{Row: c.config.forUpdate})
	case txnproto.Write, txnproto.Modify, txnproto.Insert, txnproto.Delete:
		return c.lock(o, op.Key, Lock{Row: X}) && c.makePresent(o)
	case txnproto.Scan:
		return c.lockRange(o)
	default:
		panic("locking: unknown operation")
	}
}

// lock asks for l at k and begins a wait when it is not granted.
func (c *twoPhase) lock(o owner, k txnproto.Key, l Lock) bool {
	id, ok := c.table.acquire(o, k, l)
	if !ok {
		c.beginWait(o, id)
	}
	return ok
}

// quiet reports whether nothing is left for settle.
func (c *twoPhase) quiet() bool {
	return len(c.table.woken) == 0 && len(c.table.changed) == 0 && len(c.looks) == 0
}

// settle carries on everyone whose lock was granted and looks at new waits, until
// nothing moves.
func (c *twoPhase) settle() {
	t := c.table
	for {
		switch {
		case c.wokenDone < len(t.woken):
			o := t.woken[c.wokenDone]
			c.wokenDone++
			c.endWait(o)
			if !c.advance(o) {
				continue
			}
			if o == c.current {
				c.answer = true
				continue
			}
			b := &c.branches[o]
			b.op = nil
			c.host.Resolve(b.tx, txnproto.Granted)
		case len(t.changed) > 0:
			id := t.changed[len(t.changed)-1]
			t.changed = t.changed[:len(t.changed)-1]
			if r := &t.requests[id]; r.waits() {
				c.lookAgain(r.owner)
			}
		case c.looksDone < len(c.looks):
			o := c.looks[c.looksDone]
			c.looksDone++
			if c.waits(o) {
				c.look(o)
			}
		default:
			t.woken, c.wokenDone = t.woken[:0], 0
			c.looks, c.looksDone = c.looks[:0], 0
			return
		}
	}
}

// String shows the lock table: a line per locked key, holders before waiters.
func (c *twoPhase) String() string {
	return c.table.describe(func(o owner) string { return c.branches[o].id.String() })
}
