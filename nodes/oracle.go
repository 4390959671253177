package nodes

import (
	"interleave/sim/event"
	"interleave/sim/netsim"
	"interleave/sim/rng"
	"interleave/sim/station"
	"interleave/txnproto"
)

// OracleConfig is where timestamps are asked for.
type OracleConfig struct {
	Site    netsim.Site // of its machine, which is its own
	Service rng.Dist    // processor time of one request
}

// oracle is the timestamp oracle: a machine of its own with one processor, which
// counts. It serves requests one by one, first come first served, and draws the
// timestamp when a request's service is over. So timestamps are in order of real
// time: whoever asks after another has its answer gets a newer one.
//
// It does not fail. The one of Percolator (Peng, Dabek 2010, sec. 2.3) logs a range of
// timestamps before it hands them out, and continues behind the range after a crash;
// in between nobody can begin or commit, which is not modelled. Neither is its
// batching of one machine's requests.
type oracle struct {
	c       *Cluster
	cpu     *station.CPU
	cfg     OracleConfig
	hArrive event.HandlerID
	hServed event.HandlerID
}

func newOracle(c *Cluster, cfg OracleConfig) *oracle {
	o := &oracle{c: c, cpu: station.NewCPU(c.loop, 1), cfg: cfg}
	o.hArrive = c.loop.Handle("oracle.arrive", o.arrive)
	o.hServed = c.loop.Handle("oracle.served", o.served)
	return o
}

// arrive queues a request.
func (o *oracle) arrive(i uint64) {
	m := o.c.pool.At(i)
	_, done := o.cpu.Submit(o.cfg.Service.At(rng.Hash(m.Key, uint64(m.Kind))))
	o.c.loop.At(done, o.hServed, i)
}

// served draws the timestamp and sends it to who asked: a coordinator's leader of then,
// or a client.
func (o *oracle) served(i uint64) {
	m := o.c.pool.At(i)
	m.Kind = txnproto.MsgTimestampReply
	ts := o.c.cfg.NewTS()
	if m.Coord < 0 {
		m.Tx.TS = ts
		o.c.send(m, o.cfg.Site, o.c.sites[m.Tx.Client], o.c.hAtClient, false)
		return
	}
	m.Tx.CommitTS = ts
	o.c.send(m, o.cfg.Site, netsim.Site(m.Node), o.c.hAtNode, false)
}

// AskOracle implements txnproto.Cluster.
func (c *Cluster) AskOracle(client txnproto.ClientID, m *txnproto.Msg) {
	c.send(m, c.sites[client], c.oracle.cfg.Site, c.oracle.hArrive, false)
}

// Oracle is the oracle's processor, nil when there is none.
func (c *Cluster) Oracle() *station.CPU {
	if c.oracle == nil {
		return nil
	}
	return c.oracle.cpu
}

// asksOracle reports whether commits get their timestamps from the oracle.
func (h *Host) asksOracle() bool {
	return h.c.oracle != nil && h.c.cfg.Protocol.Versioning == txnproto.VersionByCommit
}

// askOracle asks for the timestamp of a commit that is decided.
func (h *Host) askOracle(co *coord) {
	co.state = coordStamping
	m := h.about(txnproto.MsgTimestamp, co, h.shard)
	m.Node = h.node.id
	h.c.send(m, netsim.Site(h.node.id), h.c.oracle.cfg.Site, h.c.oracle.hArrive, false)
}

// stamped takes the timestamp of a commit. Of one that an earlier leader decided
// nothing is known, as it was not in the log: it has aborted.
func (h *Host) stamped(m *txnproto.Msg) {
	co := h.coordOf(m.Tx.ID, m.Coord)
	if co != nil && co.state == coordStamping {
		co.parts[txnproto.PartTimestamp] = h.Now().Sub(co.decided)
		co.decided = h.Now()
		h.setCommitTS(co, m.Tx.CommitTS)
		h.logDecision(co)
	}
	h.c.pool.Free(m)
}
