// Package broken holds protocols that break their promise, for tests only: they
// show that a checker, an invariant or a test can fail. Each is a sound protocol
// with one thing taken out. Importing the package registers them:
//
//	broken-2pl-early-release      locks are given up when their operation is done
//	broken-2pl-no-read-locks      reads and scans lock nothing
//	broken-2pl-no-range-locks     scans lock the rows found and no gaps
//	broken-2pl-basic-one-phase    locks are released, and writes exposed, before the next is taken
//	broken-to-no-check            who comes too late goes on
//	broken-to-no-range-reads      scans leave read timestamps on the rows found only
//	broken-to-repeats-timestamps  transactions share a timestamp
//	broken-occ-skips-read-set     validation does not know what was read
//	broken-occ-no-pending-check   shards validate without regard for two-phase commit
//	broken-occ-drops-readers      participants that only read drop out when prepared
//	broken-forward-skips-readers  validation does not know what the running have read
//	broken-silo-skips-reads       phase 2 is left out
//	broken-silo-unprotected       what was read is not protected until the end
//	broken-tictoc-skips-reads     timestamps are computed from the writes only
//	broken-tictoc-no-agreement    each shard commits at a timestamp of its own
//	broken-mvto-no-read-check     writes do not look at who has read the version before
//	broken-si-last-updater        a write goes over a version that its snapshot lacks
//	broken-si-no-wait             reads do not wait for what is being decided
//	broken-ssi-no-pivot           pivots of dangerous structures commit
//	broken-calvin-out-of-turn     operations do not wait for their transaction's turn
package broken

import (
	"interleave/txnproto"

	// The sound protocols, for their registration.
	_ "interleave/txnproto/deterministic"
	_ "interleave/txnproto/locking"
	_ "interleave/txnproto/optimistic"
	_ "interleave/txnproto/snapshot"
	_ "interleave/txnproto/timestamp"
)

// variant is what is taken out of a protocol.
type variant struct {
	name, of, help string
	// rewrite returns the operation to ask the sound controller about, nil for none.
	rewrite func(op *txnproto.Op) *txnproto.Op
	// rows makes a scan ask for each row found instead of the range.
	rows bool
	// release ends the transaction for the sound controller after each grant.
	release bool
	// shrink tells the sound controller of a lock point before each operation. What is
	// promised is serializability: nothing that was read is taken back in the tests.
	shrink bool
	// ignore turns aborts for this reason into grants.
	ignore txnproto.AbortReason
	// alone tells the controller that there is one shard.
	alone bool
	// drop lets read-only participants drop out.
	drop bool
	// mute leaves votes unread.
	mute bool
	// late makes every timestamp that the controller asks the host for later than all.
	late bool
	// hasty grants at once what the controller lets wait, places in the order excepted.
	hasty bool
	// share gives four transactions each one timestamp.
	share bool
}

var variants = []variant{
	{name: "broken-2pl-early-release", of: "2pl", help: "gives up each lock when its operation is done", release: true},
	{name: "broken-2pl-no-read-locks", of: "2pl", help: "reads lock nothing", rewrite: writesOnly},
	{name: "broken-2pl-no-range-locks", of: "2pl", help: "scans lock rows and no gaps", rows: true},
	{name: "broken-2pl-basic-one-phase", of: "2pl-basic", help: "releases before it has locked all that it will", shrink: true},
	{name: "broken-to-no-check", of: "to", help: "who comes too late goes on", ignore: txnproto.TSOrder},
	{name: "broken-to-no-range-reads", of: "to", help: "scans read the rows found only", rows: true},
	{name: "broken-to-repeats-timestamps", of: "to", help: "transactions share a timestamp", share: true},
	{name: "broken-occ-skips-read-set", of: "occ", help: "validation does not know what was read", rewrite: blindWritesOnly},
	{name: "broken-occ-no-pending-check", of: "occ", help: "validates each shard by itself", alone: true},
	{name: "broken-occ-drops-readers", of: "occ", help: "readers drop out when prepared", drop: true},
	{name: "broken-forward-skips-readers", of: "occ-forward", help: "validation does not know who has read", rewrite: blindWritesOnly},
	{name: "broken-silo-skips-reads", of: "silo", help: "does not look at what was read", rewrite: blindWritesOnly},
	{name: "broken-silo-unprotected", of: "silo", help: "what was read can be overwritten before the end", alone: true},
	{name: "broken-tictoc-skips-reads", of: "tictoc", help: "timestamps come from the writes only", rewrite: blindWritesOnly},
	{name: "broken-tictoc-no-agreement", of: "tictoc", help: "each shard has a commit timestamp of its own", alone: true, mute: true},
	{name: "broken-mvto-no-read-check", of: "mvto", help: "writes do not look at who has read", ignore: txnproto.TSOrder},
	{name: "broken-si-last-updater", of: "si", help: "a write goes over what its snapshot lacks", ignore: txnproto.WriteConflict},
	{name: "broken-si-no-wait", of: "si", help: "reads do not wait for what is being decided", late: true},
	{name: "broken-ssi-no-pivot", of: "ssi", help: "pivots commit", ignore: txnproto.SSIPivot, mute: true},
	{name: "broken-calvin-out-of-turn", of: "calvin", help: "operations do not wait for their transaction's turn", hasty: true},
}

// writesOnly hides reads.
func writesOnly(op *txnproto.Op) *txnproto.Op {
	if op.Kind.Writes() {
		return op
	}
	return nil
}

// blindWritesOnly hides reads and shows writes that read as ones that do not.
func blindWritesOnly(op *txnproto.Op) *txnproto.Op {
	if !op.Kind.Writes() {
		return nil
	}
	w := *op
	w.Kind = txnproto.Write
	return &w
}

func init() {
	for _, v := range variants {
		sound, ok := txnproto.ProtocolNamed(v.of)
		if !ok {
			panic("broken: no protocol " + v.of)
		}
		p := *sound
		p.Name, p.Help = v.name, "for tests, does not keep its promise: "+v.help
		p.DropReadOnly = sound.DropReadOnly || v.drop
		if v.mute {
			p.Agree = nil
		}
		if v.shrink {
			p.Promise, p.PromiseWith = "serializable", nil
		}
		p.New = func(h txnproto.Host, params txnproto.Params) txnproto.Controller {
			c := &controller{variant: v}
			c.host = &host{Host: h, c: c}
			c.sound = sound.New(c.host, params)
			return c
		}
		txnproto.Register(&p)
	}
}

// Names returns the names of the broken protocols.
func Names() []string {
	names := make([]string, len(variants))
	for i, v := range variants {
		names[i] = v.name
	}
	return names
}
