package nodes

import (
	"fmt"
	"time"

	"interleave/sim/event"
	"interleave/sim/netsim"
	"interleave/sim/rng"
	"interleave/sim/station"
	"interleave/txnproto"
)

// InstallRecorder hears of every version that becomes part of a shard's committed
// state, and of those that others have seen and that never do.
type InstallRecorder interface {
	// Installed hears of each version once, and in log order within a shard.
	Installed(shard txnproto.ShardID, index uint64, txn txnproto.TxnID, puts []txnproto.Put)
	// TakenBack hears of the writes of an aborted attempt that others have seen: those of
	// puts that have a version. Only protocols that expose writes have any.
	TakenBack(shard txnproto.ShardID, txn txnproto.TxnID, puts []txnproto.Put)
}

// Config is what a cluster is made of.
type Config struct {
	Loop      *event.Loop
	Net       *netsim.Net
	Seed      rng.Seed
	Workload  txnproto.Workload
	Placement Placement
	Shards    int
	Replicas  int
	Machines  int
	// OneTable lets the replicas of a shard keep their rows in one table, for speed.
	// REQUIRES: they run in the loop, and none of them is started twice.
	OneTable bool

	Protocol *txnproto.Protocol
	Params   txnproto.Params

	CPUs      int           // processors of a node
	CPUOp     rng.Dist      // service time of an operation
	CPURow    time.Duration // of each further row that a scan covers
	CPUCommit rng.Dist      // of a commit, a prepare and a decision
	Disk      station.DiskConfig

	// ClientSite is where a client stands in the network.
	ClientSite func(txnproto.ClientID) netsim.Site
	RPCTimeout time.Duration

	Installs InstallRecorder       // nil: none
	Waits    txnproto.WaitObserver // nil: none
	// NewestTS is the newest timestamp drawn so far, NewTS draws one, and OldestTS
	// is that of the oldest attempt that is running.
	NewestTS, NewTS, OldestTS func() txnproto.Timestamp
	Oracle                    *OracleConfig // nil: timestamps are had for nothing
	ClockCommit               bool          // see txnproto.Protocol.ClockCommit: timestamps are from clocks
}

// Cluster is the nodes of a run. It implements txnproto.Cluster for the clients
// and ReplicationHost for the replication.
type Cluster struct {
	cfg        Config
	loop       *event.Loop
	pool       txnproto.Pool
	valueBytes int // of the workload's rows
	nodes      []*Node
	hosts      []*Host // by shard; nil: no leader
	// coordinatorLog: see txnproto.Protocol.CoordinatorLog. recovering are, by shard, the
	// leaders that do not serve yet because of it.
	coordinatorLog bool
	recovering     []*recovery
	repl           Replication
	machines       [][]*machine       // by shard, by node; nil: no replica there
	tables         []*rows            // by shard, under OneTable
	recorded       []uint64           // by shard: the highest index whose installs are recorded
	exposed        []txnproto.Version // by shard: the newest version that was exposed; see Host.NewVersion
	lost           []lostWrites       // exposed and seen, and lost with a leader
	clients        *txnproto.Clients
	sites          []netsim.Site // by client: where it stands
	oracle         *oracle       // nil: none

	hAtNode, hServed, hAtClient, hPeerLost event.HandlerID

	entries    []*Entry // free
	control    []txnproto.ControlStats
	decided    uint64 // see Decided
	controlKey uint64
	controlSeq uint64
	oldest     txnproto.Timestamp
	oldestAt   event.Time
}

var (
	_ txnproto.Cluster = (*Cluster)(nil)
	_ ReplicationHost  = (*Cluster)(nil)
)

// NewCluster makes the nodes. Use SetReplication and SetClients before the loop runs.
func NewCluster(cfg Config) *Cluster {
	c := &Cluster{cfg: cfg, loop: cfg.Loop, valueBytes: cfg.Workload.ValueBytes(), controlKey: cfg.Seed.Key("control")}
	c.hAtNode = c.loop.Handle("node.arrive", c.atNode)
	c.hServed = c.loop.Handle("node.served", func(i uint64) {
		m := c.pool.At(i)
		c.nodes[m.Node].served(m)
	})
	c.hAtClient = c.loop.Handle("client.deliver", func(i uint64) { c.clients.Deliver(c.pool.At(i)) })
	c.hPeerLost = c.loop.Handle("node.peer-lost", func(shard uint64) {
		for _, h := range c.hosts {
			if h != nil {
				h.peerLost(txnproto.ShardID(shard))
			}
		}
	})
	for i := range cfg.Machines {
		d := cfg.Disk
		d.Key = cfg.Seed.Key(fmt.Sprintf("disk/n%d", i+1))
		c.nodes = append(c.nodes, &Node{
			c: c, id: txnproto.NodeID(i),
			cpu: station.NewCPU(c.loop, cfg.CPUs), disk: station.NewDisk(c.loop, d),
		})
	}
	if cfg.Oracle != nil {
		c.oracle = newOracle(c, *cfg.Oracle)
	}
	c.hosts = make([]*Host, cfg.Shards)
	c.recovering = make([]*recovery, cfg.Shards)
	c.coordinatorLog = cfg.Protocol.CoordinatorLog != nil && cfg.Protocol.CoordinatorLog(cfg.Params)
	c.machines = make([][]*machine, cfg.Shards)
	c.tables = make([]*rows, cfg.Shards)
	c.recorded = make([]uint64, cfg.Shards)
	c.exposed = make([]txnproto.Version, cfg.Shards)
	c.control = make([]txnproto.ControlStats, cfg.Shards)
	for s := range c.machines {
		c.machines[s] = make([]*machine, cfg.Machines)
		c.control[s].Extra = map[string]uint64{}
	}
	return c
}

// SetReplication gives the cluster the logs of its shards.
func (c *Cluster) SetReplication(r Replication) { c.repl = r }

// SetClients gives the cluster its clients.
func (c *Cluster) SetClients(cl *txnproto.Clients) {
	c.clients = cl
	c.sites = make([]netsim.Site, cl.Len())
	for i := range c.sites {
		c.sites[i] = c.cfg.ClientSite(txnproto.ClientID(i))
	}
}

// Disk is a node's log disk.
func (c *Cluster) Disk(n txnproto.NodeID) *station.Disk { return c.nodes[n].disk }

// Work is what a node's time was spent on since the last ResetStats.
func (c *Cluster) Work(n txnproto.NodeID) Work { return c.nodes[n].work }

// Control sums the controllers' counters over the shards.
func (c *Cluster) Control() txnproto.ControlStats {
	sum := txnproto.ControlStats{Extra: map[string]uint64{}}
	for i := range c.control {
		s := &c.control[i]
		sum.Deadlocks += s.Deadlocks
		sum.FalseDeadlocks += s.FalseDeadlocks
		for n, count := range s.CycleLength {
			sum.CycleLength[n] += count
		}
		sum.QueueSum += s.QueueSum
		sum.QueueCount += s.QueueCount
		sum.QueueMax = max(sum.QueueMax, s.QueueMax)
		for name, count := range s.Extra { // order: sums by name
			sum.Extra[name] += count
		}
	}
	if c.cfg.Protocol.Versioning.KeepsOld() {
		c.countOldVersions(sum.Extra)
	}
	return sum
}

// countOldVersions adds what old versions the leaders' stores keep, now and at most
// since their start. The latter is the sum of the shards' maxima, which need not fall
// on one moment.
func (c *Cluster) countOldVersions(extra map[string]uint64) {
	for _, h := range c.hosts {
		if h != nil {
			extra["old-versions"] += uint64(h.machine.store.old)
			extra["old-versions-max"] += uint64(h.machine.store.most)
		}
	}
}

// ResetStats starts the counters of stations, logs and controllers anew.
func (c *Cluster) ResetStats() {
	for _, n := range c.nodes {
		n.cpu.ResetStats()
		n.disk.ResetStats()
		n.work = Work{}
	}
	if c.oracle != nil {
		c.oracle.cpu.ResetStats()
	}
	for i := range c.control {
		c.control[i] = txnproto.ControlStats{Extra: c.control[i].Extra}
		clear(c.control[i].Extra)
	}
	c.decided = 0
	c.repl.ResetStats()
}

// Decided returns how many verdicts controllers gave since the last ResetStats: on
// operations, each once per shard, and on prepares that waited. Those that waited
// count when the wait ends.
func (c *Cluster) Decided() uint64 { return c.decided }

// Waiting is how many branches wait because their controller lets them, or for their
// machine's clock.
func (c *Cluster) Waiting() int {
	n := 0
	for _, h := range c.hosts {
		if h == nil {
			continue
		}
		for _, b := range h.branches {
			if b.state == branchWaitingOp || b.state == branchWaitingPrepare || b.awaitsClock(c.loop.Now()) {
				n++
			}
		}
	}
	return n
}

// Delayed reports whether something takes d or longer from now on that is sure to come:
// what the oracle, a processor or a disk has to do, or a machine's clock that somebody
// waits for.
func (c *Cluster) Delayed(d time.Duration) bool {
	if c.oracle != nil && c.oracle.cpu.Backlog() >= d {
		return true
	}
	for _, n := range c.nodes {
		if !n.down && (n.cpu.Backlog() >= d || n.disk.Backlog() >= d) {
			return true
		}
	}
	for _, h := range c.hosts {
		if h == nil {
			continue
		}
		for _, b := range h.branches {
			if b.awaitsClock(c.loop.Now().Add(d - 1)) {
				return true
			}
		}
	}
	return false
}

// CPU is a node's processors.
func (c *Cluster) CPU(n txnproto.NodeID) *station.CPU { return c.nodes[n].cpu }

// ShardOf implements txnproto.Cluster.
func (c *Cluster) ShardOf(k txnproto.Key) txnproto.ShardID { return c.cfg.Placement.ShardOf(k) }

// Shards implements txnproto.Cluster.
func (c *Cluster) Shards() int { return c.cfg.Shards }

// Covers implements txnproto.Cluster.
func (c *Cluster) Covers(s txnproto.ShardID, lo, hi txnproto.Key) bool {
	return c.cfg.Placement.Covers(s, lo, hi)
}

// Leader implements txnproto.Cluster.
func (c *Cluster) Leader(s txnproto.ShardID) (txnproto.NodeID, bool) {
	if h := c.hosts[s]; h != nil {
		return h.node.id, true
	}
	return 0, false
}

// Pool implements txnproto.Cluster.
func (c *Cluster) Pool() *txnproto.Pool { return &c.pool }

// FromClient implements txnproto.Cluster.
func (c *Cluster) FromClient(client txnproto.ClientID, m *txnproto.Msg) event.Time {
	return c.send(m, c.sites[client], netsim.Site(m.Node), c.hAtNode, false)
}

// toClient sends m from a node to the client of its attempt.
func (c *Cluster) toClient(from txnproto.NodeID, m *txnproto.Msg) {
	m.Node = from
	c.send(m, netsim.Site(from), c.sites[m.Tx.Client], c.hAtClient, false)
}

// toShard sends m from a node to the leader of m's shard. Without a leader it is
// lost: recovery asks again.
func (c *Cluster) toShard(from txnproto.NodeID, shard txnproto.ShardID, m *txnproto.Msg) {
	node, ok := c.Leader(shard)
	if !ok {
		c.pool.Free(m)
		return
	}
	m.Node, m.Peer = node, from
	c.send(m, netsim.Site(from), netsim.Site(node), c.hAtNode, m.Kind == txnproto.MsgControl)
}

func (c *Cluster) send(m *txnproto.Msg, from, to netsim.Site, h event.HandlerID, fifo bool) event.Time {
	nm := netsim.Message{
		From: from, To: to, Kind: netsim.Kind(m.Kind), Bytes: c.bytes(m),
		Key: m.Key, FIFO: fifo, Handler: h, Arg: m.Index(),
	}
	at := c.cfg.Net.Send(&nm)
	if at == event.Never {
		if at = sendAgain(c.cfg.Net, &nm); at == event.Never {
			c.undelivered(m)
		}
	}
	return at
}

// sendAgain sends nm, which was not delivered, over a new connection until it is: the
// transport gives up after having lost every transmission. It returns event.Never, and
// nothing will arrive, only when an end is cut off.
func sendAgain(n *netsim.Net, nm *netsim.Message) event.Time {
	for !n.IsCut(nm.From) && !n.IsCut(nm.To) {
		nm.Key = rng.Hash(nm.Key, 1)
		if at := n.Send(nm); at != event.Never {
			return at
		}
	}
	return event.Never
}

// undelivered drops a message that cannot reach its end. A client that waits
// for an answer finds out by its timeout.
func (c *Cluster) undelivered(m *txnproto.Msg) {
	switch m.Kind {
	case txnproto.MsgOp, txnproto.MsgCommit, txnproto.MsgStatus, txnproto.MsgReply, txnproto.MsgOutcome:
		c.clients.Unanswered(m)
	default:
	}
	c.pool.Free(m)
}

const (
	headerBytes = 64 // addresses, ids, checksums
	opBytes     = 24
)

// bytes is what m weighs on the wire.
func (c *Cluster) bytes(m *txnproto.Msg) int {
	value := c.valueBytes
	switch m.Kind {
	case txnproto.MsgOp:
		b := headerBytes + opBytes
		switch m.Op.Kind {
		case txnproto.Write, txnproto.Insert:
			b += value
		case txnproto.Sequence:
			return headerBytes + m.Batch.Bytes()
		default:
		}
		if m.LockPoint {
			b += 8 * len(m.Ahead)
		}
		return b
	case txnproto.MsgRelease:
		return headerBytes + 8*len(m.Ahead)
	case txnproto.MsgReply:
		switch {
		case m.Reason != txnproto.NoReason || !m.Op.Kind.Reads():
			return headerBytes
		case m.Op.Kind == txnproto.Scan, m.Op.Kind == txnproto.Reconnoitre:
			return headerBytes + len(m.Result.Rows)*(8+value)
		}
		return headerBytes + 8 + value
	case txnproto.MsgCommit, txnproto.MsgStatus:
		return headerBytes + 8*len(m.Branches)
	case txnproto.MsgVote, txnproto.MsgPending:
		return headerBytes + len(m.Puts)*(opBytes+value)
	case txnproto.MsgControl:
		if m.Control.Batch != nil {
			return headerBytes + m.Control.Batch.Bytes()
		}
		return headerBytes
	default:
		return headerBytes
	}
}

func (c *Cluster) atNode(i uint64) {
	m := c.pool.At(i)
	c.nodes[m.Node].receive(m)
}

// scanned is about how many rows m's shard has in the range of the scan m: as
// many as an even spread gives it, and no more than there are.
func (c *Cluster) scanned(m *txnproto.Msg) uint64 {
	h := c.hosts[m.Shard]
	if h == nil {
		return 0
	}
	shards := uint64(c.cfg.Shards)
	there := uint64(h.machine.store.initial)/shards + uint64(h.machine.store.beyond.Len())
	return min(uint64(m.Op.End-m.Op.Key)/shards, there)
}

// service is the processor time that m costs at its node.
func (c *Cluster) service(m *txnproto.Msg) time.Duration {
	u := func() uint64 { return rng.Hash(m.Key, uint64(m.Kind)) }
	switch m.Kind {
	case txnproto.MsgOp:
		d := c.cfg.CPUOp.At(u())
		if m.Op.Kind == txnproto.Scan || m.Op.Kind == txnproto.Reconnoitre {
			d += c.cfg.CPURow * time.Duration(c.scanned(m))
		}
		return d
	case txnproto.MsgCommit, txnproto.MsgPrepare, txnproto.MsgDecide:
		return c.cfg.CPUCommit.At(u())
	default:
		return 0
	}
}

// oldestTS is Config.OldestTS, asked anew only once in a while: it looks at every
// client, and a watermark may lag.
func (c *Cluster) oldestTS() txnproto.Timestamp {
	if now := c.loop.Now(); now >= c.oldestAt {
		c.oldest = c.cfg.OldestTS()
		c.oldestAt = now.Add(oldestEvery)
	}
	return c.oldest
}

const oldestEvery = time.Millisecond

// newEntry returns an empty log entry.
func (c *Cluster) newEntry(k EntryKind) *Entry {
	n := len(c.entries)
	if n == 0 {
		return &Entry{Kind: k}
	}
	e := c.entries[n-1]
	c.entries = c.entries[:n-1]
	e.reset()
	e.Kind = k
	return e
}

// Release takes back an entry that every replica has applied.
func (c *Cluster) Release(e *Entry) { c.entries = append(c.entries, e) }

// Machine implements ReplicationHost.
func (c *Cluster) Machine(s txnproto.ShardID, n txnproto.NodeID) StateMachine {
	m := newMachine(c.newStore(s))
	c.machines[s][n] = m
	return m
}

func (c *Cluster) newStore(s txnproto.ShardID) *Store {
	if !c.cfg.OneTable {
		return NewStore(s, c.cfg.Placement, c.cfg.Workload, c.cfg.Protocol.Versioning)
	}
	if c.tables[s] == nil {
		c.tables[s] = newRows(c.cfg.Replicas, s, c.cfg.Placement, txnproto.Key(c.cfg.Workload.InitialKeys()))
	}
	replica := 0
	for _, m := range c.machines[s] {
		if m != nil {
			replica++
		}
	}
	return newStoreIn(c.tables[s], replica, s, c.cfg.Placement, c.cfg.Workload, c.cfg.Protocol.Versioning)
}

// Applied implements ReplicationHost.
func (c *Cluster) Applied(a Applied) {
	if a.Index > c.recorded[a.Shard] {
		c.recorded[a.Shard] = a.Index
		e := a.Entry
		installs := false
		switch e.Kind {
		case EntryCommit, EntryCommitAll, EntryInstall:
			installs = true
		case EntryFinish:
			installs = e.Outcome == txnproto.Committed
		case EntryNoop, EntryPrepare, EntryBatch:
		default:
			panic("nodes: unknown entry kind")
		}
		if installs && len(e.Puts) > 0 && c.cfg.Installs != nil {
			c.cfg.Installs.Installed(a.Shard, a.Index, e.Txn, e.Puts)
		}
		if installs && len(c.lost) > 0 {
			c.found(a.Shard, e.Txn)
		}
	}
	if h := c.hosts[a.Shard]; a.Leader && h != nil && h.node.id == a.Node {
		h.applied(&a)
	}
}

// Lead implements ReplicationHost.
func (c *Cluster) Lead(s txnproto.ShardID, n txnproto.NodeID, term uint64) {
	if c.hosts[s] != nil || c.recovering[s] != nil {
		panic(fmt.Sprintf("nodes: at %v: %v leads %v while another does", c.loop.Now(), n, s))
	}
	if c.coordinatorLog && c.cfg.Shards > 1 {
		c.startRecovery(s, n, term)
		return
	}
	c.lead(s, n, term, nil)
}

// lead begins a leadership; rec, when not nil, knows what other shards know of it.
func (c *Cluster) lead(s txnproto.ShardID, n txnproto.NodeID, term uint64, rec *recovery) {
	h := &Host{c: c, node: c.nodes[n], shard: s, term: term, machine: c.machines[s][n], met: c.cfg.NewestTS()}
	h.rand = c.cfg.Seed.Stream(fmt.Sprintf("controller/s%d/%d", s+1, term))
	h.hTimer = c.loop.Handle(fmt.Sprintf("controller.timer/s%d/%d", s+1, term), h.timer)
	h.ctl = c.cfg.Protocol.New(h, c.cfg.Params)
	if c.cfg.Protocol.Exposes() {
		h.exposer = h.ctl.(txnproto.Exposer)
	}
	c.hosts[s] = h
	h.takeOver(rec)
	for _, o := range c.hosts {
		if o == nil || o == h {
			continue
		}
		if p, ok := o.ctl.(txnproto.Messenger); ok {
			p.PeerReset(s)
			o.settle()
		}
		o.chase(s)
	}
	h.chase(-1)
}

// Lost implements ReplicationHost.
func (c *Cluster) Lost(s txnproto.ShardID, n txnproto.NodeID) {
	if r := c.recovering[s]; r != nil && r.node.id == n {
		c.recovering[s] = nil
		return
	}
	h := c.hosts[s]
	if h == nil || h.node.id != n {
		return
	}
	c.hosts[s] = nil
	h.stop()
	c.loop.After(c.cfg.RPCTimeout, c.hPeerLost, uint64(s))
}

// Crash stops a node. What it served is lost; its shards get other leaders
// when the replication has elected them.
func (c *Cluster) Crash(n txnproto.NodeID) {
	node := c.nodes[n]
	if node.down {
		return
	}
	node.down = true
	node.epoch++
	node.cpu.Clear()
	c.repl.Crash(n)
	c.clients.NodeDown(n)
}

// Restart brings a crashed node back from its stores.
func (c *Cluster) Restart(n txnproto.NodeID) error {
	if !c.nodes[n].down {
		return nil
	}
	c.nodes[n].down = false
	return c.repl.Restart(n)
}

// Led reports whether every shard has a leader.
func (c *Cluster) Led() bool {
	for _, h := range c.hosts {
		if h == nil {
			return false
		}
	}
	return true
}

// Quiet reports whether nothing is under way at any shard: no branch, no commit.
func (c *Cluster) Quiet() bool {
	for _, h := range c.hosts {
		if h == nil {
			return false
		}
		if h.live > 0 || len(h.freeCoords) < len(h.coords) {
			return false
		}
	}
	return true
}

// CompareReplicas says which replicas of a shard differ, and where, or nil.
// REQUIRES: the replication has settled.
func (c *Cluster) CompareReplicas() error {
	for s, ms := range c.machines {
		var first *machine
		var firstNode txnproto.NodeID
		even := c.tables[s] != nil && c.tables[s].even() // all replicas in one go
		for n, m := range ms {
			if m == nil || c.nodes[n].down {
				continue
			}
			if first == nil {
				first, firstNode = m, txnproto.NodeID(n)
				continue
			}
			differ := first.differs
			if even {
				differ = first.commitsDiffer
			}
			if d := differ(m); d != "" {
				return fmt.Errorf("replicas of %v on %v and %v differ: %s",
					txnproto.ShardID(s), firstNode, txnproto.NodeID(n), d)
			}
		}
	}
	return nil
}

// Forget lets go of all state, to make room for the checker. The cluster can
// only be dropped afterwards.
func (c *Cluster) Forget() {
	c.machines, c.tables, c.hosts, c.entries, c.repl = nil, nil, nil, nil, nil
}

// Unrest says what keeps the cluster from being quiet, for messages.
func (c *Cluster) Unrest() string {
	for _, h := range c.hosts {
		if h == nil {
			return "a shard has no leader"
		}
		for _, b := range h.branches {
			if b.state != branchFree {
				return fmt.Sprintf("%v still has a branch on %v", b.tx.ID, h.shard)
			}
		}
		for _, co := range h.coords {
			if co.state != coordFree {
				return fmt.Sprintf("%v still commits on %v", co.info.ID, h.shard)
			}
		}
	}
	return "nothing"
}

// WhoWaits says which attempts wait, and for which keys; at most a few.
func (c *Cluster) WhoWaits() string {
	const most = 4
	s, n := "", 0
	for _, h := range c.hosts {
		if h == nil {
			continue
		}
		for _, b := range h.branches {
			if b.state != branchWaitingOp && b.state != branchWaitingPrepare {
				continue
			}
			if n++; n > most {
				return s + ", …"
			}
			if n > 1 {
				s += ", "
			}
			s += fmt.Sprintf("%v for key %d on %v", b.tx.ID, b.waitKey, h.shard)
		}
	}
	return s
}
