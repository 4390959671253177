package nodes

import (
	"encoding/binary"
	"math"

	"interleave/txnproto"
)

// appendOld appends the older versions and what is to be collected of them.
func (s *Store) appendOld(b []byte) []byte {
	le := binary.LittleEndian
	live := s.garbage[s.garbageAt:]
	b = le.AppendUint64(b, uint64(s.old))
	for _, r := range s.inKeyOrder() {
		for _, o := range s.older(r.at) {
			b = appendPut(b, &txnproto.Put{Key: r.key, Value: o.value, Deleted: o.deleted})
			b = s.appendVersion(b, o.version)
		}
	}
	b = le.AppendUint64(b, uint64(len(live)))
	for _, g := range live {
		b = le.AppendUint64(b, uint64(g.key))
		b = s.appendVersion(b, g.version)
		b = s.appendVersion(b, g.by)
	}
	return b
}

// readOld reads what appendOld wrote. The newest versions are there already.
func (s *Store) readOld(r *reader) {
	for i := r.u64(); i > 0 && !r.bad; i-- {
		p := r.put()
		row, ok := s.rows.find(p.Key)
		if !ok {
			r.bad = true
			return
		}
		at := s.chainOf(row + s.cell)
		s.chains[at] = append(s.chains[at], oldVersion{p.Value, s.readVersion(r), p.Deleted})
		s.count(1)
	}
	for i := r.u64(); i > 0 && !r.bad; i-- {
		s.garbage = append(s.garbage, superseded{txnproto.Key(r.u64()), s.readVersion(r), s.readVersion(r)})
	}
}

// mostVersion is the largest number of a version: timestamps may come from clocks, and
// are large then.
func (s *Store) mostVersion() txnproto.Version {
	if s.versioning.KeepsOld() {
		return math.MaxInt64
	}
	return math.MaxUint32
}

// appendVersion appends a version as wide as mostVersion.
func (s *Store) appendVersion(b []byte, v txnproto.Version) []byte {
	if s.versioning.KeepsOld() {
		return binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return binary.LittleEndian.AppendUint32(b, uint32(v))
}

func (s *Store) readVersion(r *reader) txnproto.Version {
	if s.versioning.KeepsOld() {
		return txnproto.Version(r.u64())
	}
	return txnproto.Version(r.u32())
}
