package txnproto

import "fmt"

// sequence asks for the attempt's place in the global order, under protocols that have
// one: what it will access must be known by then. Rows are declared; which rows a
// declared range holds is found out first by a reconnaissance that nothing protects.
func (s *session) sequence() {
	p, ok := s.prog.(Declarer)
	if !ok {
		panic(fmt.Sprintf("txnproto: a program of %T does not declare what it accesses", s.prog))
	}
	s.c.declared = p.Declare(s.c.declared[:0])
	s.claims = Claims(s.claims, s.c.declared, s.c.cluster)
	if len(s.claims) == 0 {
		s.advance(nil)
		return
	}
	s.home = s.claims[0].Shard
	s.phase, s.stepAt, s.declaredClaims = phaseReconnaissance, 0, len(s.claims)
	s.nextReconnaissance()
}

// nextReconnaissance looks into the next declared range or, after the last, sends the
// attempt to the sequencer of the first shard that it declared.
func (s *session) nextReconnaissance() {
	for ; s.stepAt < s.declaredClaims; s.stepAt++ {
		if c := &s.claims[s.stepAt]; c.Ranged() {
			s.op = Op{Kind: Reconnoitre, Key: c.Key, End: c.End}
			s.sendTo(c.Shard)
			return
		}
	}
	s.claims = SortClaims(s.claims)
	s.phase = phaseSequencing
	s.op = Op{Kind: Sequence, Key: s.claims[0].Key}
	s.meet(s.home)
	for i := range s.claims {
		s.meet(s.claims[i].Shard)
	}
	s.sendTo(s.home)
}

// reconnoitred notes the rows that a range holds.
func (s *session) reconnoitred(m *Msg) {
	found := &s.claims[s.stepAt]
	shard, rows := found.Shard, int32(0)
	for i := range m.Result.Rows {
		if r := &m.Result.Rows[i]; r.Exists {
			rows++
			s.claims = append(s.claims, Claim{Key: r.Key, Shard: shard})
		}
	}
	s.claims[s.stepAt].Rows = rows
	s.stepAt++
	s.nextReconnaissance()
}

// meet makes sure that shard is among those which hear of the attempt's end: it will be
// sent the attempt's claims, whether or not the attempt comes to an operation there.
func (s *session) meet(shard ShardID) {
	if s.ref(shard) == nil {
		s.branches = append(s.branches, branchRef{Branch: Branch{Shard: shard, Slot: -1}, node: nowhere})
	}
}

// nowhere is the node of a shard that the attempt has not been to.
const nowhere NodeID = -1

// sequenced takes the place and lets the program begin.
func (s *session) sequenced(m *Msg) {
	s.tx.Place = Place(m.Op.Value)
	s.phase = phaseProgram
	s.advance(nil)
}

// forgo gives up claims at shards that the attempt has not been to: they have no part
// in its commit.
func (s *session) forgo() {
	n := 0
	for i := range s.branches {
		b := &s.branches[i]
		if b.node != nowhere {
			s.branches[n] = *b
			n++
			continue
		}
		s.tellUnvisited(b.Shard, NoReason)
	}
	s.branches = s.branches[:n]
}

// tellUnvisited tells a shard that the attempt does not come (any more). A shard without a
// leader need not hear: its next one does not know of the claims.
func (s *session) tellUnvisited(shard ShardID, reason AbortReason) {
	node, ok := s.c.cluster.Leader(shard)
	if !ok {
		return
	}
	m := s.msg(MsgAbort, shard, node)
	m.Reason = reason
	s.c.cluster.FromClient(s.id, m)
}
