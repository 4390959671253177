package controltest

import (
	"fmt"
	"time"

	"interleave/txnproto"
)

// aloneMax is how long a transaction that runs by itself may take.
const aloneMax = time.Second

// Alone runs one transaction while no other is open: ops, in one go, and the commit on
// every shard. The error says at what it waited or was aborted.
// It is over then, too.
func (d *Driver) Alone(r txnproto.RequestID, ops []txnproto.Op) (*Attempt, error) {
	a := d.Begin(r, nil)
	err := d.alone(a, ops)
	if err != nil {
		if a.Outcome == txnproto.Undecided {
			a.Outcome = txnproto.Aborted
		}
		for _, id := range a.participants() {
			d.Shards[id].Finish(a, txnproto.Aborted)
		}
		d.forgo(a)
	}
	d.Loop.RunUntil(d.Loop.Now().Add(aloneMax))
	return a, err
}

func (d *Driver) alone(a *Attempt, ops []txnproto.Op) error {
	if d.claim(a, ops) {
		if err := d.askWithin(a, txnproto.Op{Kind: txnproto.Sequence}, d.home(a, ops), aloneMax); err != nil {
			return err
		}
	}
	for _, l := range d.lockSet(ops) {
		if err := d.ask(a, l.Op, d.Shards[l.Shard]); err != nil {
			return err
		}
	}
	for _, op := range ops {
		shards := []*Shard{d.ShardOf(op.Key)}
		if op.Kind == txnproto.Scan {
			shards = d.Shards
		}
		for _, s := range shards {
			if err := d.ask(a, op, s); err != nil {
				return err
			}
		}
	}
	d.forgo(a)
	for _, id := range a.participants() {
		err := fmt.Errorf("%v waits on shard %d to commit", a.ID, id)
		d.Shards[id].Prepare(a, func(v txnproto.Verdict) { err = asError(v, a, "commit") })
		d.Loop.RunUntil(d.Loop.Now())
		if err != nil {
			return err
		}
	}
	if reason := d.judge(a); reason != txnproto.NoReason {
		return fmt.Errorf("%v is aborted by its votes: %v", a.ID, reason)
	}
	d.decide(a)
	for _, id := range a.participants() {
		d.Shards[id].Finish(a, txnproto.Committed)
	}
	return nil
}

// ask runs an operation that is to be granted at once.
func (d *Driver) ask(a *Attempt, op txnproto.Op, s *Shard) error { return d.askWithin(a, op, s, 0) }

// askWithin runs an operation that is to be granted in some time.
func (d *Driver) askWithin(a *Attempt, op txnproto.Op, s *Shard, within time.Duration) error {
	err := fmt.Errorf("%v waits on shard %d for %v of %d", a.ID, s.id, op.Kind, op.Key)
	what := fmt.Sprintf("%v of %d", op.Kind, op.Key)
	told := func(r txnproto.AbortReason) { err = asError(txnproto.Abort(r), a, what) }
	s.Access(a, op, func(v txnproto.Verdict) { err = asError(v, a, what) }, told)
	d.Loop.RunUntil(d.Loop.Now().Add(within))
	return err
}

func asError(v txnproto.Verdict, a *Attempt, what string) error {
	if reason, aborted := v.Aborted(); aborted {
		return fmt.Errorf("%v is aborted at %s: %v", a.ID, what, reason)
	}
	return nil
}

// Row returns the newest committed row of k.
func (d *Driver) Row(k txnproto.Key) txnproto.Row { return d.ShardOf(k).store.Get(k) }
