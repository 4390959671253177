package sim

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"interleave/nodes"
	"interleave/sim/event"
	"interleave/sim/netsim"
	"interleave/sim/rng"
	"interleave/sim/station"
	"interleave/txnproto"
	"interleave/txnproto/history"
	"interleave/txnproto/schedule"
)

const (
	// schedulePath is what a message takes one way, and a write of the log.
	schedulePath = 100 * time.Nanosecond
	// scheduleSame is the time between operations that a schedule gives one time.
	scheduleSame = 10 * time.Microsecond
	// schedulePatience is how long after the last operation something may still happen:
	// longer than any database's lock timeout.
	schedulePatience = 10 * time.Minute
	// scheduleEvents bounds a run's events.
	scheduleEvents = 10_000_000
)

// scheduleRun is one schedule being run.
type scheduleRun struct {
	s        *schedule.Schedule // every transaction has an end
	opt      ScheduleOptions
	protocol *txnproto.Protocol
	out      *ScheduleRun

	loop     *event.Loop
	base     event.Time    // when the schedule starts
	epoch    time.Duration // for which transactions are collected before they get places; 0: are not
	at       []event.Time  // when each operation is submitted
	workload *scheduleWorkload
	programs []*scheduleProgram // by client
	cluster  *nodes.Cluster
	repl     nodes.Replication
	clients  *txnproto.Clients
	recorder *recorder
	commit   txnproto.CommitRecord

	controller txnproto.Controller // of the shard
	owner      map[txnproto.TxnID]*scheduleProgram
	ends       map[txnproto.TxnID]bool                 // attempts whose end is in the steps
	writers    map[txnproto.ReadVersion]txnproto.TxnID // of installed versions
	installs   map[txnproto.TxnID][]txnproto.Key
	takenBack  map[txnproto.TxnID]int // the numbers of attempts whose writes others have seen and that aborted
	inCall     *txnproto.Txn          // whose Access or Prepare is being answered
	after      []RunStep              // what that call did to others: it comes after its answer
	blocked    map[txnproto.TxnID]block
	waiting    []schedule.WaitEdge // edges of the waits-for graph now
	ended      int                 // transactions
	sequenced  int                 // places given, under protocols that have a global order
	state      string              // the controller's, as last shown
	looks      int                 // still to come
}

// block is what a transaction waits for.
type block struct {
	key txnproto.Key
	on  []txnproto.TxnID
}

func newScheduleRun(p *txnproto.Protocol, params txnproto.Params, promised history.Level, s *schedule.Schedule, opt ScheduleOptions) *scheduleRun {
	r := &scheduleRun{
		s: s, opt: opt, protocol: p, loop: event.New(),
		out: &ScheduleRun{
			Protocol: p.Name, Help: p.Help, Promised: p.Promised(params),
			Steps: []RunStep{}, Final: []schedule.ItemValue{}, Waits: schedule.WaitsFor{Edges: []schedule.WaitEdge{}},
		},
		owner:    map[txnproto.TxnID]*scheduleProgram{},
		ends:     map[txnproto.TxnID]bool{},
		writers:  map[txnproto.ReadVersion]txnproto.TxnID{},
		installs: map[txnproto.TxnID][]txnproto.Key{},
		blocked:  map[txnproto.TxnID]block{},

		takenBack: map[txnproto.TxnID]int{},
	}
	r.workload = newScheduleWorkload(r)
	for i, t := range s.Txns() {
		prog := &scheduleProgram{r: r, client: txnproto.ClientID(i), txn: t, at: -1}
		for j, op := range s.Ops {
			if op.Txn == t {
				prog.ops = append(prog.ops, j)
			}
		}
		r.programs = append(r.programs, prog)
		r.out.Transactions = append(r.out.Transactions, RunTxn{Txn: t, Outcome: "waiting"})
	}
	r.recorder = &recorder{rec: history.NewRecorder(history.Options{
		Promised: promised,
		ShardOf:  func(history.Key) history.ShardID { return 0 },
		Present:  func(k history.Key) bool { return !r.workload.absent[k] },
		KeyName:  func(k history.Key) string { return r.workload.name(txnproto.Key(k)) },
	})}
	if p.Sequenced {
		r.epoch = params.Duration("epoch")
	}
	r.assemble(params)
	return r
}

// assemble makes one node with one shard and its clients.
func (r *scheduleRun) assemble(params txnproto.Params) {
	short := rng.Constant(schedulePath)
	net, err := netsim.New(r.loop, 1, netsim.Config{
		Zones: []string{"here"}, Sites: []netsim.Zone{0, 0}, Machines: 1,
		Latency: [][]rng.Dist{{short}}, Loopback: short, Kinds: txnproto.MsgKindNames[:], NeverCut: true,
	})
	if err != nil {
		panic("sim: " + err.Error())
	}
	place, err := nodes.NewPlacement("range", 1, r.workload.InitialKeys())
	if err != nil {
		panic("sim: " + err.Error())
	}
	traced := *r.protocol
	traced.New = func(h txnproto.Host, p txnproto.Params) txnproto.Controller {
		r.controller = r.protocol.New(&tracedHost{h, r}, p)
		return &tracedController{r.controller, r}
	}
	r.cluster = nodes.NewCluster(nodes.Config{
		Loop: r.loop, Net: net, Seed: 1, Workload: r.workload, Placement: place,
		Shards: 1, Replicas: 1, Machines: 1, Protocol: &traced, Params: params,
		CPUs: 1, Disk: station.DiskConfig{Sync: short},
		ClientSite: func(txnproto.ClientID) netsim.Site { return 1 }, RPCTimeout: rpcTimeout,
		Installs: r,
		NewestTS: func() txnproto.Timestamp { return r.clients.NewestTS() },
		NewTS:    func() txnproto.Timestamp { return r.clients.NewTS() },
		OldestTS: func() txnproto.Timestamp { return r.clients.OldestTS() },
	})
	r.repl = nodes.NewQuorum(nodes.QuorumConfig{
		Loop: r.loop, Net: net, Seed: 1, Shards: 1, Replicas: 1, Machines: 1,
		ValueBytes: r.workload.ValueBytes(), Disk: r.cluster.Disk, Host: r.cluster, Release: r.cluster.Release,
	})
	r.cluster.SetReplication(r.repl)
	attempts := 1
	if r.opt.Retry {
		attempts = maxScheduleAttempts
	}
	r.clients = txnproto.NewClients(r.loop, 1, r.workload, r.cluster, txnproto.ClientsConfig{
		Clients: len(r.programs), PerClient: 1, RPCTimeout: rpcTimeout,
		Retry:    txnproto.Retry{Policy: txnproto.RetryFixed, Base: ScheduleStep, MaxAttempts: attempts},
		Declares: r.protocol.Declares, Sequenced: r.protocol.Sequenced, ReadOnly: r.protocol.TellReadOnly,
		Foretell: r.protocol.Exposes(),
		Observer: r, Recorder: r,
	})
	r.cluster.SetClients(r.clients)
}

// play runs the schedule and judges what came of it.
func (r *scheduleRun) play() error {
	if err := r.repl.Start(); err != nil {
		return err
	}
	for !r.cluster.Led() && r.loop.Step() {
	}
	r.base = r.loop.Now()
	r.plan()
	bound := r.base.Add(schedulePatience)
	if n := len(r.at); n > 0 {
		bound = r.at[n-1].Add(schedulePatience)
	}
	done := func() bool { return r.ended == len(r.programs) && r.looks == 0 && r.cluster.Quiet() }
	for n := 0; !done() && n < scheduleEvents && r.loop.NextAt() <= bound && r.loop.Step(); n++ {
	}
	r.out.Stuck = r.ended < len(r.programs)
	if r.opt.Explain {
		r.look()
	}
	r.judge()
	return nil
}

// plan says when each operation is submitted and each transaction begins.
func (r *scheduleRun) plan() {
	hLook := r.loop.Handle("schedule.look", func(uint64) {
		r.looks--
		r.look()
	})
	gap := ScheduleStep
	if r.s.Timed {
		gap = scheduleSame
	} else if r.protocol.Sequenced {
		gap = max(gap, 4*r.epoch) // what an operation sets going lasts for an epoch and more
	}
	next := r.base
	for i := range r.s.Ops {
		next = max(next, r.base.Add(time.Duration(r.s.Ops[i].At)))
		r.at = append(r.at, next)
		if r.opt.Explain {
			r.looks++
			r.loop.At(next.Add(gap/2), hLook, 0)
		}
		next = next.Add(gap)
	}
	hBegin := r.loop.Handle("schedule.begin", func(c uint64) { r.clients.StartClient(txnproto.ClientID(c)) })
	for _, p := range r.programs {
		r.loop.At(r.at[p.ops[0]], hBegin, uint64(p.client))
	}
}

// look shows the controller's state where it has changed.
func (r *scheduleRun) look() {
	text := r.describe()
	if n := len(r.out.Steps); n > 0 && text != r.state {
		r.state = text
		lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
		if text == "" {
			lines = []string{"(nothing)"}
		}
		r.out.Steps[n-1].State = lines
	}
}

// describe is the controller's state in text.
func (r *scheduleRun) describe() string {
	switch c := r.controller.(type) {
	case txnproto.Describer:
		return c.Describe(&txnproto.Names{Keys: r.workload.name, Txns: func(t txnproto.TxnID) string {
			if p := r.owner[t]; p != nil {
				return p.txn.String()
			}
			return t.String()
		}})
	case fmt.Stringer:
		return c.String()
	default:
		return ""
	}
}

// Installed implements nodes.InstallRecorder.
func (r *scheduleRun) Installed(shard txnproto.ShardID, _ uint64, txn txnproto.TxnID, puts []txnproto.Put) {
	for i := range puts {
		r.writers[txnproto.ReadVersion{Key: puts[i].Key, Version: puts[i].Version}] = txn
		r.installs[txn] = append(r.installs[txn], puts[i].Key)
	}
	r.recorder.installed(shard, r.historyTxn(txn), puts)
}

// TakenBack implements nodes.InstallRecorder.
func (r *scheduleRun) TakenBack(shard txnproto.ShardID, txn txnproto.TxnID, puts []txnproto.Put) {
	r.takenBack[txn] = r.owner[txn].attempt
	r.recorder.takenBack(shard, r.historyTxn(txn), puts)
}

// Committed implements txnproto.Recorder.
func (r *scheduleRun) Committed(c *txnproto.CommitRecord) {
	r.commit = *c
	r.commit.Txn = r.historyTxn(c.Txn)
	r.recorder.Committed(&r.commit)
}

// historyTxn is an attempt's number in the history: that of its transaction in the
// schedule. An attempt whose writes are taken back has one of its own, since its
// transaction may be tried again, and commit.
func (r *scheduleRun) historyTxn(t txnproto.TxnID) txnproto.TxnID {
	if _, ok := r.takenBack[t]; ok {
		return schedule.MaxTxn + 1 + t
	}
	if n := r.owner[t].txn; n > 0 {
		return txnproto.TxnID(n)
	}
	return schedule.MaxTxn + 1 // 0 names no transaction there
}

// historyName matches the transactions that the history's explanations name.
var historyName = regexp.MustCompile(`\bT\d{7,}\b`)

// explained gives the transactions in an explanation the names that they have in the
// schedule, an attempt that was not the last with its number.
func (r *scheduleRun) explained(text string) string {
	return historyName.ReplaceAllStringFunc(text, func(name string) string {
		n, err := strconv.ParseUint(name[1:], 10, 64)
		if err != nil || n <= schedule.MaxTxn {
			return name
		}
		if n == schedule.MaxTxn+1 {
			return "T0"
		}
		id := txnproto.TxnID(n - schedule.MaxTxn - 1)
		p, attempt := r.owner[id], r.takenBack[id]
		switch {
		case attempt == 0:
			return name // an item is called so
		case id == p.id:
			return p.txn.String()
		default:
			return fmt.Sprintf("%v (attempt %d)", p.txn, attempt)
		}
	})
}

// AttemptEnded implements txnproto.Observer.
func (r *scheduleRun) AttemptEnded(a *txnproto.AttemptRecord) {
	p := r.programs[a.Client]
	t := &r.out.Transactions[p.client]
	switch {
	case a.Outcome == txnproto.Committed:
		t.Outcome, t.Reason = "committed", ""
		r.end(p, a.Txn, RunStep{Event: StepCommitted})
	case a.Reason == txnproto.NoReason:
		t.Outcome = "rolled back"
		r.end(p, a.Txn, RunStep{Event: StepRolledBack})
	default:
		t.Outcome, t.Reason = "aborted", a.Reason.String()
		r.end(p, a.Txn, RunStep{Event: StepAborted, Reason: a.Reason.String()})
	}
}

// RequestEnded implements txnproto.Observer.
func (r *scheduleRun) RequestEnded(*txnproto.RequestRecord) { r.ended++ }

// judge fills in what is known at the end.
func (r *scheduleRun) judge() {
	for _, p := range r.programs {
		t := &r.out.Transactions[p.client]
		t.Txn, t.Attempts = p.txn, p.attempt
		if t.Outcome != "committed" {
			t.NotRun = r.notRun(p)
		}
	}
	view := r.cluster.View()
	for k, it := range r.workload.items {
		row := view.Get(txnproto.Key(k))
		v := schedule.ItemValue{Item: it, State: valueState(row)}
		if v.State == "known" {
			v.Value = int64(row.Value)
		}
		r.out.Final = append(r.out.Final, v)
	}
	if r.out.Stuck {
		r.recorder.rec.MarkUnfinished()
	}
	res := r.recorder.rec.Check()
	r.out.Found, r.out.Kept = res.Found.String(), res.OK
	for i := range res.Anomalies {
		r.out.Anomalies = append(r.out.Anomalies, strings.Split(strings.TrimRight(r.explained(res.Anomalies[i].Explain()), "\n"), "\n"))
	}
	r.execute(view)
}

// notRun lists the operations of p that its last attempt has not come to.
func (r *scheduleRun) notRun(p *scheduleProgram) []string {
	var out []string
	for _, i := range p.ops {
		came := r.s.Ops[i].Kind == schedule.Begin && p.attempt > 0
		for j := range r.out.Steps {
			s := &r.out.Steps[j]
			came = came || s.attempt == p.id && s.op == i
		}
		if !came {
			out = append(out, r.s.Ops[i].String())
		}
	}
	return out
}

func valueState(row txnproto.Row) string {
	switch {
	case row.Skipped:
		return "skipped"
	case !row.Exists:
		return "absent"
	case row.Value == unknownValue:
		return "unknown"
	default:
		return "known"
	}
}

// unseen notes that an operation computes with an item of which its transaction has read
// no value.
func (r *scheduleRun) unseen(p *scheduleProgram, it schedule.Item) {
	note := fmt.Sprintf("%s uses %s, of which %v has read no value: what it writes is not known.", r.s.Ops[p.at], it, p.txn)
	if !slices.Contains(r.out.Notes, note) {
		r.out.Notes = append(r.out.Notes, note)
	}
}

// waitsFor notes the edges of a new wait, and keeps the graph with the most.
func (r *scheduleRun) waitsFor(p *scheduleProgram, b block) {
	for _, o := range r.txnsOf(b.on) {
		w := schedule.WaitEdge{From: p.txn, To: o, Over: r.workload.name(b.key)}
		if o != p.txn && !slices.Contains(r.waiting, w) {
			r.waiting = append(r.waiting, w)
		}
	}
	if len(r.waiting) > len(r.out.Waits.Edges) {
		r.out.Waits = schedule.NewWaitsFor(r.waiting)
	}
}

// goesOn drops the edges of a wait that is over; with over, those to the transaction too.
func (r *scheduleRun) goesOn(t schedule.Txn, over bool) {
	r.waiting = slices.DeleteFunc(r.waiting, func(w schedule.WaitEdge) bool { return w.From == t || over && w.To == t })
}

// txnsOf are the transactions of attempts, in order of number, each once.
func (r *scheduleRun) txnsOf(on []txnproto.TxnID) []schedule.Txn {
	var out []schedule.Txn
	for _, id := range on {
		if p := r.owner[id]; p != nil {
			out = append(out, p.txn)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
