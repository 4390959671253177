package txnproto

import "fmt"

// Growth is what a session knows of the locks that its attempt holds: enough to say when
// it has reached its lock point, from which on it needs no other (Bernstein,
// Hadzilacos, Goodman 1987, ch. 3: a scheduler that does not learn of it must wait for the
// commit request). That is when every operation that may still come is on a row that
// an earlier one has locked as strongly.
//
// A scan that may still come is in the way of it, since what it locks depends on the rows
// that are there by then; and so is a rollback to a savepoint, after which the program
// may do anything. A program that foretells nothing is at its lock point when it asks to commit.
type Growth struct{ held []heldRow }

// heldRow is a row that is locked, exclusively or shared.
type heldRow struct {
	key       Key
	exclusive bool
}

// Reset forgets everything.
func (g *Growth) Reset() { g.held = g.held[:0] }

// Mark returns where the growth stands; Undo goes back there: locks taken since are given up.
func (g *Growth) Mark() int { return len(g.held) }

// Undo goes back to a mark.
func (g *Growth) Undo(mark int) { g.held = g.held[:mark] }

// Note takes an operation that is granted. present says that a row was found there: of an
// absent row nobody holds what it takes to write it, which is the gap around.
func (g *Growth) Note(op *Op, present bool) {
	switch op.Kind {
	case Read, LockShared:
		g.held = append(g.held, heldRow{op.Key, false})
	case ReadForUpdate, LockExclusive:
		g.held = append(g.held, heldRow{op.Key, present})
	case Write, Modify, Insert, Delete:
		g.held = append(g.held, heldRow{op.Key, true})
	case Scan, RollbackTo, Sequence, Reconnoitre:
	default:
		panic(fmt.Sprintf("txnproto: unknown operation %d", op.Kind))
	}
}

// Covers reports whether op needs no lock that is not held.
func (g *Growth) Covers(op *Op) bool {
	exclusive := false
	switch op.Kind {
	case Read, LockShared:
	case ReadForUpdate, LockExclusive, Write, Modify, Insert, Delete:
		exclusive = true
	case Scan, RollbackTo, Sequence, Reconnoitre:
		return false
	default:
		panic(fmt.Sprintf("txnproto: unknown operation %d", op.Kind))
	}
	for i := len(g.held) - 1; i >= 0; i-- {
		if h := &g.held[i]; h.key == op.Key && (h.exclusive || !exclusive) {
			return true
		}
	}
	return false
}

// CoversAll reports whether none of ops needs a lock that is not held.
func (g *Growth) CoversAll(ops []Op) bool {
	for i := range ops {
		if !g.Covers(&ops[i]) {
			return false
		}
	}
	return true
}

// Of a session whose controllers let go of rows early:

// foretell looks, before the operation under way is sent, whether it is the attempt's
// last that needs a lock.
func (s *session) foretell() {
	p, ok := s.prog.(Foreteller)
	if !ok {
		return
	}
	s.ahead = p.Ahead(s.ahead[:0])
	if s.past {
		if !s.growth.Covers(&s.op) {
			panic(fmt.Sprintf("txnproto: %v wants to %v key %d, which its program of %T has not foretold", s.tx.ID, s.op.Kind, s.op.Key, s.prog))
		}
		return
	}
	mark := s.growth.Mark()
	// Whether a read for update finds a row is not known yet.
	s.growth.Note(&s.op, false)
	s.past = s.growth.CoversAll(s.ahead)
	s.growth.Undo(mark)
	s.untold = s.past
}

// tellLockPoint writes into an operation's message what foretell has found. A scan over
// several shards is the last with its last part.
func (s *session) tellLockPoint(m *Msg) {
	if !s.past || s.op.Kind == Scan && s.untold && s.nextCovered() >= 0 {
		return
	}
	m.LockPoint = true
	s.addAhead(m)
}

// addAhead adds the operations that may still come at m's shard.
func (s *session) addAhead(m *Msg) {
	for i := range s.ahead {
		if s.c.cluster.ShardOf(s.ahead[i].Key) == m.Shard {
			m.Ahead = append(m.Ahead, s.ahead[i])
		}
	}
}

// grown takes the answer to an operation of the program: the locks it has brought, and,
// when it was the last that needed one, the news for the other branches.
func (s *session) grown(r *Row) {
	if !r.Skipped {
		s.growth.Note(&s.op, r.Exists)
	}
	if !s.untold {
		return
	}
	s.untold = false
	for i := range s.branches {
		b := &s.branches[i]
		if b.Shard == s.opShard {
			continue // it was told with the operation
		}
		m := s.msg(MsgRelease, b.Shard, b.node)
		m.Slot, m.LockPoint = b.Slot, true
		s.addAhead(m)
		s.c.cluster.FromClient(s.id, m)
	}
}
