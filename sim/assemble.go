package sim

import (
	"context"
	"io"
	"runtime/debug"
	"time"

	"interleave/nodes"
	"interleave/reports"
	"interleave/sim/event"
	"interleave/sim/netsim"
	"interleave/sim/station"
	"interleave/sim/vtime"
	"interleave/txnproto"
	"interleave/txnproto/history"
	"interleave/workloads"
)

// rpcTimeout is how long a client or a coordinator waits for a node that has died.
const rpcTimeout = 200 * time.Millisecond

// rowCPU is the processor time of each row that a scan covers.
const rowCPU = time.Microsecond

// run is one run under way.
type run struct {
	ctx    context.Context
	spec   RunSpec
	opt    Options
	bubble *vtime.Bubble // raft only
	trace  io.Writer

	loop      *event.Loop
	net       *netsim.Net
	workload  txnproto.Workload
	protocol  *txnproto.Protocol
	promise   string // the level that it promises with its parameters
	placement nodes.Placement
	cluster   *nodes.Cluster
	repl      nodes.Replication
	clients   *txnproto.Clients
	collector *reports.Collector
	stamping  txnproto.Stamping
	recorder  *recorder // nil: the history is not wanted

	crashPlan []crash
	crashFrom event.Time // what its times count from

	windowFrom event.Time
	inWindow   bool
	before     uint64 // requests ended before the window
	entries    uint64 // log entries of the window
	ended      bool   // the run's end has been reached
	stop       stopReason
	result     *reports.Result
}

// withCollector calls f with the garbage collector set for a heap that is
// mostly pointer-free tables: collecting sooner costs little and keeps the peak low.
func withCollector(f func() error) error {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	return f()
}

const gcPercent = 40

// assemble makes the cluster and its clients.
func (r *run) assemble() error {
	s := &r.spec
	info, err := workloads.Find(s.Workload)
	if err != nil {
		return err
	}
	generators := s.Clients
	if s.Rate > 0 {
		generators = 1
	}
	if r.workload, err = workloads.New(s.Workload, s.WorkloadParam, generators); err != nil {
		return err
	}
	protocol, ok := txnproto.ProtocolNamed(s.Protocol)
	if !ok {
		return unknownName("protocol", s.Protocol, protocolNames())
	}
	r.protocol = protocol
	params, err := s.ProtocolParams()
	if err != nil {
		return err
	}
	r.promise = protocol.Promised(params)
	if r.placement, err = nodes.NewPlacement(s.Placement, s.Shards, r.workload.InitialKeys()); err != nil {
		return err
	}
	r.loop = event.New()
	netCfg, err := netsim.Preset(s.Network, s.Machines)
	if err != nil {
		return err
	}
	netCfg.Loss, netCfg.Kinds, netCfg.NeverCut = s.Loss, txnproto.MsgKindNames[:], true
	if s.Bandwidth != Unset {
		netCfg.BytesPerSecond = s.Bandwidth
	}
	oracle := r.placeOracle(&netCfg)
	if r.net, err = netsim.New(r.loop, s.Seed, netCfg); err != nil {
		return err
	}
	r.stamping = r.newStamping()
	report := reports.Config{
		Classes: r.workload.Classes(), Clients: s.Clients, OpenLoop: s.Rate > 0, Finite: s.perClient(info) > 0,
		Think: s.Think.Mean(), StarvationAttempts: s.StarvationAttempts, Trace: r.tracer(),
	}
	if c := r.stamping.Clocks; c != nil && r.protocol.Draws != 0 {
		report.Groups, report.GroupOf = clockGroups(c)
	}
	r.collector = reports.NewCollector(report)
	if s.Check || r.opt.History != nil {
		if r.recorder, err = r.newRecorder(); err != nil {
			return err
		}
	}
	r.cluster = nodes.NewCluster(nodes.Config{
		Loop: r.loop, Net: r.net, Seed: s.Seed, Workload: r.workload, Placement: r.placement,
		Shards: s.Shards, Replicas: s.replicas(), Machines: s.Machines, OneTable: s.Replication != "raft",
		Protocol: protocol, Params: params,
		CPUs: s.CPUs, CPUOp: s.CPUOp, CPURow: rowCPU, CPUCommit: s.CPUCommit,
		Disk: station.DiskConfig{Sync: s.Fsync, BytesPerSecond: s.DiskBandwidth},
		ClientSite: func(c txnproto.ClientID) netsim.Site {
			return netCfg.Client(netsim.Zone(int(c) % len(netCfg.Zones)))
		},
		RPCTimeout: rpcTimeout,
		Installs:   r, Waits: r.collector,
		Oracle: oracle, ClockCommit: r.stamping.NodeClocks != nil,
		NewestTS: func() txnproto.Timestamp { return r.clients.NewestTS() },
		NewTS:    func() txnproto.Timestamp { return r.clients.NewTS() },
		OldestTS: func() txnproto.Timestamp { return r.clients.OldestTS() },
	})
	if err := r.replicate(); err != nil {
		return err
	}
	r.makeClients(info)
	return nil
}

// replicas is how many copies there are of each shard.
func (s *RunSpec) replicas() int {
	if s.Replication == "none" {
		return 1
	}
	return s.Replicas
}

// replicate puts the logs under the cluster.
func (r *run) replicate() error {
	s := &r.spec
	if s.Replication == "raft" {
		disks := make([]*station.Disk, s.Machines)
		for i := range disks {
			disks[i] = r.cluster.Disk(txnproto.NodeID(i))
		}
		repl, err := nodes.NewRaft(nodes.RaftConfig{
			Loop: r.loop, Net: r.net, Disks: disks, Host: r.cluster, Bubble: r.bubble, Seed: s.Seed,
			Shards: s.Shards, Replicas: s.Replicas, Nodes: s.Machines,
			ValueBytes: r.workload.ValueBytes(), DataDir: s.DataDir, Release: r.cluster.Release,
			SnapshotEvery: snapshotEvery,
		})
		if err != nil {
			return err
		}
		r.repl = repl
	} else {
		r.repl = nodes.NewQuorum(nodes.QuorumConfig{
			Loop: r.loop, Net: r.net, Seed: s.Seed, Shards: s.Shards, Replicas: s.replicas(), Machines: s.Machines,
			ValueBytes: r.workload.ValueBytes(), Disk: r.cluster.Disk, Host: r.cluster, Release: r.cluster.Release,
		})
	}
	r.cluster.SetReplication(r.repl)
	return nil
}

// snapshotEvery is after how many entries a replica on raft shortens its log.
const snapshotEvery = 16384

// perClient is how many requests a client makes under a workload that is made for a
// number of them, 0: without end.
func (s *RunSpec) perClient(info workloads.Info) int {
	if info.Requests == 0 || s.Rate > 0 {
		return 0
	}
	return max(info.Requests/s.Clients, 1)
}

func (r *run) makeClients(info workloads.Info) {
	s := &r.spec
	perClient := s.perClient(info)
	cfg := txnproto.ClientsConfig{
		Clients: s.Clients, Think: s.Think, Rate: s.Rate, MaxOpen: s.MaxOpen, MPL: s.MPL,
		Retry: s.RetryPolicy(), RPCTimeout: rpcTimeout, PerClient: perClient, Observer: r.collector,
		Declares: r.protocol.Declares, Sequenced: r.protocol.Sequenced,
		ReadOnly: r.protocol.TellReadOnly,
		Foretell: r.protocol.Exposes(),
		Stamping: r.stamping,
	}
	if s.Rate == 0 {
		cfg.MaxOpen = 0
	}
	if r.recorder != nil {
		cfg.Recorder = r.recorder
	}
	r.clients = txnproto.NewClients(r.loop, s.Seed, r.workload, r.cluster, cfg)
	r.clients.OnTurnedAway = r.collector.TurnedAway
	r.clients.OnRequestEnd = func(ended uint64) {
		if r.inWindow && r.spec.Requests > 0 && ended-r.before >= uint64(r.spec.Requests) {
			r.end(stopDone)
		}
	}
	r.cluster.SetClients(r.clients)
}

// Installed implements nodes.InstallRecorder: versions go to the digest and to the history.
func (r *run) Installed(shard txnproto.ShardID, index uint64, txn txnproto.TxnID, puts []txnproto.Put) {
	for i := range puts {
		r.collector.Installed(shard, index, txn, puts[i].Key, puts[i].Version)
	}
	if r.recorder != nil {
		r.recorder.installed(shard, txn, puts)
	}
}

// TakenBack implements nodes.InstallRecorder.
func (r *run) TakenBack(shard txnproto.ShardID, txn txnproto.TxnID, puts []txnproto.Put) {
	if r.recorder != nil {
		r.recorder.takenBack(shard, txn, puts)
	}
}

// tracer returns what writes a line of the trace, or nil.
func (r *run) tracer() func([]byte) {
	if r.trace == nil {
		return nil
	}
	return func(line []byte) { _, _ = r.trace.Write(line) } // a buffer: it does not fail
}

// newRecorder returns the recorder of the run's history.
func (r *run) newRecorder() (*recorder, error) {
	promised, err := history.ParseLevel(r.promise)
	if err != nil {
		return nil, err
	}
	initial := r.workload.InitialKeys()
	opt := history.Options{
		Promised: promised,
		ShardOf:  func(k history.Key) history.ShardID { return history.ShardID(r.placement.ShardOf(txnproto.Key(k))) },
		Present:  func(k history.Key) bool { return uint64(k) < initial },
	}
	switch {
	case r.opt.History != nil:
		opt.WindowBytes = 1 << 50 // a file needs the whole
	case r.spec.CheckWindow > 0:
		opt.WindowBytes = int64(r.spec.CheckWindow) * windowBytesPerRequest
	}
	return &recorder{rec: history.NewRecorder(opt)}, nil
}

// windowBytesPerRequest turns a checking window in requests into the recorder's
// bytes: about what a request of ten operations takes.
const windowBytesPerRequest = 100
