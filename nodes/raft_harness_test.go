package nodes

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"testing"
	"time"

	"interleave/sim/event"
	"interleave/sim/netsim"
	"interleave/sim/rng"
	"interleave/sim/station"
	"interleave/sim/vtime"
	"interleave/txnproto"
)

// raftScenario is a run of closed-loop clients on a replication, with crashes.
type raftScenario struct {
	shards, replicas, nodes int
	clients                 int
	requests                int // after which the clients stop
	think                   time.Duration
	latency, sync           rng.Dist
	bytesPerSecond          int64
	dir                     string
	seed                    rng.Seed
	snapshotEvery, trailing uint64
	election                time.Duration // least timeout; the greatest is twice that, a heartbeat a fifth; 0: the default
	shuffle                 bool          // package vtime's
	faults                  []raftFault
	until                   event.Time // run at least so long, for the faults
	quorum                  bool       // the model instead of hashicorp/raft
}

// raftFault crashes or restarts a node: a given one, or the one that leads or
// follows shard 0 at the time.
type raftFault struct {
	at      time.Duration
	restart bool
	node    int // >= 0: this; -1: shard 0's leader; -2: a follower; restart: -3: all that are down
}

func lan() raftScenario {
	return raftScenario{
		shards: 3, replicas: 3, nodes: 3, clients: 24, requests: 1500, seed: 7,
		think: 200 * time.Microsecond, latency: rng.Uniform(100*time.Microsecond, 400*time.Microsecond),
		sync: rng.Lognormal(150*time.Microsecond, 0.3),
	}
}

// raftResult is what a scenario came to.
type raftResult struct {
	digest    string
	latencies []time.Duration
	acked     int
	doubtful  int
	stats     ReplicationStats
	report    vtime.Report
	end       event.Time
	transfers uint64 // messages of state transfer, and their answers
}

// raftBed is a scenario under way. It is the ReplicationHost and the clients.
type raftBed struct {
	t        testing.TB
	sc       raftScenario
	loop     *event.Loop
	net      *netsim.Net
	disks    []*station.Disk
	repl     Replication
	bubble   *vtime.Bubble
	hash     hash.Hash
	machines map[[2]int]*fakeMachine
	applied  map[[2]int]uint64
	leads    []int // by shard: the node, -1
	down     []bool
	hNext    event.HandlerID
	hFault   event.HandlerID
	hEnd     event.HandlerID
	clients  []fakeClient
	issued   int
	res      raftResult
	acked    [][]uint64 // by shard: entries that were acknowledged
	ended    bool
	settled  bool
	record   func(string)
}

type fakeClient struct {
	shard   txnproto.ShardID
	txn     uint64 // open request, 0: none
	at      event.Time
	pending bool // proposed, and its leader not lost
}

// fakeMachine remembers in which order it applied what.
type fakeMachine struct {
	chain [32]byte
	index uint64
	txns  map[uint64]uint64 // txn to index
}

func (m *fakeMachine) Apply(index uint64, e *Entry) {
	if e.Kind == EntryNoop {
		return
	}
	if index <= m.index {
		panic(fmt.Sprintf("index %d applied after %d", index, m.index))
	}
	m.index = index
	b := binary.LittleEndian.AppendUint64(m.chain[:], index)
	m.chain = sha256.Sum256(e.AppendTo(b))
	m.txns[uint64(e.Txn)] = index
	for i := range e.Puts {
		e.Puts[i].Version = txnproto.Version(index)
	}
}

func (m *fakeMachine) Snapshot(w io.Writer) error {
	b := append([]byte{}, m.chain[:]...)
	b = binary.LittleEndian.AppendUint64(b, m.index)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(m.txns)))
	for t, i := range m.txns { // order: the set is what matters
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, t), i)
	}
	_, err := w.Write(b)
	return err
}

func (m *fakeMachine) Restore(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m.txns = map[uint64]uint64{}
	copy(m.chain[:], b)
	m.index = binary.LittleEndian.Uint64(b[32:])
	for i := range binary.LittleEndian.Uint64(b[40:]) {
		m.txns[binary.LittleEndian.Uint64(b[48+16*i:])] = binary.LittleEndian.Uint64(b[56+16*i:])
	}
	return nil
}

func (b *raftBed) Machine(s txnproto.ShardID, n txnproto.NodeID) StateMachine {
	m := &fakeMachine{txns: map[uint64]uint64{}}
	b.machines[[2]int{int(s), int(n)}] = m
	return m
}

func (b *raftBed) log(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	fmt.Fprintf(b.hash, "%d %s\n", int64(b.loop.Now()), line)
	if b.record != nil {
		b.record(fmt.Sprintf("%v %s", b.loop.Now(), line))
	}
}

func (b *raftBed) Applied(a Applied) {
	b.log("applied %v %v %d %v %v %v %d %d", a.Shard, a.Node, a.Index, a.Leader, a.Entry.Txn, a.SyncedAt, a.DiskShare, len(a.Entry.Puts))
	key := [2]int{int(a.Shard), int(a.Node)}
	if a.Index <= b.applied[key] {
		b.t.Errorf("at %v: %v on %v: index %d applied after %d", b.loop.Now(), a.Shard, a.Node, a.Index, b.applied[key])
	}
	b.applied[key] = a.Index
	if a.Entry.Kind == EntryNoop {
		return // the model reports them
	}
	if !b.sc.quorum && a.Leader != (a.SyncedAt != 0) {
		b.t.Errorf("leader %v but synced at %v", a.Leader, a.SyncedAt)
	}
	if !a.Leader {
		return
	}
	c := &b.clients[a.Entry.Client]
	if c.txn != uint64(a.Entry.Txn) || !c.pending {
		b.t.Errorf("at %v: client %d is told of %v, waits for %d", b.loop.Now(), a.Entry.Client, a.Entry.Txn, c.txn)
	}
	b.res.latencies = append(b.res.latencies, b.loop.Now().Sub(c.at))
	b.res.acked++
	b.acked[a.Shard] = append(b.acked[a.Shard], c.txn)
	*c = fakeClient{shard: c.shard}
	b.loop.After(b.sc.think+time.Duration(a.Entry.Client), b.hNext, uint64(a.Entry.Client))
}

func (b *raftBed) Lead(s txnproto.ShardID, n txnproto.NodeID, term uint64) {
	b.log("lead %v %v %d", s, n, term)
	if b.leads[s] >= 0 {
		b.t.Errorf("%v leads %v while node %d does", n, s, b.leads[s])
	}
	b.leads[s] = int(n)
	// Whatever was acknowledged must be in the new leader's state.
	m := b.machines[[2]int{int(s), int(n)}]
	for _, t := range b.acked[s] {
		if m.txns[t] == 0 {
			b.t.Errorf("at %v: %v leads %v without acknowledged %d", b.loop.Now(), n, s, t)
			break
		}
	}
	for i := range b.clients {
		if b.clients[i].shard == s && b.clients[i].txn == 0 {
			b.loop.After(time.Duration(i)*time.Microsecond, b.hNext, uint64(i))
		}
	}
}

func (b *raftBed) Lost(s txnproto.ShardID, n txnproto.NodeID) {
	b.log("lost %v %v", s, n)
	if b.leads[s] != int(n) {
		b.t.Errorf("%v lost by node %d, led by %d", s, n, b.leads[s])
	}
	b.leads[s] = -1
	for i := range b.clients {
		if c := &b.clients[i]; c.shard == s && c.txn != 0 {
			b.res.doubtful++
			*c = fakeClient{shard: s}
		}
	}
}

// next lets a client propose its next entry.
func (b *raftBed) next(i uint64) {
	c := &b.clients[i]
	if c.txn != 0 || b.leads[c.shard] < 0 || b.issued >= b.sc.requests {
		b.maybeEnd()
		return
	}
	b.issued++
	c.txn, c.at, c.pending = uint64(b.issued), b.loop.Now(), true
	e := &Entry{Kind: EntryCommit, Client: txnproto.ClientID(i), Txn: txnproto.TxnID(c.txn)}
	for k := range b.issued % 4 {
		e.Puts = append(e.Puts, txnproto.Put{Key: txnproto.Key(k), Value: txnproto.Value(b.issued)})
	}
	b.repl.Propose(c.shard, txnproto.NodeID(b.leads[c.shard]), e)
}

// maybeEnd settles the logs when all is done.
func (b *raftBed) maybeEnd() {
	if b.ended || b.issued < b.sc.requests || b.loop.Now() < b.sc.until {
		return
	}
	for i := range b.clients {
		if b.clients[i].txn != 0 {
			return
		}
	}
	b.ended = true
	b.repl.Settle(func() {
		b.settled = true
		b.loop.Stop()
	})
}

func (b *raftBed) fault(i uint64) {
	f := b.sc.faults[i]
	n := f.node
	switch {
	case n == -1:
		n = b.leads[0]
	case n == -2:
		n = (b.leads[0] + 1) % b.sc.nodes
	}
	for k := range b.down {
		if f.restart && b.down[k] && (n == -3 || n == k) {
			b.log("restart %d", k)
			b.down[k] = false
			if err := b.repl.Restart(txnproto.NodeID(k)); err != nil {
				b.t.Errorf("restart: %v", err)
			}
		}
	}
	if !f.restart && n >= 0 && !b.down[n] {
		b.log("crash %d", n)
		b.down[n] = true
		b.repl.Crash(txnproto.NodeID(n))
	}
}

// run runs sc and checks what must hold of every run.
func (sc raftScenario) run(t testing.TB, record func(string)) raftResult {
	t.Helper()
	b := &raftBed{
		t: t, sc: sc, loop: event.New(), hash: sha256.New(), record: record,
		machines: map[[2]int]*fakeMachine{}, applied: map[[2]int]uint64{},
		leads: make([]int, sc.shards), down: make([]bool, sc.nodes),
		clients: make([]fakeClient, sc.clients), acked: make([][]uint64, sc.shards),
	}
	report, err := vtime.Run(func(bubble *vtime.Bubble) error {
		b.bubble = bubble
		if sc.shuffle {
			bubble.Shuffle()
		}
		return b.drive()
	})
	if err != nil {
		t.Fatal(err)
	}
	b.res.report = report
	b.res.digest = hex.EncodeToString(b.hash.Sum(nil)[:8])
	return b.res
}

func (b *raftBed) drive() error {
	sc := b.sc
	var err error
	zones := netsim.Config{
		Zones: []string{"z"}, Sites: make([]netsim.Zone, sc.nodes), Machines: sc.nodes,
		Latency: [][]rng.Dist{{sc.latency}}, Kinds: txnproto.MsgKindNames[:],
	}
	if b.net, err = netsim.New(b.loop, sc.seed, zones); err != nil {
		return err
	}
	for n := range sc.nodes {
		b.disks = append(b.disks, station.NewDisk(b.loop, station.DiskConfig{
			Sync: sc.sync, BytesPerSecond: sc.bytesPerSecond, Key: sc.seed.Key(fmt.Sprint("disk", n)),
		}))
	}
	if err := b.makeReplication(); err != nil {
		return err
	}
	for s := range b.leads {
		b.leads[s] = -1
	}
	for i := range b.clients {
		b.clients[i].shard = txnproto.ShardID(i % sc.shards)
	}
	b.hNext = b.loop.Handle("client", b.next)
	b.hFault = b.loop.Handle("fault", b.fault)
	b.hEnd = b.loop.Handle("end", func(uint64) { b.maybeEnd() })
	for i, f := range sc.faults {
		b.loop.At(event.Time(f.at), b.hFault, uint64(i))
	}
	b.loop.At(sc.until, b.hEnd, 0)
	if err := b.repl.Start(); err != nil {
		return err
	}
	b.loop.RunUntil(event.Time(10 * time.Minute))
	b.res.end = b.loop.Now()
	b.check()
	b.res.stats = b.repl.Stats()
	return b.repl.Close()
}

func (b *raftBed) makeReplication() (err error) {
	sc := b.sc
	if sc.quorum {
		b.repl = NewQuorum(QuorumConfig{
			Loop: b.loop, Net: b.net, Seed: sc.seed, Shards: sc.shards, Replicas: sc.replicas, Machines: sc.nodes,
			ValueBytes: 100, Disk: func(n txnproto.NodeID) *station.Disk { return b.disks[n] }, Host: b,
		})
		return nil
	}
	b.repl, err = NewRaft(RaftConfig{
		Loop: b.loop, Net: b.net, Disks: b.disks, Host: b, Bubble: b.bubble, Seed: sc.seed,
		Shards: sc.shards, Replicas: sc.replicas, Nodes: sc.nodes, ValueBytes: 100, DataDir: sc.dir,
		SnapshotEvery: sc.snapshotEvery, TrailingLogs: sc.trailing,
		ElectionMin: sc.election, ElectionMax: 2 * sc.election, HeartbeatInterval: sc.election / 5, CallTimeout: sc.election / 2,
	})
	return err
}

// check compares the replicas at the end.
func (b *raftBed) check() {
	if !b.settled {
		b.t.Fatalf("not settled by %v: %d of %d requests issued, %d acknowledged", b.loop.Now(), b.issued, b.sc.requests, b.res.acked)
	}
	for s := range b.sc.shards {
		var first *fakeMachine
		for j := range b.sc.replicas {
			n := (s + j) % b.sc.nodes
			if b.down[n] {
				continue
			}
			m := b.machines[[2]int{s, n}]
			if first == nil {
				first = m
			}
			if !bytes.Equal(m.chain[:], first.chain[:]) || m.index != first.index {
				b.t.Errorf("shard %d: node %d is at %d, another replica at %d, or they differ", s, n, m.index, first.index)
			}
			for _, t := range b.acked[s] {
				if m.txns[t] == 0 {
					b.t.Fatalf("shard %d: node %d lacks acknowledged %d", s, n, t)
				}
			}
		}
		fmt.Fprintf(b.hash, "shard %d %x\n", s, first.chain)
	}
	b.res.transfers = b.net.Stats().Kinds[txnproto.MsgSnapshot].Messages
}
