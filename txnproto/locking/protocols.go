package locking

import (
	"slices"
	"time"

	"interleave/txnproto"
)

// strategy is what a protocol does against deadlock.
type strategy uint8

const (
	detection   strategy = iota // finds cycles and aborts a member of each
	timeoutOnly                 // ends waits that last too long
	noWait                      // nobody waits
	waitDie                     // the older waits for the younger
	woundWait                   // the younger waits for the older
	ordered                     // everything is locked beforehand, in one order
)

const family = "two-phase locking"

func init() {
	register("2pl", detection,
		"strict two-phase locking with fair queues, next-key range locks and deadlock detection",
		"Eswaran, Gray, Lorie, Traiger 1976; Gray, Reuter 1993 ch. 7-8; "+
			"key-range locks: Mohan 1990 (ARIES/KVL), Lomet 1993; probes: Chandy, Misra, Haas 1983",
		slices.Concat(detectParams, []txnproto.Param{timeoutParam("0s", "a lock waited for longer aborts the transaction; 0s: never")}, victimParams, commonParams))
	register("2pl-timeout", timeoutOnly,
		"two-phase locking that takes a wait which lasts too long for a deadlock",
		"Gray, Reuter 1993 ch. 7",
		slices.Concat([]txnproto.Param{timeoutParam("50ms", "a lock waited for longer aborts the transaction; 0s: as soon as it waits")}, commonParams))
	register("2pl-nowait", noWait,
		"two-phase locking that aborts where it would have to wait",
		"Tay, Suri, Goodman 1985 (the no-waiting case)", commonParams)
	register("2pl-waitdie", waitDie,
		"two-phase locking in which the older waits for the younger and the younger dies",
		"Rosenkrantz, Stearns, Lewis 1978 (wait-die)", commonParams)
	register("2pl-woundwait", woundWait,
		"two-phase locking in which the older wounds the younger and the younger waits",
		"Rosenkrantz, Stearns, Lewis 1978 (wound-wait)", commonParams)
	register("2pl-ordered", ordered,
		"two-phase locking that locks all that is declared, by shard and key, before anything is done",
		"Havender 1968 (ordered allocation); Bernstein, Hadzilacos, Goodman 1987 ch. 3 (conservative 2PL)", nil)
	registerBasic()
}

// registerBasic registers the member that is not strict.
func registerBasic() {
	params := slices.Concat([]txnproto.Param{recoverableParam}, detectParams,
		[]txnproto.Param{timeoutParam("0s", "a lock waited for longer aborts the transaction; 0s: never")}, victimParams)
	txnproto.Register(&txnproto.Protocol{
		Name: "2pl-basic", Family: family, Promise: "read-uncommitted",
		Help:   "two-phase locking that releases locks before the commit: others read what may be taken back, and aborts cascade",
		Source: "Bernstein, Hadzilacos, Goodman 1987 ch. 3.2 (basic 2PL), ch. 1.2 and 2.4 (recoverability)",
		Params: params, Versioning: txnproto.VersionByExposure, WaitClauses: true,
		PromiseWith: func(p txnproto.Params) string {
			if p.Bool("recoverable") {
				return "serializable"
			}
			return "read-uncommitted"
		},
		New: func(h txnproto.Host, p txnproto.Params) txnproto.Controller {
			return newTwoPhase(h, config{
				strategy: detection, forUpdate: X, basic: true, recoverable: p.Bool("recoverable"),
				detect: detectNamed(p.Choice("detect")), interval: max(p.Duration("detect-interval"), 1),
				after: p.Duration("detect-after"), victim: victimNamed(p.Choice("victim")), lockTimeout: p.Duration("lock-timeout"),
			})
		},
	})
}

var recoverableParam = txnproto.Param{
	Name: "recoverable", Kind: txnproto.ParamBool, Default: "false",
	Help: "a commit waits for those it has read from, and serializability is promised; " +
		"otherwise it goes ahead, and if they abort later it has read what never was",
}

func register(name string, s strategy, help, source string, params []txnproto.Param) {
	var draws txnproto.Draws
	if s == waitDie || s == woundWait {
		draws = txnproto.DrawsFirst
	}
	txnproto.Register(&txnproto.Protocol{
		Name: name, Family: family, Promise: "serializable", Help: help, Source: source,
		Params: params, DropReadOnly: true, Declares: s == ordered, Draws: draws, WaitClauses: s != ordered,
		New: func(h txnproto.Host, p txnproto.Params) txnproto.Controller {
			return newTwoPhase(h, configOf(s, p))
		},
	})
}

var detectParams = []txnproto.Param{
	{
		Name: "detect", Kind: txnproto.ParamChoice, Default: "immediate",
		Choices: []string{"immediate", "interval", "wait", "probe", "off"},
		Help: "when to search for deadlocks: as a wait begins, at intervals, when a wait has lasted, " +
			"as it begins and across shards by probes (edge chasing) rather than centrally, never",
	},
	{
		Name: "detect-interval", Kind: txnproto.ParamDuration, Default: "100ms",
		Help: "time between searches with detect=interval",
	},
	{
		Name: "detect-after", Kind: txnproto.ParamDuration, Default: "100ms",
		Help: "how long a wait lasts before its search with detect=wait",
	},
}

func timeoutParam(def, help string) txnproto.Param {
	return txnproto.Param{Name: "lock-timeout", Kind: txnproto.ParamDuration, Default: def, Help: help}
}

var victimParams = []txnproto.Param{{
	Name: "victim", Kind: txnproto.ParamChoice, Default: "youngest", Choices: victimNames,
	Help: "who of a deadlock's members is aborted",
}}

var commonParams = []txnproto.Param{
	{
		Name: "update-lock", Kind: txnproto.ParamChoice, Default: "x", Choices: []string{"x", "u"},
		Help: "what a read for update takes: an exclusive lock, or an update lock that readers may share",
	},
	{
		Name: "granularity", Kind: txnproto.ParamChoice, Default: "row", Choices: []string{"row", "table", "auto"},
		Help: "what is locked: rows and gaps alone, a shard's rows as one table, or rows under intention locks on the table",
	},
	{
		Name: "escalate-after", Kind: txnproto.ParamInt, Default: "0", Max: 1e9,
		Help: "row and range locks of a transaction in a shard that become one table lock, with granularity=auto; " +
			"0: none. SQL Server documents about 5,000; InnoDB and PostgreSQL never escalate",
	},
	{
		Name: "savepoint-locks", Kind: txnproto.ParamChoice, Default: "release", Choices: []string{"release", "keep"},
		Help: "what a rollback to a savepoint does with the locks taken since: release as PostgreSQL, or keep as InnoDB",
	},
}

type detectMode uint8

const (
	detectImmediate detectMode = iota
	detectInterval
	detectWait
	detectProbe
	detectOff
)

type granularity uint8

const (
	granularityRow granularity = iota
	granularityTable
	granularityAuto
)

// config is a protocol's parameters.
type config struct {
	strategy      strategy
	detect        detectMode // for detection
	interval      time.Duration
	after         time.Duration
	lockTimeout   time.Duration
	victim        victimPolicy
	forUpdate     Mode
	granularity   granularity
	escalateAfter int // 0: never
	keepLocks     bool
	basic         bool // releases before the commit; see basic.go
	recoverable   bool // with basic
}

func configOf(s strategy, p txnproto.Params) config {
	c := config{strategy: s, detect: detectOff, forUpdate: X}
	if s == ordered {
		return c
	}
	if s == detection {
		c.detect = detectNamed(p.Choice("detect"))
		c.interval = max(p.Duration("detect-interval"), 1)
		c.after = p.Duration("detect-after")
		c.victim = victimNamed(p.Choice("victim"))
	}
	if s == detection || s == timeoutOnly {
		c.lockTimeout = p.Duration("lock-timeout")
	}
	if p.Choice("update-lock") == "u" {
		c.forUpdate = U
	}
	switch p.Choice("granularity") {
	case "row":
		c.granularity = granularityRow
	case "table":
		c.granularity = granularityTable
	case "auto":
		c.granularity = granularityAuto
		c.escalateAfter = p.Int("escalate-after")
	default:
		panic("locking: unknown value of granularity")
	}
	c.keepLocks = p.Choice("savepoint-locks") == "keep"
	return c
}

func detectNamed(name string) detectMode {
	for i, n := range detectParams[0].Choices {
		if n == name {
			return detectMode(i)
		}
	}
	panic("locking: unknown value of detect")
}
