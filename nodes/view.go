package nodes

import (
	"slices"

	"interleave/txnproto"
)

// View is the committed state of the whole database, at the leaders.
func (c *Cluster) View() txnproto.View { return view{c} }

type view struct{ c *Cluster }

func (v view) Get(k txnproto.Key) txnproto.Row {
	return v.c.hosts[v.c.ShardOf(k)].machine.store.Get(k)
}

func (v view) Deleted(f func(txnproto.Key)) {
	var keys []txnproto.Key
	for _, h := range v.c.hosts {
		keys = h.machine.store.appendDeleted(keys)
	}
	slices.Sort(keys)
	for _, k := range keys {
		f(k)
	}
}

func (v view) Inserted(f func(txnproto.Row)) {
	type cursor struct {
		rows []txnproto.Row
	}
	var cs []cursor
	for _, h := range v.c.hosts {
		st := h.machine.store
		var rows []txnproto.Row
		st.beyond.Scan(func(k txnproto.Key) bool {
			if r := st.Get(k); r.Exists {
				rows = append(rows, r)
			}
			return true
		})
		cs = append(cs, cursor{rows})
	}
	for {
		best := -1
		for i := range cs {
			if len(cs[i].rows) > 0 && (best < 0 || cs[i].rows[0].Key < cs[best].rows[0].Key) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		f(cs[best].rows[0])
		cs[best].rows = cs[best].rows[1:]
	}
}
