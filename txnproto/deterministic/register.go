package deterministic

import (
	"time"

	"interleave/txnproto"
)

func init() {
	txnproto.Register(&txnproto.Protocol{
		Name: "calvin", Family: "deterministic", Promise: "strict-serializable",
		Help:         "agrees on an order of transactions epoch by epoch and grants locks in it: no deadlock; others abort nobody, unless they add or remove rows where it scans",
		Source:       "Thomson, Diamond, Weng, Ren, Shao, Abadi 2012; its commit, as logic runs at clients: Stamos, Cristian 1990, 1993 (coordinator log)",
		DropReadOnly: true, Sequenced: true,
		CoordinatorLog: func(p txnproto.Params) bool { return p.Choice("commit") == "coordinator-log" },
		Params: []txnproto.Param{{
			Name: "epoch", Kind: txnproto.ParamDuration, Default: "10ms",
			Min: float64(100 * time.Microsecond), Max: float64(10 * time.Second),
			Help: "for how long a sequencer collects transactions into one batch",
		}, {
			Name: "commit", Kind: txnproto.ParamChoice, Default: "coordinator-log", Choices: []string{"coordinator-log", "two-phase"},
			Help: "how several shards commit: all writes in one entry of the coordinator's log, participants logging nothing before, or two-phase commit",
		}},
		New: func(h txnproto.Host, p txnproto.Params) txnproto.Controller {
			return newController(h, p.Duration("epoch"))
		},
	})
}
