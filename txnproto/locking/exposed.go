package locking

import (
	"slices"

	"interleave/txnproto"
	"interleave/txnproto/keymap"
)

// exposures are the writes of a shard that others may see although they are not
// committed, each key's in the order of their versions, newest first. They lie over
// the store's rows: of a key's newest exposed write and its committed row, whichever
// has the higher version is what there is. (The committed row has it where a later writer
// has committed first.)
type exposures struct {
	newest keymap.Map // key -> exposureID
	keys   keySet     // those in newest, in order
	pool   []exposure // 0 is none
	free   []exposureID
}

type exposureID int32

// exposure is one exposed write.
type exposure struct {
	key     txnproto.Key
	value   txnproto.Value
	version txnproto.Version
	owner   owner
	older   exposureID // the same key's next
	deleted bool
	seen    bool // another transaction has read it
}

func (x *exposure) row() txnproto.Row {
	return txnproto.Row{Key: x.key, Value: x.value, Version: x.version, Exists: !x.deleted}
}

// add exposes o's write p, which has its version.
func (e *exposures) add(o owner, p *txnproto.Put) exposureID {
	var id exposureID
	if n := len(e.free); n > 0 {
		id = e.free[n-1]
		e.free = e.free[:n-1]
	} else {
		if len(e.pool) == 0 {
			e.pool = append(e.pool, exposure{})
		}
		id = exposureID(len(e.pool))
		e.pool = append(e.pool, exposure{})
	}
	ref := e.newest.Ref(p.Key)
	if *ref == 0 {
		e.keys.add(p.Key)
	}
	x := &e.pool[id]
	*x = exposure{key: p.Key, value: p.Value, version: p.Version, owner: o, deleted: p.Deleted}
	at := exposureID(*ref)
	if at == 0 || e.pool[at].version < x.version {
		x.older = at
		*ref = int32(id)
		return id
	}
	for next := e.pool[at].older; next != 0 && e.pool[next].version > x.version; next = e.pool[at].older {
		at = next
	}
	x.older = e.pool[at].older
	e.pool[at].older = id
	return id
}

// remove takes an exposure away.
func (e *exposures) remove(id exposureID) {
	k, older := e.pool[id].key, e.pool[id].older
	ref := e.newest.Ref(k)
	switch at := exposureID(*ref); {
	case at != id:
		for e.pool[at].older != id {
			at = e.pool[at].older
		}
		e.pool[at].older = older
	case older != 0:
		*ref = int32(older)
	default:
		e.newest.Delete(k)
		e.keys.Delete(k)
	}
	e.free = append(e.free, id)
}

// over returns the newest exposure of a key whose committed version is v, 0 when the committed
// row is newer than all or nothing is exposed.
func (e *exposures) over(k txnproto.Key, v txnproto.Version) exposureID {
	if id := exposureID(e.newest.Get(k)); id != 0 && e.pool[id].version > v {
		return id
	}
	return 0
}

// present reports whether k holds a row, exposed or committed.
func (e *exposures) present(s txnproto.Store, k txnproto.Key) bool {
	if e.newest.Get(k) != 0 {
		row := s.Get(k)
		if id := e.over(k, row.Version); id != 0 {
			return !e.pool[id].deleted
		}
		return row.Exists
	}
	return s.Present(k)
}

// nextKey returns the smallest key >= k that holds a row, exposed or committed.
func (e *exposures) nextKey(s txnproto.Store, k txnproto.Key) (txnproto.Key, bool) {
	for {
		next, ok := s.NextKey(k)
		x, _, exposed := e.keys.Ceil(k)
		switch {
		case !exposed || ok && next < x:
			return next, ok
		case e.present(s, x):
			return x, true
		case x == endOfKeys:
			return 0, false
		}
		k = x + 1
	}
}

// describe writes who exposes what, a line per key in key order, the oldest first:
//
//	5: exposed by T1, T2
func (e *exposures) describe(name func(owner) string, key func(txnproto.Key) string) string {
	text := ""
	var by []string
	for k, _, ok := e.keys.Ceil(0); ok; k, _, ok = e.keys.Ceil(k + 1) {
		by = by[:0]
		for id := exposureID(e.newest.Get(k)); id != 0; id = e.pool[id].older {
			by = append(by, name(e.pool[id].owner))
		}
		slices.Reverse(by)
		sep := ": exposed by "
		text += key(k)
		for _, n := range by {
			text += sep + n
			sep = ", "
		}
		text += "\n"
	}
	return text
}
