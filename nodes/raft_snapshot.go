package nodes

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/raft"
)

// snapshots keeps a replica's newest snapshot. A snapshot counts as durable as
// soon as it is complete: what it would cost to write is not modelled.
type snapshots struct {
	mu      sync.Mutex
	meta    raft.SnapshotMeta
	state   []byte
	has     bool
	unsaved bool // newer than what the data file holds
}

var _ raft.SnapshotStore = (*snapshots)(nil)

// Create implements raft.SnapshotStore.
func (s *snapshots) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration,
	cIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	if v != raft.SnapshotVersionMax {
		return nil, fmt.Errorf("nodes: snapshot of version %d, want %d", v, raft.SnapshotVersionMax)
	}
	return &snapshotSink{store: s, meta: raft.SnapshotMeta{
		Version: v, ID: fmt.Sprintf("%d-%d", term, index), Index: index, Term: term,
		Configuration: c, ConfigurationIndex: cIndex,
	}}, nil
}

// List implements raft.SnapshotStore.
func (s *snapshots) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.has {
		return nil, nil
	}
	meta := s.meta
	return []*raft.SnapshotMeta{&meta}, nil
}

// Open implements raft.SnapshotStore.
func (s *snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.has || s.meta.ID != id {
		return nil, nil, fmt.Errorf("nodes: no snapshot %s", id)
	}
	meta := s.meta
	return &meta, io.NopCloser(bytes.NewReader(s.state)), nil
}

// index returns up to where the newest snapshot goes, or 0.
func (s *snapshots) index() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meta.Index
}

// snapshotSink takes one snapshot.
type snapshotSink struct {
	store *snapshots
	meta  raft.SnapshotMeta
	state bytes.Buffer
	over  bool
}

// Write implements io.Writer.
func (k *snapshotSink) Write(p []byte) (int, error) { return k.state.Write(p) }

// ID implements raft.SnapshotSink.
func (k *snapshotSink) ID() string { return k.meta.ID }

// Cancel implements raft.SnapshotSink.
func (k *snapshotSink) Cancel() error {
	k.over = true
	return nil
}

// Close implements raft.SnapshotSink: the snapshot is complete.
func (k *snapshotSink) Close() error {
	if k.over {
		return nil
	}
	k.over = true
	k.meta.Size = int64(k.state.Len())
	s := k.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meta, s.state, s.has, s.unsaved = k.meta, k.state.Bytes(), true, true
	return nil
}

// encode returns the snapshot as a data file holds it: the length of the
// description, the description in JSON, the state.
func (s *snapshots) encode() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	meta, err := json.Marshal(s.meta)
	if err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", s.meta.ID, err)
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(meta)))
	return append(append(b, meta...), s.state...), nil
}

// decode replaces s by an encoded snapshot; an empty one is none.
func (s *snapshots) decode(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meta, s.state, s.has, s.unsaved = raft.SnapshotMeta{}, nil, false, false
	if len(b) == 0 {
		return nil
	}
	if len(b) < 4 || uint64(len(b)) < 4+uint64(binary.LittleEndian.Uint32(b)) {
		return fmt.Errorf("snapshot of %d bytes is cut short", len(b))
	}
	n := 4 + binary.LittleEndian.Uint32(b)
	if err := json.Unmarshal(b[4:n], &s.meta); err != nil {
		return fmt.Errorf("description of a snapshot: %w", err)
	}
	s.state, s.has = b[n:], true
	return nil
}
