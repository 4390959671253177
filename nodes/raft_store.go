package nodes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// raftStore is a replica's log and stable store. It keeps what the library has
// written in memory, which is what the library reads, and beside it the list of
// writes that the log disk has not synced yet:
//
//	write ─▶ log, vars           (read by the library at once)
//	     └─▶ ops ── sync() ─▶ data file, if there is one
//	              └ crash() ─▶ taken back
//
// So a data file holds at any moment what the simulated disk has synced, and a
// crash loses exactly the rest. The file is written by the loop, between
// stimuli: a system call within one would let other goroutines of the library
// overtake.
type raftStore struct {
	mu   sync.Mutex
	log  []raft.Log // log[head:] are the entries, consecutive
	head int
	vars map[string][]byte

	valueBytes int // payload of a row

	ops   []storeOp // not synced, oldest first
	bytes int       // of the ops that are not on their way to the disk yet
	dirty bool      // there are such

	file *boltFile
}

// storeOp is one write: how to take it back and, with a data file, how to do it.
type storeOp struct {
	kind  storeOpKind
	index uint64     // append: of the first entry; delete: from, and to below
	to    uint64     // append, delete: of the last entry
	logs  []raft.Log // append: the entries, with a file; delete: the deleted entries
	key   string     // set
	old   []byte     // set: nil when there was none
	value []byte
}

type storeOpKind uint8

const (
	opAppend storeOpKind = iota
	opDeleteHead
	opDeleteTail
	opSet
)

// errNotFound has the text by which the library knows a missing key.
var errNotFound = errors.New("not found")

var (
	_ raft.LogStore          = (*raftStore)(nil)
	_ raft.StableStore       = (*raftStore)(nil)
	_ raft.MonotonicLogStore = (*raftStore)(nil)
)

const (
	ownEntryBytes = 24 // of an entry of the library's own, on disk and in messages
	varBytes      = 32 // of a term or a vote on disk
)

func newRaftStore(valueBytes int) *raftStore {
	return &raftStore{vars: map[string][]byte{}, valueBytes: valueBytes}
}

// logBytes is what an entry weighs on disk and in messages.
func logBytes(l *raft.Log, valueBytes int) int {
	if l.Type == raft.LogCommand {
		return commandBytes(l.Data, valueBytes)
	}
	return ownEntryBytes + len(l.Data)
}

// commandBytes is Entry.Size of an encoded command.
func commandBytes(b []byte, valueBytes int) int {
	return len(b) - commandHead + int(binary.LittleEndian.Uint32(b))*valueBytes
}

// A command is the data of a log entry: the number of rows that the Entry
// writes, which is what its size depends on beside its encoding, and the Entry.
const commandHead = 4

func encodeCommand(e *Entry) []byte {
	b := make([]byte, 0, commandHead+e.Size(0))
	return e.AppendTo(binary.LittleEndian.AppendUint32(b, uint32(len(e.Puts)+len(e.Remote))))
}

func decodeCommand(b []byte, e *Entry) error { return e.Decode(b[commandHead:]) }

// IsMonotonic implements raft.MonotonicLogStore: a log has no gaps.
func (s *raftStore) IsMonotonic() bool { return true }

// FirstIndex implements raft.LogStore.
func (s *raftStore) FirstIndex() (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, _ := s.span()
	return first, nil
}

// LastIndex implements raft.LogStore.
func (s *raftStore) LastIndex() (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, last := s.span()
	return last, nil
}

// span returns the indexes of the first and the last entry, 0 and 0 without any.
func (s *raftStore) span() (first, last uint64) {
	if s.head == len(s.log) {
		return 0, 0
	}
	return s.log[s.head].Index, s.log[len(s.log)-1].Index
}

// GetLog implements raft.LogStore.
func (s *raftStore) GetLog(index uint64, l *raft.Log) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, last := s.span()
	if first == 0 || index < first || index > last {
		return raft.ErrLogNotFound
	}
	*l = s.log[s.head+int(index-first)]
	return nil
}

// StoreLog implements raft.LogStore.
func (s *raftStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (s *raftStore) StoreLogs(logs []*raft.Log) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range logs {
		if _, last := s.span(); last != 0 && l.Index != last+1 {
			return fmt.Errorf("nodes: entry %d stored after %d", l.Index, last)
		}
		s.log = append(s.log, *l)
		s.bytes += logBytes(l, s.valueBytes)
	}
	op := storeOp{kind: opAppend, index: logs[0].Index, to: logs[len(logs)-1].Index}
	if s.file != nil {
		op.logs = slices.Clone(s.log[len(s.log)-len(logs):])
	}
	s.ops = append(s.ops, op)
	s.dirty = true
	return nil
}

// DeleteRange implements raft.LogStore. The library deletes from either end.
func (s *raftStore) DeleteRange(lo, hi uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, last := s.span()
	if first == 0 {
		return nil
	}
	lo, hi = max(lo, first), min(hi, last)
	switch {
	case lo > hi:
		return nil
	case lo == first:
		// A snapshot made these needless. Nothing rests on their being gone, so
		// no sync is asked for: the next one takes it along.
		s.ops = append(s.ops, storeOp{kind: opDeleteHead, index: lo, to: hi, logs: s.cutHead(hi)})
	case hi == last:
		s.ops = append(s.ops, storeOp{kind: opDeleteTail, index: lo, to: hi, logs: s.cutTail(lo)})
		s.bytes += ownEntryBytes
		s.dirty = true
	default:
		return fmt.Errorf("nodes: entries %d to %d deleted from the middle of %d to %d", lo, hi, first, last)
	}
	return nil
}

// cutHead removes the entries up to index hi and returns them.
func (s *raftStore) cutHead(hi uint64) []raft.Log {
	first, _ := s.span()
	n := int(hi - first + 1)
	cut := slices.Clone(s.log[s.head : s.head+n])
	clear(s.log[s.head : s.head+n])
	s.head += n
	if s.head > len(s.log)/2 {
		k := copy(s.log, s.log[s.head:])
		clear(s.log[k:])
		s.log, s.head = s.log[:k], 0
	}
	return cut
}

// cutTail removes the entries from index lo on and returns them.
func (s *raftStore) cutTail(lo uint64) []raft.Log {
	first, _ := s.span()
	if first == 0 {
		return nil
	}
	k := s.head
	if lo > first {
		k = min(s.head+int(lo-first), len(s.log))
	}
	cut := slices.Clone(s.log[k:])
	clear(s.log[k:])
	s.log = s.log[:k]
	return cut
}

// Set implements raft.StableStore.
func (s *raftStore) Set(key, val []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.vars[string(key)]
	if ok && string(old) == string(val) {
		return nil // the library sets the term anew at every start
	}
	v := slices.Clone(val)
	if v == nil {
		v = []byte{}
	}
	s.vars[string(key)] = v
	s.ops = append(s.ops, storeOp{kind: opSet, key: string(key), old: old, value: v})
	s.bytes += varBytes
	s.dirty = true
	return nil
}

// Get implements raft.StableStore.
func (s *raftStore) Get(key []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.vars[string(key)]
	if !ok {
		return nil, errNotFound
	}
	return v, nil
}

// SetUint64 implements raft.StableStore.
func (s *raftStore) SetUint64(key []byte, val uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, val))
}

// GetUint64 implements raft.StableStore.
func (s *raftStore) GetUint64(key []byte) (uint64, error) {
	v, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(v), nil
}

// pending returns the bytes written since the last call and how many ops there
// are now, or false when nothing was written that a sync is needed for.
func (s *raftStore) pending() (bytes, ops int, dirty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bytes, dirty = s.bytes, s.dirty
	s.bytes, s.dirty = 0, false
	return bytes, len(s.ops), dirty
}

// sync makes the n oldest ops durable. A failure of the data file is returned;
// in memory they are durable all the same.
func (s *raftStore) sync(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.file != nil {
		err = s.file.write(s.ops[:n])
	}
	k := copy(s.ops, s.ops[n:])
	clear(s.ops[k:])
	s.ops = s.ops[:k]
	return err
}

// crash takes back the ops that were not synced, newest first.
func (s *raftStore) crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, op := range slices.Backward(s.ops) {
		switch op.kind {
		case opAppend:
			s.cutTail(op.index)
		case opDeleteTail:
			s.log = append(s.log, op.logs...)
		case opDeleteHead:
			s.log = append(slices.Clone(op.logs), s.log[s.head:]...)
			s.head = 0
		case opSet:
			if op.old == nil {
				delete(s.vars, op.key)
			} else {
				s.vars[op.key] = op.old
			}
		default:
			panic("nodes: unknown write of a log store")
		}
	}
	s.ops, s.bytes, s.dirty = s.ops[:0], 0, false
}

// fitTo clears a log that a snapshot up to index has overtaken: entries were
// applied and covered by the snapshot, and lost before they were synced.
func (s *raftStore) fitTo(index uint64) error {
	first, last := func() (uint64, uint64) { s.mu.Lock(); defer s.mu.Unlock(); return s.span() }()
	if first == 0 || last >= index {
		return nil
	}
	return s.DeleteRange(first, last)
}
