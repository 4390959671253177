package snapshot

import (
	"interleave/txnproto"

	// The row locks are those of 2pl.
	_ "interleave/txnproto/locking"
)

const family = "multiversion"

// kind is which of the protocols a controller follows.
type kind uint8

const (
	// readCommitted: each statement reads at a snapshot of its own. A write locks its
	// row to the end of the transaction and changes the newest committed version.
	readCommitted kind = iota
	// snapshotIsolation: all reads are at the snapshot of the begin; a write
	// to a row with a newer version aborts: the first updater wins.
	snapshotIsolation
	// serializableSnapshot is that, and aborts who might be the pivot of a cycle.
	serializableSnapshot
	// lockingUpdaters: transactions declared to read only read at their begin's
	// snapshot, all others run strict two-phase locking on the newest versions.
	lockingUpdaters
)

// lockManager is the protocol that locks rows.
func lockManager() *txnproto.Protocol {
	p, ok := txnproto.ProtocolNamed("2pl")
	if !ok {
		panic("snapshot: 2pl is not registered")
	}
	return p
}

// rowLockParams are the parameters of 2pl that concern row locks.
func rowLockParams() []txnproto.Param {
	var defs []txnproto.Param
	for _, d := range lockManager().Params {
		switch d.Name {
		case "detect", "detect-interval", "detect-after", "lock-timeout", "victim":
			defs = append(defs, d)
		}
	}
	return defs
}

func init() {
	locks := rowLockParams()
	register(readCommitted, txnproto.Protocol{
		Name:         "rc",
		Draws:        txnproto.DrawsStatement | txnproto.DrawsCommit,
		Promise:      "read-committed",
		Help:         "each statement reads a snapshot of its own; writers lock rows and change the newest version",
		Source:       "Berenson et al. 1995 (sec. 4.3, Oracle Read Consistency)",
		Params:       locks,
		DropReadOnly: true,
	})
	register(snapshotIsolation, txnproto.Protocol{
		Name:         "si",
		Draws:        txnproto.DrawsBegin | txnproto.DrawsCommit,
		Promise:      "snapshot",
		Help:         "snapshot isolation: reads at the snapshot of the begin, the first updater of a row wins",
		Source:       "Berenson et al. 1995 (sec. 4.2); across shards as Du, Elnikety, Zwaenepoel 2013",
		ClockCommit:  true,
		Params:       locks,
		DropReadOnly: true,
	})
	register(serializableSnapshot, txnproto.Protocol{
		Name:         "ssi",
		Draws:        txnproto.DrawsBegin | txnproto.DrawsCommit,
		Promise:      "serializable",
		Help:         "serializable snapshot isolation: si, and who might close a cycle of anti-dependencies aborts",
		Source:       "Cahill, Röhm, Fekete 2008; Ports, Grittner 2012",
		Params:       locks,
		TellReadOnly: true,
		Agree:        agree,
	})
	register(lockingUpdaters, txnproto.Protocol{
		Name:         "mv2pl",
		Draws:        txnproto.DrawsReader | txnproto.DrawsCommit,
		Promise:      "serializable",
		Help:         "declared readers read the snapshot of their begin, updaters run strict two-phase locking",
		Source:       "Bernstein, Hadzilacos, Goodman 1987 (sec. 5.5)",
		Params:       lockManager().Params,
		TellReadOnly: true,
	})
}

func register(k kind, p txnproto.Protocol) {
	p.Family, p.Versioning, p.WaitClauses = family, txnproto.VersionByCommit, true
	p.New = func(h txnproto.Host, params txnproto.Params) txnproto.Controller { return newController(h, k, params) }
	txnproto.Register(&p)
}
