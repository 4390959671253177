package nodes

import (
	"io"
	"testing"
	"time"

	"interleave/sim/event"
	"interleave/sim/netsim"
	"interleave/sim/rng"
	"interleave/sim/station"
	"interleave/txnproto"
)

// quorumBench is one shard's log under the quorum model with nothing around it.
type quorumBench struct {
	loop     *event.Loop
	q        *Quorum
	disks    []*station.Disk
	machines []*countingMachine
	led      int
	applied  []Applied // at the leader
	times    []event.Time
	free     []*Entry
	made     int
	light    bool
}

// countingMachine remembers which entries it has applied.
type countingMachine struct {
	txns  []txnproto.TxnID
	index uint64
	light bool
}

func (m *countingMachine) Apply(index uint64, e *Entry) {
	if index != m.index+1 {
		panic("entries out of order")
	}
	m.index = index
	if !m.light {
		m.txns = append(m.txns, e.Txn)
	}
}
func (*countingMachine) Snapshot(io.Writer) error { return nil }
func (*countingMachine) Restore(io.Reader) error  { return nil }

func (b *quorumBench) Machine(txnproto.ShardID, txnproto.NodeID) StateMachine {
	m := &countingMachine{light: b.light}
	b.machines = append(b.machines, m)
	return m
}

func (b *quorumBench) Applied(a Applied) {
	if a.Leader && !b.light {
		b.applied = append(b.applied, a)
		b.times = append(b.times, b.loop.Now())
	}
}

func (b *quorumBench) Lead(txnproto.ShardID, txnproto.NodeID, uint64) { b.led++ }
func (b *quorumBench) Lost(txnproto.ShardID, txnproto.NodeID) {
	panic("the quorum model loses no leader")
}

func (b *quorumBench) entry(txn txnproto.TxnID) *Entry {
	if n := len(b.free); n > 0 {
		e := b.free[n-1]
		b.free = b.free[:n-1]
		*e = Entry{Kind: EntryCommit, Txn: txn, Puts: e.Puts[:0]}
		return e
	}
	b.made++
	return &Entry{Kind: EntryCommit, Txn: txn}
}

func (b *quorumBench) propose(txn txnproto.TxnID) { b.q.Propose(0, 0, b.entry(txn)) }

const (
	oneWay   = 700 * time.Microsecond
	diskTime = 300 * time.Microsecond
)

func newQuorumBench(tb testing.TB, replicas int, light bool) *quorumBench {
	tb.Helper()
	b := &quorumBench{loop: event.New(), light: light}
	nc, err := netsim.Preset("lan", replicas)
	if err != nil {
		tb.Fatal(err)
	}
	nc.Latency[0][0], nc.BytesPerSecond = rng.Constant(oneWay), 0
	net, err := netsim.New(b.loop, 1, nc)
	if err != nil {
		tb.Fatal(err)
	}
	for range replicas {
		b.disks = append(b.disks, station.NewDisk(b.loop, station.DiskConfig{Sync: rng.Constant(diskTime)}))
	}
	b.q = NewQuorum(QuorumConfig{
		Loop: b.loop, Net: net, Seed: 1, Shards: 1, Replicas: replicas, Machines: replicas,
		Disk: func(n txnproto.NodeID) *station.Disk { return b.disks[n] }, Host: b,
		Release: func(e *Entry) { b.free = append(b.free, e) },
	})
	if err := b.q.Start(); err != nil {
		tb.Fatal(err)
	}
	b.loop.Run()
	return b
}

// TestQuorumLatency: the leader writes, sends, a majority writes and answers.
func TestQuorumLatency(t *testing.T) {
	for replicas, want := range map[int]time.Duration{ // order: each by itself
		1: diskTime,
		2: diskTime + oneWay + diskTime + oneWay,
		3: diskTime + oneWay + diskTime + oneWay,
		5: diskTime + oneWay + diskTime + oneWay,
	} {
		b := newQuorumBench(t, replicas, false)
		if b.led != 1 {
			t.Fatalf("%d replicas: Lead was called %d times", replicas, b.led)
		}
		at := b.loop.Now()
		b.propose(1)
		b.loop.Run()
		if len(b.times) != 1 || b.times[0].Sub(at) != want {
			t.Errorf("%d replicas: committed after %v, want %v", replicas, b.times, want)
		}
		if a := b.applied[0]; a.SyncedAt.Sub(at) != diskTime || a.DiskShare != diskTime || a.Index != 1 || !a.Leader {
			t.Errorf("%d replicas: %+v", replicas, a)
		}
	}
}

// TestQuorumMajority slows disks down one by one: a majority is as slow as its
// slowest member, and a minority does not matter.
func TestQuorumMajority(t *testing.T) {
	fast := 2 * (diskTime + oneWay)
	for _, c := range []struct {
		replicas, slow int
		want           time.Duration
	}{
		{3, 1, fast}, {3, 2, fast + 9*diskTime}, {5, 2, fast}, {5, 3, fast + 9*diskTime},
	} {
		b := newQuorumBench(t, c.replicas, false)
		for i := range c.slow {
			b.disks[c.replicas-1-i].SlowBy(10)
		}
		at := b.loop.Now()
		b.propose(1)
		b.loop.Run()
		if got := b.times[0].Sub(at); got != c.want {
			t.Errorf("%d of %d disks slow: committed after %v, want %v", c.slow, c.replicas, got, c.want)
		}
	}
}

// TestQuorumBatches proposes while the leader writes: what comes during a write
// goes together with the next.
func TestQuorumBatches(t *testing.T) {
	b := newQuorumBench(t, 3, false)
	at := b.loop.Now()
	b.propose(1)
	b.loop.RunUntil(at.Add(diskTime / 2))
	for txn := range txnproto.TxnID(3) {
		b.propose(2 + txn)
	}
	b.loop.Run()
	if s := b.q.Stats(); s.Entries != 4 || s.Batches != 2 {
		t.Errorf("%d entries in %d batches, want 4 in 2", s.Entries, s.Batches)
	}
	for i, want := range []time.Duration{2, 3, 3, 3} {
		if got := b.times[i].Sub(at); got != want*diskTime+2*oneWay {
			t.Errorf("entry %d is committed after %v, want %v", i+1, got, want*diskTime+2*oneWay)
		}
	}
	if b.applied[1].DiskShare != diskTime/3 {
		t.Errorf("one of three entries is charged %v of a sync of %v", b.applied[1].DiskShare, diskTime)
	}
	b = newQuorumBench(t, 3, false)
	for txn := range txnproto.TxnID(1 + 2*quorumBatch) {
		b.propose(1 + txn)
	}
	b.loop.Run()
	if s := b.q.Stats(); s.Batches != 3 {
		t.Errorf("1 + twice the bound of entries went in %d batches, want 3", s.Batches)
	}
	b.q.ResetStats()
	if s := b.q.Stats(); s != (ReplicationStats{}) {
		t.Errorf("after a reset: %+v", s)
	}
}

// TestQuorumSettles runs a random load and settles: the followers have applied
// what the leader has, in its order, and no entry is kept.
func TestQuorumSettles(t *testing.T) {
	for _, replicas := range []int{1, 2, 3, 5} {
		b := newQuorumBench(t, replicas, false)
		s := rng.Seed(3).Stream("load")
		const n = 3000
		for txn := range txnproto.TxnID(n) {
			b.propose(1 + txn)
			b.loop.RunUntil(b.loop.Now().Add(time.Duration(s.Uint64n(uint64(diskTime)))))
		}
		settled := 0
		b.q.Settle(func() {
			settled++
			for r, m := range b.machines {
				if len(m.txns) < n {
					t.Errorf("replica %d of %d has applied %d of %d entries", r, replicas, len(m.txns), n)
				}
			}
		})
		b.loop.Run()
		if settled != 1 {
			t.Fatalf("%d replicas: settled %d times", replicas, settled)
		}
		for r, m := range b.machines {
			for i := range n {
				if m.txns[i] != txnproto.TxnID(i+1) {
					t.Fatalf("replica %d applies %v as entry %d", r, m.txns[i], i+1)
				}
			}
		}
		// Two no-ops of Settle take part; the last one need not be applied everywhere.
		if kept := b.made + 2 - len(b.free); kept > 1 {
			t.Errorf("%d replicas: %d entries are not released", replicas, kept)
		}
		if b.made > 200 {
			t.Errorf("%d replicas: %d entries were made for %d", replicas, b.made, n)
		}
	}
}

// TestQuorumAllocates nothing per entry once it has run for a while.
func TestQuorumAllocates(t *testing.T) {
	b := newQuorumBench(t, 3, true)
	txn := txnproto.TxnID(0)
	load := func() {
		for range 500 {
			txn++
			b.propose(txn)
			b.loop.RunUntil(b.loop.Now().Add(diskTime / 7))
		}
	}
	for range 5 {
		load()
	}
	if a := testing.AllocsPerRun(20, load); a > 2 {
		t.Errorf("%v allocations for 500 entries", a)
	}
}
