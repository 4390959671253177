package controltest

import "interleave/txnproto"

// claim makes what a is to be sequenced with, from its program and from a look into
// the ranges that it scans. It reports whether there is something to sequence.
func (d *Driver) claim(a *Attempt, ops []txnproto.Op) bool {
	if !d.Protocol.Sequenced {
		return false
	}
	claims := txnproto.Claims(nil, withoutRollBack(ops), d.sharding())
	for i := range claims {
		r := &claims[i]
		if !r.Ranged() {
			continue
		}
		store := d.Shards[r.Shard].store
		for k, ok := store.NextKey(r.Key); ok && k < r.End; k, ok = store.NextKey(k + 1) {
			r.Rows++
			claims = append(claims, txnproto.Claim{Key: k, Shard: r.Shard})
			r = &claims[i]
		}
	}
	a.Claims = txnproto.SortClaims(claims)
	return len(claims) > 0
}

// home is the shard that sequences a: that of its first operation.
func (d *Driver) home(a *Attempt, ops []txnproto.Op) *Shard {
	return d.Shards[txnproto.Claims(nil, withoutRollBack(ops), d.sharding())[0].Shard]
}

// unvisited are the shards where a has claims and no branch.
func (d *Driver) unvisited(a *Attempt) []*Shard {
	var shards []*Shard
	last := txnproto.ShardID(-1)
	for i := range a.Claims {
		if id := a.Claims[i].Shard; id != last {
			last = id
			if a.branches[id] == nil {
				shards = append(shards, d.Shards[id])
			}
		}
	}
	return shards
}

// forgo tells the shards that a has not been to that it does not come.
func (d *Driver) forgo(a *Attempt) {
	for _, s := range d.unvisited(a) {
		s.Forgo(a)
	}
}

// forgo is Driver.forgo by messages.
func (s *session) forgo(a *Attempt) {
	for _, sh := range s.w.unvisited(a) {
		s.w.call(s.w.delay(), func() { sh.Forgo(a) })
	}
}

// Forgo gives up a's claims here.
func (s *Shard) Forgo(a *Attempt) {
	b := s.newBranch(a)
	a.branches[s.id] = nil
	s.end(b, txnproto.Aborted)
}

// Log puts a batch into the shard's log, which takes as long as a message.
func (s *Shard) Log(*txnproto.Batch) {
	s.mustBeInCall("Log")
	at := s.Now()
	if s.d.Latency != nil {
		at = at.Add(s.d.Latency())
	}
	s.batchAt = max(s.batchAt, at)
	term := s.term
	s.d.call(s.batchAt.Sub(s.Now()), func() {
		if s.term == term {
			s.enter(func() { s.control.(txnproto.Logger).Logged() })
		}
	})
}
