package controltest

import (
	"slices"

	"interleave/txnproto"
)

// store is a shard's committed state with every version that there was.
type store struct {
	versioning txnproto.Versioning
	rows       map[txnproto.Key][]txnproto.Row // in order of version
	present    []txnproto.Key                  // sorted
}

func newStore(v txnproto.Versioning) *store {
	return &store{versioning: v, rows: map[txnproto.Key][]txnproto.Row{}}
}

func (s *store) Get(k txnproto.Key) txnproto.Row {
	if rows := s.rows[k]; len(rows) > 0 {
		return rows[len(rows)-1]
	}
	return txnproto.Row{Key: k}
}

// At returns the newest row whose version is not above v, the newest of all for 0.
func (s *store) At(k txnproto.Key, v txnproto.Version) txnproto.Row {
	if v == 0 || !s.versioning.KeepsOld() {
		return s.Get(k)
	}
	rows := s.rows[k]
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].Version <= v {
			return rows[i]
		}
	}
	return txnproto.Row{Key: k}
}

func (s *store) Present(k txnproto.Key) bool { return s.Get(k).Exists }

func (s *store) NextKey(k txnproto.Key) (txnproto.Key, bool) {
	i, _ := slices.BinarySearch(s.present, k)
	if i == len(s.present) {
		return 0, false
	}
	return s.present[i], true
}

// install applies tx's write as a version numbered by the protocol's rule.
func (s *store) install(tx *txnproto.Txn, p *txnproto.Put) {
	switch s.versioning {
	case txnproto.VersionLatest:
		p.Version = s.Get(p.Key).Version + 1
	case txnproto.VersionByCommit:
		p.Version = txnproto.Version(tx.CommitTS)
	case txnproto.VersionByBegin:
		p.Version = txnproto.Version(tx.TS)
	case txnproto.VersionByExposure:
		if p.Version <= s.Get(p.Key).Version {
			return // a later writer has committed first
		}
	default:
		panic("controltest: unknown versioning")
	}
	s.set(txnproto.Row{Key: p.Key, Value: p.Value, Version: p.Version, Exists: !p.Deleted})
}

func (s *store) set(r txnproto.Row) {
	rows := s.rows[r.Key]
	at := len(rows)
	for at > 0 && rows[at-1].Version > r.Version {
		at--
	}
	if !s.versioning.KeepsOld() {
		s.rows[r.Key] = append(rows[:0], r)
	} else {
		s.rows[r.Key] = slices.Insert(rows, at, r)
	}
	exists := s.Get(r.Key).Exists
	i, found := slices.BinarySearch(s.present, r.Key)
	switch {
	case exists && !found:
		s.present = slices.Insert(s.present, i, r.Key)
	case !exists && found:
		s.present = slices.Delete(s.present, i, i+1)
	}
}
