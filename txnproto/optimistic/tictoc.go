package optimistic

import (
	"fmt"
	"math"
	"strings"

	"interleave/txnproto"
)

func init() {
	txnproto.Register(&txnproto.Protocol{
		Name:    "tictoc",
		Family:  "optimistic",
		Promise: "serializable",
		Help:    "optimistic, commit timestamps computed from what was accessed: who read an old version may commit in the past",
		Source:  "Yu, Pavlo, Sanchez, Devadas 2016",
		Agree:   agreeTimestamp,
		New:     func(h txnproto.Host, _ txnproto.Params) txnproto.Controller { return newTictoc(h) },
	})
}

// maxKey is above every key in use, and not the largest number, so that the next one exists.
const maxKey = txnproto.Key(math.MaxUint64 - 1)

// forever is the timestamp later than any.
const forever = txnproto.Timestamp(math.MaxUint64)

// A vote of tictoc says which commit timestamps will do at a shard: from its first
// number to the complement of its second, so that zero bounds nothing.
func timestampVote(low, high txnproto.Timestamp) txnproto.Vote {
	return txnproto.Vote{uint64(low), ^uint64(high)}
}

// agreeTimestamp takes the smallest timestamp that will do at every shard.
func agreeTimestamp(sum, vote txnproto.Vote) (txnproto.Vote, txnproto.AbortReason) {
	sum[0], sum[1] = max(sum[0], vote[0]), max(sum[1], vote[1])
	if sum[0] > ^sum[1] {
		return sum, txnproto.Validation
	}
	return sum, txnproto.NoReason
}

// tictoc is TicToc's commit protocol (SIGMOD 2016, sec. 3). Every version is
// valid from its write timestamp to its read timestamp; a transaction commits at a
// timestamp at which everything it read is valid and after everything that it
// overwrites was. See "TicToc" in the package comment for what is different.
type tictoc struct {
	shared
	rows    rows
	scans   intervalMax // the latest commit that has scanned a key
	removed removals    // rows taken away, and when
}

func newTictoc(h txnproto.Host) *tictoc {
	c := &tictoc{shared: newShared(h, true, h.Shards() > 1), rows: newRows(h.NewestTS() + 1)}
	c.rule = c
	return c
}

// access notes the versions read and when they are known to be valid.
func (c *tictoc) access(m *member, op *txnproto.Op) txnproto.Verdict {
	from, ranges := len(m.reads), len(m.ranges)
	v := c.note(m, op)
	for i := from; i < len(m.reads); i++ {
		r := &m.reads[i]
		row := c.rows.at(r.key)
		r.written, r.read = row.written, row.read
		r.interval = c.known(r.key, row, r.version)
	}
	if len(m.ranges) > ranges {
		r := &m.ranges[ranges]
		r.written = max(c.rows.floor, c.removed.latest(r.interval))
		r.torn = c.torn(r)
	}
	return v
}

// known reports whether the timestamps kept for k are those of the version. They are
// not while one whose timestamp is not known yet is on its way in.
func (c *tictoc) known(k txnproto.Key, row *row, version txnproto.Version) bool {
	w := c.pendingWriter(k)
	return w < 0 || !c.members[w].unknown && row.base == version
}

// torn reports whether the range shows what a pending member has added or taken away.
func (c *tictoc) torn(r *scanned) bool {
	for _, s := range c.special {
		o := &c.members[s]
		for _, k := range o.structural {
			if r.has(k) && (o.unknown || c.host.Store().Get(k).Version != c.rows.at(k).base) {
				return true
			}
		}
	}
	return false
}

// check computes the timestamps at which m can commit here.
func (c *tictoc) check(m *member, v *test) {
	low, high := txnproto.Timestamp(1), forever
	for i := range m.tx.Puts {
		k := m.tx.Puts[i].Key
		low = max(low, c.rows.at(k).read+1, c.scans.at(k)+1)
	}
	for i := range m.reads {
		r := &m.reads[i]
		r.extends = false
		if c.host.Store().Get(r.key).Version == r.version {
			row := c.rows.at(r.key)
			r.extends = c.writers.newest(r.key) == 0
			if r.extends || c.known(r.key, row, r.version) {
				r.written, r.read, r.interval = row.written, row.read, true
			}
		}
		if !r.interval {
			v.fail()
			return
		}
		low = max(low, r.written)
		if !r.extends {
			high = min(high, r.read)
		}
	}
	for i := range m.ranges {
		r := &m.ranges[i]
		low = max(low, r.written)
		high = min(high, c.validUntil(r))
	}
	switch {
	case low > high:
		v.fail()
	case low > max(c.host.NewestTS(), m.tx.TS)+1:
		v.reason = txnproto.LeaderChange // see "Change of leader" in the package comment
	}
	m.low = low
	m.tx.Vote = timestampVote(low, high)
}

// validUntil is the last timestamp at which a scan of the range now would find the
// same rows.
func (c *tictoc) validUntil(r *scanned) txnproto.Timestamp {
	if r.torn {
		return 0
	}
	high := forever
	for _, x := range c.changes.since(r.at) {
		if r.has(x.key) {
			high = min(high, max(x.ts, 1)-1)
		}
	}
	for _, s := range c.special {
		o := &c.members[s]
		for _, k := range o.structural {
			if r.has(k) {
				high = min(high, max(o.low, 1)-1)
			}
		}
	}
	return high
}

// enter locks what m writes. A transaction of one branch knows its timestamp now.
func (c *tictoc) enter(m *member) {
	for i := range m.tx.Puts {
		k := m.tx.Puts[i].Key
		c.rows.at(k).base = c.host.Store().Get(k).Version
	}
	if m.unknown {
		m.low = 0
		return
	}
	if !m.guards {
		c.extend(m, m.low)
	}
}

// extend makes what m has read valid until it commits.
func (c *tictoc) extend(m *member, ts txnproto.Timestamp) {
	for i := range m.reads {
		if r := &m.reads[i]; r.extends && m.tx.Put(r.key) == nil {
			row := c.rows.at(r.key)
			row.read = max(row.read, ts)
		}
	}
	for i := range m.ranges {
		c.scans.raise(m.ranges[i].interval, ts)
	}
}

// leave installs the timestamps of a commit. Where its own was lost with a leader,
// it is taken to be the last that it can have been, and for who has scanned what it
// changes, the first.
func (c *tictoc) leave(m *member, o txnproto.Outcome) {
	if o != txnproto.Committed {
		return
	}
	ts := txnproto.Timestamp(m.tx.Agreed[0])
	switch {
	case !m.guards && !m.unknown:
		ts = m.low
	case ts == 0:
		ts = max(c.host.NewestTS()+1, m.low)
	}
	if ts < m.low {
		panic(fmt.Sprintf("optimistic: %v commits at %d, not before %d here", m.id, ts, m.low))
	}
	if m.tx.Agreed[0] != 0 && !m.unknown {
		m.low = ts
	}
	for i := range m.tx.Puts {
		p := &m.tx.Puts[i]
		row := c.rows.at(p.Key)
		row.written, row.read = ts, max(row.read, ts)
		c.removed.set(p.Key, p.Deleted, ts)
	}
	switch {
	case m.unknown:
		c.rows.raise(ts)
		c.scans.raise(interval{0, maxKey}, ts)
	case m.guards:
		c.extend(m, ts)
	}
}

// String shows the members and the timestamps, for tests.
func (c *tictoc) String() string { return c.Describe(nil) }

// Describe implements txnproto.Describer: as the others, and the timestamps.
func (c *tictoc) Describe(n *txnproto.Names) string {
	var b strings.Builder
	b.WriteString(c.shared.Describe(n))
	c.rows.describe(&b, n)
	c.scans.describe(&b, n)
	return b.String()
}
