package optimistic

import "interleave/txnproto"

func init() {
	txnproto.Register(&txnproto.Protocol{
		Name:         "occ-version",
		Family:       "optimistic",
		Promise:      "read-committed",
		Help:         "optimistic, a version column: aborts who would overwrite a version other than the one it read; no lost update, but write skew",
		Source:       "application practice: update … where version = …; Kung, Robinson 1981, for rows written only",
		DropReadOnly: true,
		New:          func(h txnproto.Host, _ txnproto.Params) txnproto.Controller { return newVersion(h) },
	})
}

// version compares and swaps: the rows that a transaction has both read and
// written must still have the version read. Rows only read are not looked at again,
// so two transactions that each read what the other writes both commit. What is
// read is committed, two reads may fall before and after another's commit.
// "read-committed" is the strongest level of the checker's that this is; that
// no update is lost is more than it asks.
type version struct {
	shared
}

func newVersion(h txnproto.Host) *version {
	c := &version{shared: newShared(h, true, false)}
	c.rule = c
	return c
}

func (c *version) access(m *member, op *txnproto.Op) txnproto.Verdict { return c.note(m, op) }

// check compares. A row that a scan passed over as absent must be absent still, and
// not have come and gone.
func (c *version) check(m *member, v *test) {
	puts := m.tx.Puts
	store := c.host.Store()
	for i := range puts {
		k := puts[i].Key
		now := store.Get(k).Version
		for j := range m.reads {
			if r := &m.reads[j]; r.key == k && r.version != now {
				v.fail()
				return
			}
		}
		for j := range m.ranges {
			if m.ranges[j].has(k) && c.changedSince(k, m.ranges[j].at) {
				v.fail()
				return
			}
		}
	}
}

// changedSince reports whether row k has come or gone since.
func (c *version) changedSince(k txnproto.Key, at moment) bool {
	for _, x := range c.changes.since(at) {
		if x.key == k {
			return true
		}
	}
	return false
}

func (c *version) enter(*member) {}

func (c *version) leave(*member, txnproto.Outcome) {}
