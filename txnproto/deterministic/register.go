package deterministic

import (
	"time"

	"interleave/txnproto"
)

func init() {
	txnproto.Register(&txnproto.Protocol{
		Name: "calvin", Family: "deterministic", Promise: "strict-serializable",
		Help:         "agrees on an order of transactions epoch by epoch and grants locks in it: no deadlock, no aborts because of others",
		Source:       "Thomson, Diamond, Weng, Ren, Shao, Abadi 2012 (with two-phase commit: logic runs at clients)",
		DropReadOnly: true, Sequenced: true,
		Params: []txnproto.Param{{
			Name: "epoch", Kind: txnproto.ParamDuration, Default: "10ms",
			Min: float64(100 * time.Microsecond), Max: float64(10 * time.Second),
			Help: "for how long a sequencer collects transactions into one batch",
		}},
		New: func(h txnproto.Host, p txnproto.Params) txnproto.Controller {
			return newController(h, p.Duration("epoch"))
		},
	})
}
