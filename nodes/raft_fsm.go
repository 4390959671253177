package nodes

import (
	"bytes"
	"fmt"
	"io"
	"runtime/debug"
	"sync"

	"github.com/hashicorp/raft"
)

// note is one entry that an instance has applied.
type note struct {
	index uint64
	term  uint64
	entry *Entry
}

// raftFSM gives an instance's committed entries to the replica's state machine,
// on the instance's goroutine, and notes them for the loop to take up.
type raftFSM struct {
	rep     *replica
	machine StateMachine

	mu       sync.Mutex
	notes    []note
	panicked error // the machine did; the loop panics with it
}

var _ raft.BatchingFSM = (*raftFSM)(nil)

// ApplyBatch implements raft.BatchingFSM.
func (f *raftFSM) ApplyBatch(logs []*raft.Log) (results []any) {
	results = make([]any, len(logs)) // none: Propose does not wait for any
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.catch()
	for _, l := range logs {
		if l.Type == raft.LogCommand && f.panicked == nil {
			f.apply(l)
		}
	}
	return results
}

// Apply implements raft.FSM.
func (f *raftFSM) Apply(l *raft.Log) any {
	f.ApplyBatch([]*raft.Log{l})
	return nil
}

func (f *raftFSM) apply(l *raft.Log) {
	e := new(Entry)
	if err := decodeCommand(l.Data, e); err != nil {
		panic(fmt.Sprintf("nodes: %v applies entry %d: %v", f.rep, l.Index, err))
	}
	// A no-op is the replication's own. Leaving it out keeps the machine's
	// state independent of how many were needed.
	if e.Kind != EntryNoop {
		f.machine.Apply(l.Index, e)
	}
	f.notes = append(f.notes, note{l.Index, l.Term, e})
}

// catch keeps a panic of the state machine for the loop: on this goroutine it
// would end the process without a word about the run.
func (f *raftFSM) catch() {
	if v := recover(); v != nil {
		f.panicked = fmt.Errorf("%v\n\n%s", v, debug.Stack())
	}
}

// Snapshot implements raft.FSM. The whole state is written at once: the
// simulation stands still meanwhile, so there is nothing to gain by waiting.
func (f *raftFSM) Snapshot() (raft.FSMSnapshot, error) {
	var b bytes.Buffer
	if err := f.machine.Snapshot(&b); err != nil {
		return nil, err
	}
	return fsmSnapshot(b.Bytes()), nil
}

// Restore implements raft.FSM.
func (f *raftFSM) Restore(rc io.ReadCloser) error { return f.machine.Restore(rc) }

// take returns the notes since the last call; they are valid until the next
// but one stimulus.
func (f *raftFSM) take(spare []note) ([]note, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	notes := f.notes
	f.notes = spare[:0]
	return notes, f.panicked
}

// fsmSnapshot is a state that was written by a state machine.
type fsmSnapshot []byte

// Persist implements raft.FSMSnapshot. The library closes the sink.
func (s fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	_, err := sink.Write(s)
	return err
}

// Release implements raft.FSMSnapshot.
func (s fsmSnapshot) Release() {}
