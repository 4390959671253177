package nodes

import (
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"interleave/sim/rng"
)

// errNodeDown is what a call to, or from, a node that crashed ends with.
var errNodeDown = errors.New("node is down")

// errDeposed is what entries are refused with that an instance sends when it has
// ceased to be leader.
var errDeposed = errors.New("leader no more")

// callKind is what a call asks for. The order is that in which calls of one
// stimulus to one node are sent.
type callKind uint8

const (
	callVote callKind = iota
	callPreVote
	callTimeoutNow
	callAppend
	callSnapshot
)

// call is one request of an instance to another and, later, its answer. It is
// the library's AppendFuture when it was made through a pipeline.
type call struct {
	kind     callKind
	from, to *replica
	inst     *instance // who asked
	term     uint64
	index    uint64 // of the last entry; of the one before when there is none
	bytes    int
	key      uint64 // what the message is, for the network
	slot     uint32 // in raftLogs.calls

	request any
	state   []byte // callSnapshot: the snapshot

	answers chan raft.RPCResponse // from the instance asked
	answer  raft.RPCResponse

	done chan raft.RPCResponse // to the goroutine that waits; nil in a pipeline
	pipe *pipeline             // nil: a goroutine waits
	resp *raft.AppendEntriesResponse
	at   time.Time
	over sync.WaitGroup // pipeline: until answered
	err  error
}

// Error implements raft.Future.
func (c *call) Error() error {
	c.over.Wait()
	return c.err
}

// Start implements raft.AppendFuture.
func (c *call) Start() time.Time { return c.at }

// Request implements raft.AppendFuture.
func (c *call) Request() *raft.AppendEntriesRequest { return c.request.(*raft.AppendEntriesRequest) }

// Response implements raft.AppendFuture.
func (c *call) Response() *raft.AppendEntriesResponse { return c.resp }

// transport is an instance's side of the network. It only files what the
// instance sends: the loop sends it when the instance has settled.
type transport struct {
	rep      *replica
	inst     *instance
	addr     raft.ServerAddress
	consumer chan raft.RPC

	mu     sync.Mutex
	out    []*call
	closed bool
}

var (
	_ raft.Transport   = (*transport)(nil)
	_ raft.WithPreVote = (*transport)(nil)
)

func newTransport(rep *replica, inst *instance) *transport {
	// One message is delivered at a time; the buffer lets the loop do it
	// without waiting for the instance.
	return &transport{rep: rep, inst: inst, addr: raft.ServerAddress(rep.name), consumer: make(chan raft.RPC, 4)}
}

// file takes c for the loop to send.
func (t *transport) file(target raft.ServerAddress, c *call) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errNodeDown
	}
	if (c.kind == callAppend || c.kind == callSnapshot) && !t.leads(c.term) {
		return errDeposed
	}
	c.from, c.inst = t.rep, t.inst
	c.to = t.rep.peer(target)
	c.answers = make(chan raft.RPCResponse, 1)
	t.out = append(t.out, c)
	return nil
}

// leads reports whether the instance is leader in term. The goroutine that
// replicates to a peer may outlive the leadership, in a call that hangs or in the
// pause after it: then it finds that it is to stop and that there is something to
// send, both at once, and chooses at random. What it would send is needless.
func (t *transport) leads(term uint64) bool {
	r := t.inst.raft
	return r.State() == raft.Leader && r.CurrentTerm() == term
}

// ask files c and waits for the answer.
func (t *transport) ask(target raft.ServerAddress, c *call) (any, error) {
	c.done = make(chan raft.RPCResponse, 1)
	if err := t.file(target, c); err != nil {
		return nil, err
	}
	a := <-c.done
	return a.Response, a.Error
}

// take returns what was filed since the last call, in an order that depends on
// what it is: the instance's goroutines may have run in any.
func (t *transport) take() []*call {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.out
	t.out = nil
	slices.SortStableFunc(out, func(a, b *call) int {
		for _, d := range [...]int{
			a.to.index - b.to.index, int(a.kind) - int(b.kind),
			cmpUint64(a.term, b.term), cmpUint64(a.index, b.index), a.bytes - b.bytes,
		} {
			if d != 0 {
				return d
			}
		}
		return 0
	})
	return out
}

func cmpUint64(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// close makes every later call fail at once.
func (t *transport) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.out = nil
}

// Consumer implements raft.Transport.
func (t *transport) Consumer() <-chan raft.RPC { return t.consumer }

// LocalAddr implements raft.Transport.
func (t *transport) LocalAddr() raft.ServerAddress { return t.addr }

// EncodePeer implements raft.Transport.
func (t *transport) EncodePeer(_ raft.ServerID, addr raft.ServerAddress) []byte { return []byte(addr) }

// DecodePeer implements raft.Transport.
func (t *transport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler implements raft.Transport. The library's heartbeats are
// beyond the run, so there is nothing to hand to it.
func (t *transport) SetHeartbeatHandler(func(raft.RPC)) {}

// appendCall returns the call for an AppendEntries request.
func (t *transport) appendCall(req *raft.AppendEntriesRequest) *call {
	c := &call{kind: callAppend, request: req, term: req.Term, index: req.PrevLogEntry, bytes: appendHeaderBytes}
	for _, l := range req.Entries {
		c.index = l.Index
		c.bytes += logBytes(l, t.rep.store.valueBytes)
	}
	return c
}

// AppendEntries implements raft.Transport.
func (t *transport) AppendEntries(_ raft.ServerID, target raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	a, err := t.ask(target, t.appendCall(req))
	if err == nil {
		*resp = *a.(*raft.AppendEntriesResponse)
	}
	return err
}

// RequestVote implements raft.Transport.
func (t *transport) RequestVote(_ raft.ServerID, target raft.ServerAddress, req *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	a, err := t.ask(target, &call{kind: callVote, request: req, term: req.Term, index: req.LastLogIndex, bytes: appendHeaderBytes})
	if err == nil {
		*resp = *a.(*raft.RequestVoteResponse)
	}
	return err
}

// RequestPreVote implements raft.WithPreVote.
func (t *transport) RequestPreVote(_ raft.ServerID, target raft.ServerAddress, req *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	a, err := t.ask(target, &call{kind: callPreVote, request: req, term: req.Term, index: req.LastLogIndex, bytes: appendHeaderBytes})
	if err == nil {
		*resp = *a.(*raft.RequestPreVoteResponse)
	}
	return err
}

// InstallSnapshot implements raft.Transport. The snapshot travels as one message.
func (t *transport) InstallSnapshot(_ raft.ServerID, target raft.ServerAddress, req *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	state, err := io.ReadAll(data)
	if err != nil {
		return err
	}
	a, err := t.ask(target, &call{
		kind: callSnapshot, request: req, term: req.Term, index: req.LastLogIndex,
		bytes: appendHeaderBytes + len(state), state: state,
	})
	if err == nil {
		*resp = *a.(*raft.InstallSnapshotResponse)
	}
	return err
}

// TimeoutNow implements raft.Transport.
func (t *transport) TimeoutNow(_ raft.ServerID, target raft.ServerAddress, req *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	a, err := t.ask(target, &call{kind: callTimeoutNow, request: req, bytes: appendHeaderBytes})
	if err == nil {
		*resp = *a.(*raft.TimeoutNowResponse)
	}
	return err
}

// AppendEntriesPipeline implements raft.Transport.
func (t *transport) AppendEntriesPipeline(_ raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errNodeDown
	}
	p := &pipeline{t: t, target: target, out: make(chan raft.AppendFuture, 4)}
	t.inst.pipes[t.rep.peer(target).place] = p
	return p, nil
}

// pipeline is a stream of AppendEntries calls to one peer whose answers come in order.
type pipeline struct {
	t      *transport
	target raft.ServerAddress
	out    chan raft.AppendFuture
	closed bool // guarded by t.mu
}

// AppendEntries implements raft.AppendPipeline.
func (p *pipeline) AppendEntries(req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if p.isClosed() {
		return nil, raft.ErrPipelineShutdown
	}
	c := p.t.appendCall(req)
	c.pipe, c.resp, c.at = p, resp, time.Now()
	c.over.Add(1)
	if err := p.t.file(p.target, c); err != nil {
		return nil, err
	}
	return c, nil
}

// Consumer implements raft.AppendPipeline.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.out }

// Close implements raft.AppendPipeline.
func (p *pipeline) Close() error {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	p.closed = true
	return nil
}

func (p *pipeline) isClosed() bool {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	return p.closed
}

// identify sets c's key: the shard, what is asked for, term and index, and how
// often the same was sent to that peer in a row. The link is the network's own.
func (c *call) identify() {
	l := &c.from.lastSent[c.to.place]
	if l.kind == c.kind && l.term == c.term && l.index == c.index {
		l.times++
	} else {
		*l = sent{c.kind, c.term, c.index, 0}
	}
	k := rng.Hash(uint64(c.from.shard.id)<<8|uint64(c.kind), c.term)
	c.key = rng.Hash(rng.Hash(k, c.index), l.times)
}

// refresh gives a leader's entries the commit index of when they are sent: what
// they would say had the library's main goroutine run before the one that made
// them, which is as good an order as any.
func (c *call) refresh() {
	if req, ok := c.request.(*raft.AppendEntriesRequest); ok && c.inst.trans.leads(req.Term) {
		req.LeaderCommitIndex = c.inst.raft.CommitIndex()
	}
}

// sent is the latest message of a replica to a peer.
type sent struct {
	kind  callKind
	term  uint64
	index uint64
	times uint64 // it was sent before
}
