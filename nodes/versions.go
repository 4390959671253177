package nodes

import (
	"encoding/binary"

	"interleave/txnproto"
)

// appendOld appends the older versions and what is to be collected of them.
func (s *Store) appendOld(b []byte) []byte {
	le := binary.LittleEndian
	live := s.garbage[s.garbageAt:]
	b = le.AppendUint64(b, uint64(s.old))
	for _, r := range s.inKeyOrder() {
		for _, o := range s.older(r.cell) {
			b = appendPut(b, &txnproto.Put{Key: r.key, Value: o.value, Deleted: o.deleted})
			b = le.AppendUint32(b, o.version)
		}
	}
	b = le.AppendUint64(b, uint64(len(live)))
	for _, g := range live {
		b = le.AppendUint64(b, uint64(g.key))
		b = le.AppendUint32(b, g.version)
		b = le.AppendUint32(b, g.by)
	}
	return b
}

// readOld reads what appendOld wrote. The newest versions are there already.
func (s *Store) readOld(r *reader) {
	for i := r.u64(); i > 0 && !r.bad; i-- {
		p := r.put()
		newest := s.find(p.Key)
		if newest.version == 0 {
			r.bad = true
			return
		}
		at := s.chainOf(newest)
		s.chains[at] = append(s.chains[at], oldVersion{p.Value, r.u32(), p.Deleted})
		s.count(1)
	}
	for i := r.u64(); i > 0 && !r.bad; i-- {
		s.garbage = append(s.garbage, superseded{txnproto.Key(r.u64()), r.u32(), r.u32()})
	}
}
