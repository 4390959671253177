package nodes

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// TestScenarios runs the files of testdata/scenarios: a few transactions, a
// controller whose verdicts the file gives, and a log whose leaders and commits
// it steers. What a command prints is what happened during it, in order: calls
// of the controllers, entries that reached a log, writes installed, and what
// clients heard.
//
//	world [shards=n] [drop-readonly] [coordinator-log] [cpu=d] [elect=d] [attempts=n]
//	client                       a client with one transaction: steps separated by ;
//	start                        set the clients going
//	rule call=access|prepare shard=s1 verdict=grant|wait|abort:<reason> [always]
//	hold shard=s1 kind=commit|prepare|finish|commit-all|install    keep such entries from the log
//	release                      let them go
//	survive / vanish             entries under way when a leader falls: kept, lost
//	resolve shard=s1 txn=1 verdict=…
//	kill shard=s1 txn=1 reason=…
//	decide shard=s1 from=s2 txn=1        an abort decision, sent by hand
//	crash / restart node=n1, depose shard=s1 [next=n2]
//	run for=d
//	state                        branches and commits, prepared and decided in the logs
//	rows                         the rows that differ from their initial state
//	finish                       close the clients, check what must hold at the end
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		s := &scenario{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			return s.command(t, d)
		})
	})
}

// scenario is the state of one file.
type scenario struct {
	t        *testing.T
	setup    setup
	programs [][]string
	w        *world
	rules    []*rule
	holds    map[string]bool                    // "s1 commit"
	hosts    map[txnproto.ShardID]txnproto.Host // as the controllers have them
	elect    time.Duration                      // how long a shard is without a leader; 0: the default
	trace    strings.Builder
}

type rule struct {
	call    string
	shard   txnproto.ShardID
	verdict txnproto.Verdict
	always  bool
	used    bool
}

func (s *scenario) logf(format string, args ...any) { fmt.Fprintf(&s.trace, format+"\n", args...) }

func (s *scenario) command(t *testing.T, d *datadriven.TestData) string {
	s.trace.Reset()
	a := args{t, d, map[string]bool{}}
	switch d.Cmd {
	case "world":
		s.world(a)
	case "client":
		s.programs = append(s.programs, strings.Split(strings.TrimSpace(d.Input), ";"))
	case "start":
		s.start()
	case "rule":
		s.rules = append(s.rules, &rule{call: a.str("call"), shard: a.shard("shard"), verdict: a.verdict(), always: a.has("always")})
	case "hold":
		s.holds[fmt.Sprintf("%v %s", a.shard("shard"), a.str("kind"))] = true
	case "release":
		s.holds = map[string]bool{}
		s.w.script.release()
	case "survive", "vanish":
		yes := d.Cmd == "survive"
		s.w.script.survives = func(txnproto.ShardID, *Entry) bool { return yes }
	case "resolve":
		h := s.w.cluster.hosts[a.shard("shard")]
		s.hosts[h.shard].Resolve(s.txn(h, a), a.verdict())
		h.settle()
	case "kill":
		h := s.w.cluster.hosts[a.shard("shard")]
		s.logf("killed: %v", s.hosts[h.shard].Kill(s.txn(h, a), a.reason(a.str("reason"))))
		h.settle()
	case "decide":
		s.decide(a)
	case "crash":
		s.w.cluster.Crash(a.node("node"))
	case "restart":
		if err := s.w.cluster.Restart(a.node("node")); err != nil {
			t.Fatal(err)
		}
	case "depose":
		if a.has("next") {
			s.w.script.groups[a.shard("shard")].prefer = int(a.node("next"))
		}
		s.w.script.depose(a.shard("shard"))
	case "run":
		s.w.loop.RunUntil(s.w.loop.Now().Add(a.dur("for")))
	case "state":
		s.state()
	case "rows":
		s.rows()
	case "finish":
		s.w.finish()
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	a.allUsed()
	return s.trace.String()
}

func (s *scenario) world(a args) {
	s.holds, s.hosts = map[string]bool{}, map[txnproto.ShardID]txnproto.Host{}
	s.setup = setup{
		seed: 1, shards: a.num("shards", 2), scripted: true, latency: time.Millisecond, noCPU: true, accounts: 12,
		protocol: &txnproto.Protocol{Name: "scripted", DropReadOnly: a.has("drop-readonly"), New: s.controller},
	}
	if a.has("coordinator-log") {
		s.setup.protocol.DropReadOnly = true
		s.setup.protocol.CoordinatorLog = func(txnproto.Params) bool { return true }
	}
	if a.has("elect") {
		s.elect = a.dur("elect")
	}
	if a.has("cpu") {
		s.setup.cpu = a.dur("cpu")
	}
	s.setup.protocol = guard(s.setup.protocol, s.t.Errorf)
	s.setup.clients.Retry = txnproto.Retry{Policy: txnproto.RetryFixed, Base: 10 * time.Millisecond, MaxAttempts: a.num("attempts", 1)}
}

func (s *scenario) start() {
	s.setup.workload = texts{s}
	s.setup.clients.Clients, s.setup.clients.PerClient = len(s.programs), 1
	s.w = newWorld(s.t, s.setup)
	s.w.script.hold = func(sh txnproto.ShardID, e *Entry) bool {
		return s.holds[fmt.Sprintf("%v %s", sh, entryNames[e.Kind])]
	}
	if s.elect > 0 {
		s.w.script.electDelay = s.elect
	}
	s.w.script.onLog = func(sh txnproto.ShardID, e *Entry) {
		outcome := ""
		if e.Kind == EntryFinish {
			outcome = " " + e.Outcome.String()
		}
		s.logf("%v: log: %s of %v%s", sh, entryNames[e.Kind], e.Txn, outcome)
	}
	s.w.seen.onAttempt = func(r *txnproto.AttemptRecord) {
		if r.Outcome == txnproto.Committed {
			s.logf("client %d: %v committed", r.Client, r.Txn)
		} else {
			s.logf("client %d: %v aborted: %v", r.Client, r.Txn, r.Reason)
		}
	}
	s.w.seen.onRequest = func(r *txnproto.RequestRecord) {
		s.logf("client %d: request %v after %d attempts", r.Client, r.Ending, r.Attempts)
	}
	s.w.clients.Start()
}

var entryNames = map[EntryKind]string{EntryNoop: "no-op", EntryCommit: "commit", EntryPrepare: "prepare", EntryFinish: "finish", EntryBatch: "batch", EntryCommitAll: "commit-all", EntryInstall: "install"}

func (s *scenario) txn(h *Host, a args) *txnproto.Txn {
	b := h.find(txnproto.TxnID(a.num("txn", 0)), -1)
	if b == nil {
		a.d.Fatalf(s.t, "no such branch")
	}
	return &b.tx
}

// decide sends an abort decision to a participant, as its coordinator would.
func (s *scenario) decide(a args) {
	c, from := s.w.cluster, a.shard("from")
	b := c.hosts[a.shard("shard")].find(txnproto.TxnID(a.num("txn", 0)), -1)
	m := c.pool.New(txnproto.MsgDecide)
	m.Tx, m.Shard, m.From, m.Slot, m.Coord, m.Outcome = b.info, a.shard("shard"), from, int32(b.tx.Slot), -1, txnproto.Aborted
	c.toShard(c.hosts[from].node.id, m.Shard, m)
}

func (s *scenario) state() {
	names := map[branchState]string{
		branchServing: "served", branchIdle: "idle", branchWaitingOp: "waits", branchWaitingPrepare: "waits to prepare",
		branchPrepared: "prepared", branchDead: "dead",
	}
	coords := map[coordState]string{coordVoting: "voting", coordLogging: "logging", coordDecided: "decided"}
	for sh, h := range s.w.cluster.hosts {
		if h == nil {
			s.logf("%v: no leader", txnproto.ShardID(sh))
			continue
		}
		for _, b := range h.branches {
			if b.state != branchFree {
				s.logf("%v: branch %v %s, %d puts", h.shard, b.tx.ID, names[b.state], len(b.tx.Puts))
			}
		}
		for _, co := range h.coords {
			if co.state != coordFree {
				s.logf("%v: commit of %v: %s, %d votes and %d acks missing", h.shard, co.info.ID, coords[co.state], co.waiting, co.unacked)
			}
		}
		for _, p := range h.machine.inDoubt() {
			s.logf("%v: log holds %v prepared", h.shard, p.info.ID)
		}
		for _, p := range h.machine.decisions() {
			s.logf("%v: log holds the decision on %v for %v", h.shard, p.info.ID, p.participants)
		}
	}
}

func (s *scenario) rows() {
	v := s.w.cluster.View()
	for k := range txnproto.Key(s.w.cluster.cfg.Workload.InitialKeys()) {
		if r := v.Get(k); r.Version > 0 {
			s.logf("%d = %d, version %d, exists %v", k, r.Value, r.Version, r.Exists)
		}
	}
	v.Inserted(func(r txnproto.Row) { s.logf("inserted %d = %d, version %d", r.Key, r.Value, r.Version) })
}

// args reads a command's arguments; one that is not read is an error.
type args struct {
	t    *testing.T
	d    *datadriven.TestData
	used map[string]bool
}

func (a args) has(k string) bool {
	a.used[k] = true
	return a.d.HasArg(k)
}

func (a args) str(k string) string {
	a.used[k] = true
	var v string
	a.d.ScanArgs(a.t, k, &v)
	return v
}

func (a args) num(k string, absent int) int {
	if !a.has(k) {
		return absent
	}
	n, err := strconv.Atoi(a.str(k))
	if err != nil {
		a.d.Fatalf(a.t, "%s: %v", k, err)
	}
	return n
}

func (a args) dur(k string) time.Duration {
	v, err := time.ParseDuration(a.str(k))
	if err != nil {
		a.d.Fatalf(a.t, "%s: %v", k, err)
	}
	return v
}

func (a args) nth(k, prefix string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(a.str(k), prefix))
	if err != nil || n < 1 {
		a.d.Fatalf(a.t, "%s: want %s1 and so on", k, prefix)
	}
	return n - 1
}

func (a args) shard(k string) txnproto.ShardID { return txnproto.ShardID(a.nth(k, "s")) }
func (a args) node(k string) txnproto.NodeID   { return txnproto.NodeID(a.nth(k, "n")) }

func (a args) reason(name string) txnproto.AbortReason {
	for r := txnproto.NoReason + 1; r < txnproto.NumReasons; r++ {
		if r.String() == name {
			return r
		}
	}
	a.d.Fatalf(a.t, "no reason is named %q", name)
	return 0
}

func (a args) verdict() txnproto.Verdict {
	switch v := a.str("verdict"); {
	case v == "grant":
		return txnproto.Granted
	case v == "wait":
		return txnproto.Waiting
	case strings.HasPrefix(v, "abort:"):
		return txnproto.Abort(a.reason(strings.TrimPrefix(v, "abort:")))
	default:
		a.d.Fatalf(a.t, "no verdict is named %q", v)
		return txnproto.Granted
	}
}

func (a args) allUsed() {
	for _, arg := range a.d.CmdArgs {
		if !a.used[arg.Key] {
			a.d.Fatalf(a.t, "unknown argument %s", arg.Key)
		}
	}
}

// ruled is the controller of a scenario: it grants but where a rule says otherwise.
type ruled struct {
	s     *scenario
	shard txnproto.ShardID
}

func (s *scenario) controller(h txnproto.Host, _ txnproto.Params) txnproto.Controller {
	s.hosts[h.Shard()] = h
	return &ruled{s, h.Shard()}
}

func (c *ruled) rule(call string) txnproto.Verdict {
	for _, r := range c.s.rules {
		if r.call == call && r.shard == c.shard && !r.used {
			r.used = !r.always
			return r.verdict
		}
	}
	return txnproto.Granted
}

func (c *ruled) Access(tx *txnproto.Txn, op *txnproto.Op) txnproto.Verdict {
	v := c.rule("access")
	c.s.logf("%v: %v %v %d: %v", c.shard, tx.ID, op.Kind, op.Key, v)
	return v
}

func (c *ruled) Prepare(tx *txnproto.Txn) txnproto.Verdict {
	v := c.rule("prepare")
	c.s.logf("%v: %v prepare: %v", c.shard, tx.ID, v)
	return v
}

func (c *ruled) Finish(tx *txnproto.Txn, o txnproto.Outcome) {
	c.s.logf("%v: %v %v", c.shard, tx.ID, o)
}

func (c *ruled) Recover(tx *txnproto.Txn) {
	c.s.logf("%v: %v recovered with %d puts", c.shard, tx.ID, len(tx.Puts))
}

// texts is the workload of a scenario: each client has the program its file gives.
type texts struct{ s *scenario }

func (texts) Classes() []string                   { return []string{"scripted"} }
func (texts) InitialKeys() uint64                 { return 12 }
func (texts) Initial(txnproto.Key) txnproto.Value { return 100 }
func (texts) ValueBytes() int                     { return 10 }
func (texts) Check(txnproto.View) error           { return nil }

func (w texts) Generator(_ rng.Seed, _ string, c txnproto.ClientID) txnproto.Generator {
	return textGen{&text{s: w.s, client: c, steps: w.s.programs[c]}}
}

type textGen struct{ p *text }

func (g textGen) Next(txnproto.Program) txnproto.Program { return g.p }

type text struct {
	s      *scenario
	client txnproto.ClientID
	steps  []string
	at     int
}

func (p *text) Class() txnproto.ClassID { return 0 }

func (p *text) Start(int, bool) { p.at = 0 }

var opsByName = map[string]txnproto.OpKind{
	"read": txnproto.Read, "lock": txnproto.ReadForUpdate, "write": txnproto.Write, "modify": txnproto.Modify,
	"insert": txnproto.Insert, "delete": txnproto.Delete, "scan": txnproto.Scan,
}

func (p *text) Next(last *txnproto.Result, a *txnproto.Action) txnproto.Step {
	if last != nil {
		p.report(last)
	}
	f := strings.Fields(p.steps[p.at])
	p.at++
	switch f[0] {
	case "commit":
		return txnproto.StepCommit
	case "rollback":
		return txnproto.StepRollback
	case "think":
		d, err := time.ParseDuration(f[1])
		if err != nil {
			panic(err)
		}
		a.Think = d
		return txnproto.StepThink
	}
	kind, ok := opsByName[f[0]]
	if !ok {
		panic("no step is named " + f[0])
	}
	n := make([]int, 3)
	for i := range f[1:] {
		var err error
		if n[i], err = strconv.Atoi(f[i+1]); err != nil {
			panic(err)
		}
	}
	a.Op = txnproto.Op{Kind: kind, Key: txnproto.Key(n[0]), Value: txnproto.Value(n[1])}
	if kind == txnproto.Scan {
		a.Op.End, a.Op.Value = txnproto.Key(n[1]), 0
	}
	return txnproto.StepOp
}

func (p *text) report(r *txnproto.Result) {
	if p.s.w == nil || r.Rows == nil {
		return
	}
	var b strings.Builder
	for _, row := range r.Rows {
		fmt.Fprintf(&b, " %d", row.Key)
		switch {
		case !row.Exists:
			b.WriteString("=absent")
		default:
			fmt.Fprintf(&b, "=%d", row.Value)
		}
		if row.Own {
			b.WriteString("(own)")
		}
	}
	p.s.logf("client %d: scanned%s", p.client, b.String())
}
