package nodes

import (
	"bytes"
	"fmt"

	"github.com/hashicorp/raft"

	"interleave/sim/event"
	"interleave/sim/netsim"
	"interleave/sim/vtime"
	"interleave/txnproto"
)

// letter is a message of a replica that is to leave once the replica's disk has
// synced its write number after: a call of its own, or its answer to another's.
type letter struct {
	call   *call
	arg    uint64 // names the call
	answer bool
	after  uint64
}

// place gives c a slot.
func (r *raftLogs) place(c *call) {
	var i uint32
	if n := len(r.freeCalls); n > 0 {
		i = r.freeCalls[n-1]
		r.freeCalls = r.freeCalls[:n-1]
		r.calls[i] = c
	} else {
		i = uint32(len(r.calls))
		r.calls = append(r.calls, c)
		r.gens = append(r.gens, 0)
	}
	c.slot = i
}

// arg is by what events name c.
func (r *raftLogs) arg(c *call) uint64 { return uint64(r.gens[c.slot])<<32 | uint64(c.slot) }

// lookup returns the call that arg names, or nil when it is over.
func (r *raftLogs) lookup(arg uint64) *call {
	if i := uint32(arg); r.gens[i] == uint32(arg>>32) {
		return r.calls[i]
	}
	return nil
}

// end forgets c: messages about it that are still under way mean nothing.
func (r *raftLogs) end(c *call) {
	r.calls[c.slot] = nil
	r.gens[c.slot]++
	r.freeCalls = append(r.freeCalls, c.slot)
}

// send puts a letter on the network, unless the call it is about has ended.
func (r *raftLogs) send(l letter) {
	c := l.call
	if r.lookup(l.arg) != c {
		return
	}
	m := netsim.Message{FIFO: true, Arg: l.arg}
	if l.answer {
		m.From, m.To = netsim.Site(c.to.node), netsim.Site(c.from.node)
		m.Kind, m.Bytes, m.Key, m.Handler = messageKind(c.kind, true), appendHeaderBytes, c.key+1, r.hAnswer
	} else {
		m.From, m.To = netsim.Site(c.from.node), netsim.Site(c.to.node)
		m.Kind, m.Bytes, m.Key, m.Handler = messageKind(c.kind, false), c.bytes, c.key, r.hRequest
	}
	if r.cfg.Net.Send(&m) == event.Never {
		sendAgain(r.cfg.Net, &m)
	}
}

func messageKind(k callKind, answer bool) netsim.Kind {
	switch k {
	case callVote, callPreVote, callTimeoutNow:
		return netsim.Kind(txnproto.MsgElection)
	case callSnapshot:
		return netsim.Kind(txnproto.MsgSnapshot)
	case callAppend:
		if answer {
			return netsim.Kind(txnproto.MsgAppendReply)
		}
		return netsim.Kind(txnproto.MsgAppend)
	default:
		panic("nodes: unknown call")
	}
}

// requestArrived gives a request to the instance it is for.
func (r *raftLogs) requestArrived(arg uint64) {
	c := r.lookup(arg)
	if c == nil {
		return
	}
	rep := c.to
	if rep.inst == nil {
		return // it hears nothing; see raft_crash.go for what becomes of the call
	}
	rpc := raft.RPC{Command: c.request, RespChan: c.answers}
	if c.state != nil {
		rpc.Reader = bytes.NewReader(c.state)
	}
	order := vtime.OrderMatters
	if rep.inst.raft.State() == raft.Follower {
		order = vtime.AnyOrder
	}
	rep.begin(order)
	rep.inst.trans.consumer <- rpc
	rep.settle()
	select {
	case c.answer = <-c.answers:
	default:
		panic(fmt.Sprintf("nodes: at %v: %v has not answered %T of term %d, index %d", r.loop.Now(), rep, c.request, c.term, c.index))
	}
	rep.answered(c)
	rep.collect(letter{call: c, arg: arg, answer: true})
}

// answerArrived gives an answer to the instance that asked.
func (r *raftLogs) answerArrived(arg uint64) {
	c := r.lookup(arg)
	if c == nil {
		return
	}
	r.conclude(c, c.answer)
}

// conclude ends c with an answer. The instance that asked is alive: a crash ends
// its calls.
func (r *raftLogs) conclude(c *call, a raft.RPCResponse) {
	r.end(c)
	rep := c.from
	if c.pipe != nil && c.pipe.isClosed() {
		return
	}
	order := vtime.OrderMatters
	if resp, ok := a.Response.(*raft.AppendEntriesResponse); a.Error != nil || ok && resp.Success {
		order = vtime.AnyOrder
	}
	rep.begin(order)
	c.finish(a)
	rep.settle()
	rep.collect()
}

// finish wakes who waits for c.
func (c *call) finish(a raft.RPCResponse) {
	if c.pipe == nil {
		c.done <- a
		return
	}
	// The library does not look at a future's error. It takes an answer that is
	// no success for the end of the pipeline, which is what it is.
	c.err = a.Error
	if resp, ok := a.Response.(*raft.AppendEntriesResponse); ok && a.Error == nil {
		*c.resp = *resp
	}
	c.over.Done()
	c.pipe.out <- c
}
