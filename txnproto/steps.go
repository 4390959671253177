package txnproto

import "fmt"

// opPhase is on whose behalf a session runs its operation.
type opPhase uint8

const (
	phaseProgram        opPhase = iota // one operation of the program
	phaseScan                          // a scan, shard after shard
	phaseLocking                       // what the program declared, in order
	phaseRollingBack                   // a rollback to a savepoint, branch after branch
	phaseReconnaissance                // finding out which rows the declared ranges hold
	phaseSequencing                    // taking a place in the global order
)

// savepoint is a mark that a program has set.
type savepoint struct {
	name         int
	seq          int32
	reads, scans int // recorded before it
	growth       int // the mark then
}

// lockDeclared asks for everything that the program declares; see LockSet.
func (s *session) lockDeclared() {
	p, ok := s.prog.(Declarer)
	if !ok {
		panic(fmt.Sprintf("txnproto: a program of %T does not declare what it accesses", s.prog))
	}
	s.c.declared = p.Declare(s.c.declared[:0])
	s.declared = LockSet(s.declared, s.c.declared, s.c.cluster)
	s.phase, s.stepAt = phaseLocking, 0
	s.nextDeclared()
}

// onlyReads reports whether the program declares nothing but reads.
func (s *session) onlyReads() bool {
	p, ok := s.prog.(Declarer)
	if !ok {
		return false
	}
	s.c.declared = p.Declare(s.c.declared[:0])
	for i := range s.c.declared {
		if k := s.c.declared[i].Kind; k != Read && k != Scan {
			return false
		}
	}
	return true
}

// nextDeclared asks for the next declared lock, or lets the program begin.
func (s *session) nextDeclared() {
	if s.stepAt == len(s.declared) {
		s.phase = phaseProgram
		s.advance(nil)
		return
	}
	d := &s.declared[s.stepAt]
	s.stepAt++
	s.op = d.Op
	s.sendTo(d.Shard)
}

// setSavepoint sets or moves the savepoint name. No message: the branches learn
// of it with their next operation.
func (s *session) setSavepoint(name int) {
	s.saveSeq++
	for i := range s.saves {
		if s.saves[i].name == name {
			s.saves = append(s.saves[:i], s.saves[i+1:]...)
			break
		}
	}
	s.saves = append(s.saves, savepoint{name, s.saveSeq, len(s.reads), len(s.scans), s.growth.Mark()})
}

// rollbackTo undoes what was done since the savepoint name, which stays. What
// was read since then is no longer part of the attempt: locks on it may go.
func (s *session) rollbackTo(name int) {
	at := -1
	for i := range s.saves {
		if s.saves[i].name == name {
			at = i
		}
	}
	if at < 0 {
		panic(fmt.Sprintf("txnproto: %v rolls back to savepoint %d, which it has not set", s.tx.ID, name))
	}
	sp := s.saves[at]
	s.saves = s.saves[:at+1]
	s.reads, s.scans = s.reads[:sp.reads], s.scans[:sp.scans]
	s.growth.Undo(sp.growth)
	s.op = Op{Kind: RollbackTo, Value: Value(sp.seq)}
	s.phase, s.stepAt = phaseRollingBack, 0
	s.nextRollback()
}

// nextRollback tells the next branch, or lets the program go on.
func (s *session) nextRollback() {
	for s.stepAt < len(s.branches) && s.branches[s.stepAt].node == nowhere {
		s.stepAt++ // it has done nothing there
	}
	if s.stepAt == len(s.branches) {
		s.phase = phaseProgram
		s.advance(nil)
		return
	}
	shard := s.branches[s.stepAt].Shard
	s.stepAt++
	s.sendTo(shard)
}
