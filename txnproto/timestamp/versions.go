package timestamp

import (
	"fmt"
	"strings"

	"interleave/txnproto"
	"interleave/txnproto/keymap"
)

// versions holds what mvto knows of the versions of every key touched: when each
// was written and the youngest that read it. Those that nobody can read any more
// fold into the key's base.
type versions struct {
	index keymap.Map // key -> chainID
	all   []chain
	nodes []version
	free  []versionID

	// pendingKeys holds the keys on which a write is pending, for scans.
	pendingKeys keymap.Ordered[chainID]
}

type (
	chainID   int32
	versionID int32
)

// chain is one key's versions.
type chain struct {
	newest  versionID
	pending int32
	base    txnproto.Timestamp // R of the version before the oldest listed
}

// version is a version that was written, committed or not.
type version struct {
	key     txnproto.Key
	ts      txnproto.Timestamp // of its writer
	read    txnproto.Timestamp // R: of the youngest that read it
	pending bool
	owner   int32 // slot of the writer, while pending
	chain   chainID
	next    versionID // the key's next older one
	nextOwn versionID // the writer's previous one, while pending
}

func newVersions() versions { return versions{all: make([]chain, 1), nodes: make([]version, 1)} }

// ensure returns k's chain; a new one has base as the R of what the store holds.
func (s *versions) ensure(k txnproto.Key, base txnproto.Timestamp) chainID {
	ref := s.index.Ref(k)
	if *ref == 0 {
		*ref = int32(len(s.all))
		s.all = append(s.all, chain{base: base})
	}
	return chainID(*ref)
}

// below returns the newest listed version that is older than ts, 0 for the base.
func (s *versions) below(id chainID, ts txnproto.Timestamp) versionID {
	v := s.all[id].newest
	for v != 0 && s.nodes[v].ts >= ts {
		v = s.nodes[v].next
	}
	return v
}

// of returns the version that the transaction of timestamp ts has pending, or 0.
func (s *versions) of(id chainID, ts txnproto.Timestamp) versionID {
	if s.all[id].pending == 0 {
		return 0
	}
	for v := s.all[id].newest; v != 0 && s.nodes[v].ts >= ts; v = s.nodes[v].next {
		if s.nodes[v].ts == ts {
			return v
		}
	}
	return 0
}

// readOf is where R of the version below ts stands.
func (s *versions) readOf(id chainID, v versionID) *txnproto.Timestamp {
	if v == 0 {
		return &s.all[id].base
	}
	return &s.nodes[v].read
}

// add lists a pending version.
func (s *versions) add(id chainID, n version) versionID {
	var v versionID
	if m := len(s.free); m > 0 {
		v = s.free[m-1]
		s.free = s.free[:m-1]
	} else {
		v = versionID(len(s.nodes))
		s.nodes = append(s.nodes, version{})
	}
	link := &s.all[id].newest
	for *link != 0 && s.nodes[*link].ts > n.ts {
		link = &s.nodes[*link].next
	}
	n.next, n.pending, n.chain = *link, true, id
	*link = v
	s.nodes[v] = n
	if s.all[id].pending++; s.all[id].pending == 1 {
		s.pendingKeys.Set(n.key, id)
	}
	return v
}

// settle makes a pending version committed or takes it off.
func (s *versions) settle(v versionID, committed bool) {
	n := &s.nodes[v]
	if s.all[n.chain].pending--; s.all[n.chain].pending == 0 {
		s.pendingKeys.Delete(n.key)
	}
	if committed {
		n.pending = false
		return
	}
	link := &s.all[n.chain].newest
	for *link != v {
		if *link == 0 {
			panic(fmt.Sprintf("timestamp: the version of key %d at %d is not listed", n.key, n.ts))
		}
		link = &s.nodes[*link].next
	}
	*link = n.next
	s.free = append(s.free, v)
}

// fold drops the versions that are behind a committed one of timestamp oldest or
// before, which becomes the base: nobody older than oldest comes any more.
func (s *versions) fold(id chainID, oldest txnproto.Timestamp) {
	link := &s.all[id].newest
	for *link != 0 && (s.nodes[*link].ts > oldest || s.nodes[*link].pending) {
		link = &s.nodes[*link].next
	}
	first := *link
	for v := first; v != 0; v = s.nodes[v].next {
		if s.nodes[v].pending {
			return // its end will come here again
		}
	}
	if first == 0 {
		return
	}
	s.all[id].base = s.nodes[first].read
	*link = 0
	for v := first; v != 0; {
		s.free = append(s.free, v)
		v = s.nodes[v].next
	}
}

func (s *versions) describe(c *multiversion, names *txnproto.Names) string {
	var keys keymap.Ordered[chainID]
	s.index.Each(func(k txnproto.Key, v int32) { keys.Set(k, chainID(v)) })
	var b strings.Builder
	for k, id, ok := keys.Ceil(0); ok; k, id, ok = keys.Ceil(k + 1) {
		b.WriteString(names.Key(k) + ":")
		for v := s.all[id].newest; v != 0; v = s.nodes[v].next {
			n := &s.nodes[v]
			fmt.Fprintf(&b, " v%d R=%d", n.ts, n.read)
			if n.pending {
				b.WriteString(" pending " + names.Txn(c.branches[n.owner].id))
			}
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " base R=%d\n", s.all[id].base)
	}
	return b.String()
}
