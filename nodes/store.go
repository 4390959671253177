package nodes

import (
	"fmt"
	"sort"

	"github.com/tidwall/btree"

	"interleave/txnproto"
)

// oldVersion is a version that a newer one has superseded.
type oldVersion struct {
	value   txnproto.Value
	version txnproto.Version
	deleted bool
}

// superseded says that a version of key may go once nothing reads below by.
type superseded struct {
	key     txnproto.Key
	version txnproto.Version
	by      txnproto.Version
}

// Store is one replica's committed rows of one shard: the newest version of
// each row, its number, and, under multiversion protocols, the older versions
// that a snapshot may still need. Initial rows take no memory until they are
// written.
type Store struct {
	shard      txnproto.ShardID
	place      Placement
	base       txnproto.Workload
	sparse     txnproto.Sparse // nil: every initial key holds a row
	versioning txnproto.Versioning
	initial    txnproto.Key // keys below are initial rows
	rows       *rows
	cell       int                     // of this replica within a slot of rows
	written    int                     // rows written since the start
	beyond     btree.Set[txnproto.Key] // written keys that are no initial rows, tombstones included

	chains    [][]oldVersion // oldest first
	garbage   []superseded   // in order of installation
	garbageAt int            // the first not yet collected
	old, most int            // old versions now, and at most

	tombstones int // rows whose newest version is a deletion
}

// NewStore returns the shard's store in its initial state.
func NewStore(shard txnproto.ShardID, place Placement, base txnproto.Workload, v txnproto.Versioning) *Store {
	return newStoreIn(newRows(1, shard, place, txnproto.Key(base.InitialKeys())), 0, shard, place, base, v)
}

// newStoreIn is NewStore for a replica whose rows are in a table that it shares.
// REQUIRES: its cells there are empty.
func newStoreIn(t *rows, replica int, shard txnproto.ShardID, place Placement, base txnproto.Workload, v txnproto.Versioning) *Store {
	sparse, _ := base.(txnproto.Sparse)
	return &Store{
		shard: shard, place: place, base: base, sparse: sparse, versioning: v, initial: txnproto.Key(base.InitialKeys()),
		rows: t, cell: 1 + replica,
	}
}

// unwritten is what find returns of a row without a slot: it is not to be changed.
var unwritten cell

// find returns what the store holds of k: empty where it has not been written.
func (s *Store) find(k txnproto.Key) *cell {
	at, ok := s.rows.find(k)
	if !ok {
		return &unwritten
	}
	return s.rows.at(at + s.cell)
}

// Get returns the newest committed row of k.
func (s *Store) Get(k txnproto.Key) txnproto.Row {
	if r := s.find(k); !r.empty() {
		return r.row(k)
	}
	return s.first(k)
}

// Present reports whether k holds a row. Where nothing has been deleted it need
// not look the row up: initial rows are there, and of the others those written.
func (s *Store) Present(k txnproto.Key) bool {
	switch {
	case s.tombstones > 0:
		return s.Get(k).Exists
	case s.hasFirst(k):
		return true
	case s.beyond.Len() == 0 && s.sparse == nil:
		return false
	default:
		return !s.find(k).empty()
	}
}

// first is the row of k in the initial state.
func (s *Store) first(k txnproto.Key) txnproto.Row {
	if s.hasFirst(k) {
		return txnproto.Row{Key: k, Value: s.base.Initial(k), Exists: true}
	}
	return txnproto.Row{Key: k}
}

// hasFirst reports whether k holds a row in the initial state.
func (s *Store) hasFirst(k txnproto.Key) bool {
	return k < s.initial && (s.sparse == nil || !s.sparse.Absent(k))
}

// At returns the newest row of k whose version is not above v; 0 stands for the
// newest of all.
func (s *Store) At(k txnproto.Key, v txnproto.Version) txnproto.Row {
	at, ok := s.rows.find(k)
	if !ok {
		return s.first(k)
	}
	r := s.rows.at(at + s.cell)
	switch {
	case r.empty():
		return s.first(k)
	case v == 0 || s.versioning == txnproto.VersionLatest || r.version() <= v:
		return r.row(k)
	}
	chain := s.older(at + s.cell)
	for j := len(chain) - 1; j >= 0; j-- {
		if o := &chain[j]; o.version <= v {
			return txnproto.Row{Key: k, Value: o.value, Version: o.version, Exists: !o.deleted}
		}
	}
	return s.first(k)
}

// Install makes p a committed version of its row and returns its number: v, or
// the next one where v is 0 or the store keeps the newest only.
func (s *Store) Install(p *txnproto.Put, v txnproto.Version) txnproto.Version {
	at := s.rows.claim(p.Key) + s.cell
	r := s.rows.at(at)
	if r.empty() {
		s.written++
		if p.Key >= s.initial {
			s.beyond.Insert(p.Key)
		}
	}
	if s.versioning == txnproto.VersionLatest {
		v = r.version() + 1
		s.set(r, oldVersion{p.Value, v, p.Deleted})
		return v
	}
	if most := s.mostVersion(); v == 0 || v > most {
		panic(fmt.Sprintf("nodes: key %d gets version %d, want 1 to %d", p.Key, v, most))
	}
	if s.versioning == txnproto.VersionByExposure {
		if v > r.version() { // else a later writer has committed first
			s.set(r, oldVersion{p.Value, v, p.Deleted})
		}
		return v
	}
	s.installVersion(at, p, v)
	return v
}

// prefetch asks for the memory of k's row, which will be looked up soon.
func (s *Store) prefetch(k txnproto.Key) { s.rows.prefetch(k) }

// installVersion adds a version to a row that keeps its older ones.
func (s *Store) installVersion(at int, p *txnproto.Put, v txnproto.Version) {
	r, n := s.rows.at(at), oldVersion{p.Value, v, p.Deleted}
	if r.version() == v {
		panic(fmt.Sprintf("nodes: version %d of key %d is installed twice", v, p.Key))
	}
	if v < r.version() {
		s.insertOld(at, p.Key, n) // behind newer ones: its place is by its number
		return
	}
	if !r.empty() {
		s.garbage = append(s.garbage, superseded{p.Key, r.version(), v})
		i := s.chainOf(at)
		s.chains[i] = append(s.chains[i], oldVersion{r.value, r.version(), r.deleted()})
		s.count(1)
	}
	s.set(r, n)
}

// set makes n the newest version of r.
func (s *Store) set(r *cell, n oldVersion) {
	if r.deleted() {
		s.tombstones--
	}
	r.value, r.state = n.value, uint64(n.version)<<1
	if n.deleted {
		r.state |= 1
		s.tombstones++
	}
}

// insertOld puts a version between older ones.
func (s *Store) insertOld(row int, k txnproto.Key, n oldVersion) {
	i := s.chainOf(row)
	chain := append(s.chains[i], oldVersion{})
	at := len(chain) - 1
	for at > 0 && chain[at-1].version > n.version {
		chain[at] = chain[at-1]
		at--
	}
	chain[at] = n
	s.chains[i] = chain
	by := s.rows.at(row).version()
	if at+1 < len(chain) {
		by = chain[at+1].version
	}
	s.garbage = append(s.garbage, superseded{k, n.version, by})
	s.count(1)
}

// chainOf returns the index of the older versions of the row in cell at.
func (s *Store) chainOf(at int) uint32 {
	i := s.rows.olderAt(at)
	if *i == 0 {
		s.chains = append(s.chains, nil)
		*i = uint32(len(s.chains))
	}
	return *i - 1
}

func (s *Store) count(d int) {
	s.old += d
	s.most = max(s.most, s.old)
}

// Collect drops the versions that no reader at watermark or later can see, in
// the order in which they were superseded. All replicas are told the same
// watermarks by the log.
func (s *Store) Collect(watermark txnproto.Version) {
	for s.garbageAt < len(s.garbage) {
		g := s.garbage[s.garbageAt]
		if g.by > watermark {
			break
		}
		s.garbageAt++
		at, _ := s.rows.find(g.key)
		i := s.chainOf(at + s.cell)
		chain := s.chains[i]
		for j := range chain {
			if chain[j].version == g.version {
				s.chains[i] = append(chain[:j], chain[j+1:]...)
				s.count(-1)
				break
			}
		}
	}
	if s.garbageAt > 1024 && 2*s.garbageAt > len(s.garbage) {
		n := copy(s.garbage, s.garbage[s.garbageAt:])
		s.garbage, s.garbageAt = s.garbage[:n], 0
	}
}

// NextKey returns the smallest present key >= k of the shard.
func (s *Store) NextKey(k txnproto.Key) (txnproto.Key, bool) {
	for k < s.initial {
		next, ok := s.place.Next(s.shard, k)
		if !ok || next >= s.initial {
			break
		}
		if r := s.find(next); r.empty() && s.hasFirst(next) || !r.empty() && !r.deleted() {
			return next, true
		}
		k = next + 1
	}
	var found txnproto.Key
	ok := false
	s.beyond.Ascend(max(k, s.initial), func(b txnproto.Key) bool {
		if s.find(b).deleted() {
			return true
		}
		found, ok = b, true
		return false
	})
	return found, ok
}

// Scan appends the shard's rows of [lo, hi) in key order, as At finds them:
// those present, and those known to be absent by a version.
func (s *Store) Scan(lo, hi txnproto.Key, v txnproto.Version, rows []txnproto.Row) []txnproto.Row {
	for k := lo; k < min(hi, s.initial); k++ {
		next, ok := s.place.Next(s.shard, k)
		if !ok || next >= min(hi, s.initial) {
			break
		}
		k = next
		if row := s.At(k, v); row.Exists || row.Version != 0 {
			rows = append(rows, row)
		}
	}
	if hi > s.initial {
		s.beyond.Ascend(max(lo, s.initial), func(b txnproto.Key) bool {
			if b >= hi {
				return false
			}
			if row := s.At(b, v); row.Version != 0 {
				rows = append(rows, row)
			}
			return true
		})
	}
	return rows
}

// writtenRow is a row that has been written since the start.
type writtenRow struct {
	key txnproto.Key
	at  int // its cell
	*cell
}

// all yields the rows written since the start, in no order of use.
func (s *Store) all(yield func(writtenRow) bool) {
	for at, k := range s.rows.all {
		c := s.rows.at(at + s.cell)
		if !c.empty() && !yield(writtenRow{k, at + s.cell, c}) {
			return
		}
	}
}

// inKeyOrder returns the rows written since the start, in key order.
func (s *Store) inKeyOrder() []writtenRow {
	out := make([]writtenRow, 0, s.written)
	for r := range s.all {
		out = append(out, r)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].key < out[j].key })
	return out
}

// appendDeleted appends the keys of the initial rows that have been deleted, in no
// order of use.
func (s *Store) appendDeleted(keys []txnproto.Key) []txnproto.Key {
	if s.tombstones == 0 {
		return keys
	}
	for r := range s.all {
		if r.deleted() && s.hasFirst(r.key) {
			keys = append(keys, r.key)
		}
	}
	return keys
}

// differs returns a key whose row is not the same in s and o.
func (s *Store) differs(o *Store) (txnproto.Key, bool) {
	k, ok := s.lacks(o)
	if !ok && s.rows != o.rows {
		k, ok = o.lacks(s)
	}
	return k, ok
}

// lacks returns a key of o's whose row is not the same in s; where they share a
// table, a key of either.
func (s *Store) lacks(o *Store) (txnproto.Key, bool) {
	for at, k := range o.rows.all {
		theirs, mine, ok := o.rows.at(at+o.cell), at, true
		switch {
		case s.rows == o.rows:
		case theirs.empty():
			continue
		default:
			mine, ok = s.rows.find(k)
		}
		if !ok || *s.rows.at(mine + s.cell) != *theirs || !sameChain(s.older(mine+s.cell), o.older(at+o.cell)) {
			return k, true
		}
	}
	return 0, false
}

// older returns the older versions of the row in cell at, oldest first.
func (s *Store) older(at int) []oldVersion {
	if s.rows.older == nil || s.rows.older[at] == 0 {
		return nil
	}
	return s.chains[s.rows.older[at]-1]
}

func sameChain(a, b []oldVersion) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
