package nodes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"interleave/sim/event"
	"interleave/sim/netsim"
	"interleave/sim/rng"
	"interleave/sim/station"
	"interleave/sim/vtime"
	"interleave/txnproto"
)

// content says what a store holds.
func content(s *raftStore) string {
	var b strings.Builder
	first, _ := s.FirstIndex()
	last, _ := s.LastIndex()
	for i := first; i <= last && i > 0; i++ {
		var l raft.Log
		if err := s.GetLog(i, &l); err != nil {
			return err.Error()
		}
		fmt.Fprintf(&b, "%d.%d%s ", l.Index, l.Term, l.Data)
	}
	for _, k := range knownKeys {
		if v, err := s.Get([]byte(k)); err == nil {
			fmt.Fprintf(&b, "%s=%x ", k, v)
		}
	}
	return b.String()
}

// TestRaftStoreCrash holds that after any writes, a crash leaves what had been
// synced, in memory and in a data file alike.
func TestRaftStoreCrash(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		memory, file := newRaftStore(0), newRaftStore(0)
		if err := file.openFile(filepath.Join(dir, fmt.Sprint(n, ".db"))); err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = file.closeFile() }()
		both := []*raftStore{memory, file}
		durable, term := "", uint64(0)
		var after []string // what the store held after each op
		for step := range rapid.IntRange(1, 30).Draw(rt, "steps") {
			do := rapid.SampledFrom([]string{"append", "append", "head", "tail", "set", "sync"}).Draw(rt, "op")
			first, _ := memory.FirstIndex()
			last, _ := memory.LastIndex()
			k := rapid.Uint64Range(1, 4).Draw(rt, "k")
			before := len(memory.ops)
			for _, s := range both {
				var err error
				switch do {
				case "append":
					var logs []*raft.Log
					for i := range k {
						logs = append(logs, &raft.Log{Index: max(last, 6) + 1 + i, Term: term, Type: raft.LogNoop, Data: []byte{'a' + byte(step)}})
					}
					err = s.StoreLogs(logs)
				case "head":
					err = s.DeleteRange(first, first+k)
				case "tail":
					err = s.DeleteRange(max(first, last-min(k, last)), last)
				case "set":
					err = s.SetUint64([]byte("CurrentTerm"), term+k)
				case "sync":
					err = s.sync(min(int(k), len(s.ops)))
				}
				if err != nil {
					rt.Fatalf("%s: %v", do, err)
				}
			}
			switch {
			case do == "sync" && before > 0:
				m := min(int(k), before)
				durable, after = after[m-1], after[m:]
			case len(memory.ops) > before:
				after = append(after, content(memory))
			}
			if do == "set" {
				term += k
			}
			if a, b := content(memory), content(file); a != b {
				rt.Fatalf("memory holds %q, file %q", a, b)
			}
		}
		memory.crash()
		file.crash()
		if err := file.closeFile(); err != nil {
			rt.Fatal(err)
		}
		if _, err := file.reload(); err != nil {
			rt.Fatal(err)
		}
		if got := content(memory); got != durable {
			rt.Fatalf("after a crash memory holds %q, want %q", got, durable)
		}
		if got := content(file); got != durable {
			rt.Fatalf("after a crash the file holds %q, want %q", got, durable)
		}
	})
}

func TestRaftStoreRefusesGaps(t *testing.T) {
	s := newRaftStore(0)
	for i := uint64(5); i < 10; i++ {
		if err := s.StoreLog(&raft.Log{Index: i, Type: raft.LogNoop}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.StoreLog(&raft.Log{Index: 11, Type: raft.LogNoop}); err == nil {
		t.Error("an entry after a gap was stored")
	}
	if err := s.DeleteRange(6, 7); err == nil {
		t.Error("entries were deleted from the middle")
	}
	if err := s.GetLog(4, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("entry before the first: %v", err)
	}
	if _, err := s.Get([]byte("x")); err == nil || err.Error() != "not found" {
		t.Errorf("missing variable: %v", err)
	}
}

func TestRaftCommandBytesIsEntrySize(t *testing.T) {
	e := Entry{
		Kind: EntryCommit, Participants: []txnproto.ShardID{1, 2},
		Puts: make([]txnproto.Put, 3), Forget: []txnproto.TxnID{7},
	}
	if got, want := commandBytes(encodeCommand(&e), 100), e.Size(100); got != want {
		t.Errorf("commandBytes is %d, Size %d", got, want)
	}
}

// newTestRaft makes a replication that is not started, in dir.
func newTestRaft(b *vtime.Bubble, change func(*RaftConfig)) (Replication, error) {
	loop := event.New()
	net, err := netsim.New(loop, 1, netsim.Config{
		Zones: []string{"z"}, Sites: make([]netsim.Zone, 3), Machines: 3, Latency: [][]rng.Dist{{rng.Constant(1)}},
	})
	if err != nil {
		return nil, err
	}
	cfg := RaftConfig{Loop: loop, Net: net, Bubble: b, Shards: 2, Replicas: 3, Nodes: 3}
	for range 3 {
		cfg.Disks = append(cfg.Disks, station.NewDisk(loop, station.DiskConfig{}))
	}
	change(&cfg)
	return NewRaft(cfg)
}

func TestRaftBadConfig(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s1-n1.db"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "plain")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*RaftConfig){
		"replicas: 4: want 1 to the 3 machines":             func(c *RaftConfig) { c.Replicas = 4 },
		"shards: 0: want at least 1":                        func(c *RaftConfig) { c.Shards = 0 },
		"disks: 2: want one for each of 3 machines":         func(c *RaftConfig) { c.Disks = c.Disks[:2] },
		"election-timeout: 50ms: want more than":            func(c *RaftConfig) { c.ElectionMin = 50e6 },
		"data-dir: " + dir + ": holds s1-n1.db of another":  func(c *RaftConfig) { c.DataDir = dir },
		"data-dir: " + file + ": cannot be made":            func(c *RaftConfig) { c.DataDir = file },
		"data-dir: " + file + "/below: cannot be made: mkd": func(c *RaftConfig) { c.DataDir = file + "/below" },
	} {
		if _, err := newTestRaft(nil, change); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %q, want %q...", fmt.Sprint(err), want)
		}
	}
}
