package nodes

import (
	"sort"

	"github.com/tidwall/btree"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// record is a row that has been written since the start.
type record struct {
	key     txnproto.Key
	value   txnproto.Value
	version uint32 // 0: the slot is free
	deleted bool
}

// Store is one replica's committed rows of one shard: the newest version of
// each row and its number. Initial rows take no memory until they are written.
type Store struct {
	shard   txnproto.ShardID
	place   Placement
	base    txnproto.Workload
	initial txnproto.Key // keys below are initial rows
	slots   []record     // open addressing, linear probing; a power of two
	mask    uint64
	used    int
	beyond  btree.Set[txnproto.Key] // written keys that are no initial rows, tombstones included
}

const storeMinSlots = 64

// NewStore returns the shard's store in its initial state.
func NewStore(shard txnproto.ShardID, place Placement, base txnproto.Workload) *Store {
	return &Store{
		shard: shard, place: place, base: base, initial: txnproto.Key(base.InitialKeys()),
		slots: make([]record, storeMinSlots), mask: storeMinSlots - 1,
	}
}

// find returns the slot of k: its record, or the free slot where it would go.
func (s *Store) find(k txnproto.Key) *record {
	for i := rng.Hash(uint64(k), 0) & s.mask; ; i = (i + 1) & s.mask {
		if r := &s.slots[i]; r.version == 0 || r.key == k {
			return r
		}
	}
}

// Get returns the newest committed row of k.
func (s *Store) Get(k txnproto.Key) txnproto.Row {
	if r := s.find(k); r.version != 0 {
		return txnproto.Row{Key: k, Value: r.value, Version: txnproto.Version(r.version), Exists: !r.deleted}
	}
	if k < s.initial {
		return txnproto.Row{Key: k, Value: s.base.Initial(k), Exists: true}
	}
	return txnproto.Row{Key: k}
}

// Install makes p the newest version of its row and returns the version's number.
func (s *Store) Install(p *txnproto.Put) txnproto.Version {
	r := s.find(p.Key)
	if r.version == 0 {
		if 4*(s.used+1) > 3*len(s.slots) {
			s.grow()
			r = s.find(p.Key)
		}
		s.used++
		r.key = p.Key
		if p.Key >= s.initial {
			s.beyond.Insert(p.Key)
		}
	}
	r.version++
	r.value, r.deleted = p.Value, p.Deleted
	return txnproto.Version(r.version)
}

func (s *Store) grow() {
	old := s.slots
	s.slots = make([]record, 2*len(old))
	s.mask = uint64(len(s.slots) - 1)
	for i := range old {
		if old[i].version != 0 {
			*s.find(old[i].key) = old[i]
		}
	}
}

// NextKey returns the smallest present key >= k of the shard.
func (s *Store) NextKey(k txnproto.Key) (txnproto.Key, bool) {
	for k < s.initial {
		next, ok := s.place.Next(s.shard, k)
		if !ok || next >= s.initial {
			break
		}
		if r := s.find(next); r.version == 0 || !r.deleted {
			return next, true
		}
		k = next + 1
	}
	var found txnproto.Key
	ok := false
	s.beyond.Ascend(max(k, s.initial), func(b txnproto.Key) bool {
		if s.find(b).deleted {
			return true
		}
		found, ok = b, true
		return false
	})
	return found, ok
}

// Scan appends the shard's rows of [lo, hi) in key order: those present, and
// those known to be absent by a version.
func (s *Store) Scan(lo, hi txnproto.Key, rows []txnproto.Row) []txnproto.Row {
	for k := lo; k < min(hi, s.initial); k++ {
		next, ok := s.place.Next(s.shard, k)
		if !ok || next >= min(hi, s.initial) {
			break
		}
		k = next
		rows = append(rows, s.Get(k))
	}
	if hi > s.initial {
		s.beyond.Ascend(max(lo, s.initial), func(b txnproto.Key) bool {
			if b < hi {
				rows = append(rows, s.Get(b))
			}
			return b < hi
		})
	}
	return rows
}

// written returns the rows written since the start, in key order.
func (s *Store) written() []record {
	rows := make([]record, 0, s.used)
	for i := range s.slots {
		if s.slots[i].version != 0 {
			rows = append(rows, s.slots[i])
		}
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i].key < rows[j].key })
	return rows
}

// differs returns a key whose row is not the same in s and o.
func (s *Store) differs(o *Store) (txnproto.Key, bool) {
	for i := range s.slots {
		if r := &s.slots[i]; r.version != 0 && *o.find(r.key) != *r {
			return r.key, true
		}
	}
	for i := range o.slots {
		if r := &o.slots[i]; r.version != 0 && *s.find(r.key) != *r {
			return r.key, true
		}
	}
	return 0, false
}
