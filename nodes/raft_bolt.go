package nodes

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// boltFile is a replica's data file: what the simulated disk has synced, as
// raft-boltdb stores it. It is not synced itself. Whether an entry survives a
// crash of a node is the model's business, and a crash of the simulator's own
// machine ends the run anyway.
//
// Writes are gathered and done many at a time, at the latest when the file is
// closed, which a crash of its node does: until then nobody reads it.
type boltFile struct {
	path  string
	store *raftboltdb.BoltStore
	queue []storeOp
}

// boltQueue is how many writes are gathered at most.
const boltQueue = 256

// keySnapshot is where a data file has the newest snapshot, among the variables.
const keySnapshot = "Snapshot"

// knownKeys are the variables that the library keeps in a stable store.
var knownKeys = []string{"CurrentTerm", "LastVoteTerm", "LastVoteCand"}

func openBolt(path string) (*boltFile, error) {
	st, err := raftboltdb.New(raftboltdb.Options{
		Path:   path,
		NoSync: true,
		BoltOptions: &bbolt.Options{
			Timeout:        time.Second, // another process has it open
			NoFreelistSync: true,
			FreelistType:   bbolt.FreelistMapType,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &boltFile{path: path, store: st}, nil
}

// write does ops, in order, now or later.
func (f *boltFile) write(ops []storeOp) error {
	f.queue = append(f.queue, ops...)
	if len(f.queue) < boltQueue {
		return nil
	}
	return f.flush()
}

// flush does what is queued. Appends that follow each other become one
// transaction.
func (f *boltFile) flush() error {
	ops := f.queue
	defer func() {
		clear(f.queue)
		f.queue = f.queue[:0]
	}()
	var run []*raft.Log
	store := func() error {
		if len(run) == 0 {
			return nil
		}
		err := f.store.StoreLogs(run)
		run = run[:0]
		return err
	}
	for i := range ops {
		op := &ops[i]
		var err error
		if op.kind != opAppend {
			err = store()
		}
		switch op.kind {
		case opAppend:
			for j := range op.logs {
				run = append(run, &op.logs[j])
			}
		case opDeleteHead, opDeleteTail:
			err = errors.Join(err, f.store.DeleteRange(op.index, op.to))
		case opSet:
			err = errors.Join(err, f.store.Set([]byte(op.key), op.value))
		default:
			panic("nodes: unknown write of a log store")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
	}
	if err := store(); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

// openFile gives s, which is empty, the data file path.
func (s *raftStore) openFile(path string) error {
	f, err := openBolt(path)
	if err != nil {
		return err
	}
	s.file = f
	return nil
}

// closeFile closes the data file, if there is one open.
func (s *raftStore) closeFile() error {
	if s.file == nil || s.file.store == nil {
		return nil
	}
	err := errors.Join(s.file.flush(), s.file.store.Close())
	s.file.store = nil
	return err
}

// reload opens the data file again after a crash and takes everything from it.
// It returns the newest snapshot, encoded. Without a data file it does nothing.
func (s *raftStore) reload() (snapshot []byte, err error) {
	if s.file == nil {
		return nil, nil
	}
	path := s.file.path
	if _, err := os.Stat(path); err != nil {
		return nil, err // opening would make an empty one
	}
	f, err := openBolt(path)
	if err != nil {
		return nil, err
	}
	*s = raftStore{vars: map[string][]byte{}, valueBytes: s.valueBytes, file: f}
	first, err := f.store.FirstIndex()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	last, err := f.store.LastIndex()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := first; i <= last && i > 0; i++ {
		var l raft.Log
		if err := f.store.GetLog(i, &l); err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", path, i, err)
		}
		s.log = append(s.log, l)
	}
	for _, k := range append([]string{keySnapshot}, knownKeys...) {
		v, err := f.store.Get([]byte(k))
		switch {
		case errors.Is(err, raftboltdb.ErrKeyNotFound):
		case err != nil:
			return nil, fmt.Errorf("%s: %s: %w", path, k, err)
		case k == keySnapshot:
			snapshot = v
		default:
			s.vars[k] = v
		}
	}
	return snapshot, nil
}

// saveSnapshot puts an encoded snapshot into the data file.
func (f *boltFile) saveSnapshot(b []byte) error {
	if err := f.flush(); err != nil {
		return err
	}
	if err := f.store.Set([]byte(keySnapshot), b); err != nil {
		return fmt.Errorf("%s: snapshot: %w", f.path, err)
	}
	return nil
}
