package optimistic

import "interleave/txnproto"

func init() {
	txnproto.Register(&txnproto.Protocol{
		Name:    "silo",
		Family:  "optimistic",
		Promise: "serializable",
		Help:    "optimistic: locks what it wrote, then looks whether what it read is unchanged and unlocked",
		Source:  "Tu, Zheng, Kohler, Liskov, Madden 2013",
		Params: []txnproto.Param{{
			Name: "node-keys", Kind: txnproto.ParamInt, Default: "16", Min: 1, Max: 1 << 20,
			Help: "consecutive keys in a leaf of the index: a row added or taken away there aborts who scanned any of it",
		}},
		New: func(h txnproto.Host, p txnproto.Params) txnproto.Controller {
			return newSilo(h, txnproto.Key(p.Int("node-keys")))
		},
	})
}

// silo is Silo's commit protocol (SOSP 2013, sec. 4.4 to 4.6). See "Silo" in the
// package comment for what is different.
type silo struct {
	shared
	nodeKeys txnproto.Key
}

func newSilo(h txnproto.Host, nodeKeys txnproto.Key) *silo {
	c := &silo{shared: newShared(h, true, h.Shards() > 1), nodeKeys: nodeKeys}
	c.rule = c
	return c
}

func (c *silo) access(m *member, op *txnproto.Op) txnproto.Verdict { return c.note(m, op) }

// check is phase 2: the rows read are unchanged and nobody else has locked them, and
// in the leaves scanned no row has come or gone.
func (c *silo) check(m *member, v *test) {
	store := c.host.Store()
	for i := range m.reads {
		r := &m.reads[i]
		if store.Get(r.key).Version != r.version || c.writers.newest(r.key) != 0 {
			v.fail()
			return
		}
	}
	for i := range m.ranges {
		if !c.leavesUnchanged(&m.ranges[i]) {
			v.fail()
			return
		}
	}
}

func (c *silo) leavesUnchanged(r *scanned) bool {
	for _, x := range c.changes.since(r.at) {
		if c.inLeaves(r, x.key) {
			return false
		}
	}
	for _, s := range c.special {
		for _, k := range c.members[s].structural {
			if c.inLeaves(r, k) {
				return false
			}
		}
	}
	return true
}

// inLeaves reports whether k is in a leaf that the scan has gone through.
func (c *silo) inLeaves(r *scanned, k txnproto.Key) bool {
	n := k / c.nodeKeys
	return r.lo/c.nodeKeys <= n && n <= (r.hi-1)/c.nodeKeys
}

func (c *silo) enter(*member) {}

func (c *silo) leave(*member, txnproto.Outcome) {}
