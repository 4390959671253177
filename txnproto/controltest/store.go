package controltest

import (
	"slices"

	"interleave/txnproto"
)

// store is a shard's committed state.
type store struct {
	rows    map[txnproto.Key]txnproto.Row
	present []txnproto.Key // sorted
}

func (s *store) Get(k txnproto.Key) txnproto.Row {
	r := s.rows[k]
	r.Key = k
	return r
}

// At returns the newest row: no others are kept.
func (s *store) At(k txnproto.Key, _ txnproto.Version) txnproto.Row { return s.Get(k) }

func (s *store) NextKey(k txnproto.Key) (txnproto.Key, bool) {
	i, _ := slices.BinarySearch(s.present, k)
	if i == len(s.present) {
		return 0, false
	}
	return s.present[i], true
}

// install applies a write as the key's next version.
func (s *store) install(p *txnproto.Put) {
	r := s.rows[p.Key]
	p.Version = r.Version + 1
	s.set(txnproto.Row{Key: p.Key, Value: p.Value, Version: p.Version, Exists: !p.Deleted})
}

func (s *store) set(r txnproto.Row) {
	s.rows[r.Key] = r
	i, found := slices.BinarySearch(s.present, r.Key)
	switch {
	case r.Exists && !found:
		s.present = slices.Insert(s.present, i, r.Key)
	case !r.Exists && found:
		s.present = slices.Delete(s.present, i, i+1)
	}
}
