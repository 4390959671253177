package nodes

import (
	"fmt"

	"github.com/hashicorp/raft"

	"interleave/sim/event"
	"interleave/sim/vtime"
)

// Elections. A follower that has not heard of its leader for its election
// timeout starts one. Heartbeats are not sent one by one: as long as a leader
// lives they do nothing but put off the timeouts. Instead, when a leader is
// lost, each follower's timeout is counted from the last heartbeat before that.
//
// A timeout starts a candidacy by the library's TimeoutNow call, which passes
// over the library's pre-vote. What the pre-vote is for is asked here: no
// candidacy is started while the shard has a leader, or no majority is up.

// firstElections makes replica 0 of each shard a candidate.
func (r *raftLogs) firstElections() {
	for i := range r.shards {
		sh := &r.shards[i]
		r.armAll(sh, r.loop.Now()) // in case it crashes
		if first := sh.replicas[0]; first.inst != nil {
			first.campaign()
		}
	}
}

// armAll starts the election timeouts of a shard's live replicas, counted from base.
func (r *raftLogs) armAll(sh *raftShard, base event.Time) {
	for _, rep := range sh.replicas {
		if rep.inst != nil {
			rep.arm(base)
		}
	}
}

// lastHeartbeat is when the shard's leader was last heard of, if it is lost now.
func (r *raftLogs) lastHeartbeat(sh *raftShard) event.Time {
	now, every := r.loop.Now(), event.Time(r.cfg.HeartbeatInterval)
	return max(sh.ledSince, now-(now+every-sh.phase)%every)
}

// arm starts the replica's election timeout anew.
func (rep *replica) arm(base event.Time) {
	rep.disarm()
	c := &rep.logs.cfg
	d := c.ElectionMin
	if spread := uint64(c.ElectionMax - c.ElectionMin); spread > 0 {
		d += asDuration(rep.timeouts.Uint64n(spread + 1))
	}
	rep.timer = rep.logs.loop.Schedule(max(base.Add(d), rep.logs.loop.Now()), rep.logs.hElection, uint64(rep.index))
	rep.armed = true
}

func (rep *replica) disarm() {
	if rep.armed {
		rep.logs.loop.Cancel(rep.timer)
		rep.armed = false
	}
}

// electionTimeout is called when the replica's election timeout is over.
func (rep *replica) electionTimeout() {
	rep.armed = false
	if rep.inst == nil || rep.shard.leader != nil {
		return
	}
	rep.arm(rep.logs.loop.Now())
	if rep.shard.live() <= len(rep.shard.replicas)/2 {
		return
	}
	if rep.inst.raft.State() == raft.Candidate {
		// It lost its election, or nobody won. Of itself the library's
		// candidate tries again only by a timer, which is beyond the run, and
		// TimeoutNow means nothing to it. A new instance on the same stores
		// is a follower of the same term.
		rep.reopen()
	}
	rep.campaign()
}

// live is the number of replicas that are up.
func (sh *raftShard) live() int {
	n := 0
	for _, rep := range sh.replicas {
		if rep.inst != nil {
			n++
		}
	}
	return n
}

// campaign makes the instance a candidate.
func (rep *replica) campaign() {
	name := []byte(rep.name)
	rep.begin(vtime.OrderMatters)
	rep.inst.trans.consumer <- raft.RPC{
		Command: &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{
			// Without it the library refuses the message, silently.
			ProtocolVersion: raft.ProtocolVersionMax, ID: name, Addr: name,
		}},
		RespChan: make(chan raft.RPCResponse, 1),
	}
	rep.settle()
	rep.collect()
}

// answered is called with an answer the instance has given: who gives its vote
// waits anew.
func (rep *replica) answered(c *call) {
	if v, ok := c.answer.Response.(*raft.RequestVoteResponse); ok && v.Granted && rep.armed {
		rep.arm(rep.logs.loop.Now())
	}
}

// watchState notices that the instance has become leader, or is it no more.
func (rep *replica) watchState() {
	l := &rep.lead
	if rep.inst.raft.State() != raft.Leader {
		rep.loseLead()
		return
	}
	term := rep.inst.raft.CurrentTerm()
	if l.on && l.term == term {
		return
	}
	rep.loseLead() // it leads again, in a later term
	if o := rep.shard.leader; o != nil && o.lead.term >= term {
		if o.lead.term == term {
			panic(fmt.Sprintf("nodes: at %v: %v and %v both lead in term %d", rep.logs.loop.Now(), o, rep, term))
		}
		// Its last vote came when another had been elected in a later term. It
		// will hear of that, and can commit nothing.
		return
	}
	rep.takeLead(term)
}

// takeLead makes the replica its shard's leader. The host hears when an entry
// of the leader's own term is applied: then so is all that was committed before.
func (rep *replica) takeLead(term uint64) {
	r, sh := rep.logs, rep.shard
	if o := sh.leader; o != nil {
		o.loseLead() // it has not heard yet
	}
	sh.leader, sh.ledSince = rep, r.loop.Now()
	rep.lead = leading{on: true, term: term, writing: rep.lead.writing}
	for _, p := range sh.replicas {
		p.disarm()
	}
	rep.proposeNoop()
}

// loseLead ends the replica's leadership, if it has it.
func (rep *replica) loseLead() {
	r, sh := rep.logs, rep.shard
	if !rep.lead.on {
		return
	}
	announced := rep.lead.announced
	rep.lead = leading{writing: rep.lead.writing}
	if sh.leader == rep {
		sh.leader = nil
		if sh.leaderless == event.Never && sh.terms > 0 {
			sh.leaderless = r.loop.Now()
		}
		r.armAll(sh, r.lastHeartbeat(sh))
	}
	if announced {
		r.cfg.Host.Lost(sh.id, rep.node)
	}
}
