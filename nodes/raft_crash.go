package nodes

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"interleave/sim/vtime"
	"interleave/txnproto"
)

// Crash and restart. A call to a node that is down hangs, as on a connection to
// a machine that lost its power, and fails when the node is back and knows
// nothing of it. A leader's stream of entries to it is given up after the call
// timeout; the library then makes single calls, of which the first hangs.
//
// After a failed call the library pauses, by the bubble's clock, and calls again
// only when there is something to send. So a restart sets the clock, and from
// then on, until the node has caught up, an event every catchUpEvery moves the
// clock and, when the leader is idle, proposes a no-op.

const catchUpEvery = 10 * time.Millisecond // the library's shortest pause

func asDuration(n uint64) time.Duration { return time.Duration(n) }

// Crash implements Replication.
func (r *raftLogs) Crash(node txnproto.NodeID) {
	if !r.up[node] {
		return
	}
	r.up[node] = false
	r.cfg.Disks[node].Crash()
	var led []*replica
	for _, rep := range r.onNode[node] {
		rep.disarm()
		rep.stop()
		rep.shard.settleAt = 0
		if err := rep.store.closeFile(); err != nil {
			r.fail(err)
		}
		rep.store.crash()
		rep.forget()
		if rep.lead.on {
			led = append(led, rep)
		}
		r.watchPipes(rep)
	}
	for _, rep := range led {
		rep.loseLead()
	}
	for _, rep := range r.onNode[node] {
		rep.lead = leading{}
	}
}

// forget clears what was under way between the replica and its disk.
func (rep *replica) forget() {
	rep.writes, rep.syncs = 0, 0
	rep.writeOps = rep.writeOps[:0]
	clear(rep.letters)
	rep.letters = rep.letters[:0]
	rep.behind, rep.catchUpTo = false, 0
	rep.lead.writing = false
}

// stop ends the replica's instance. What it has said and not been answered ends
// with an error, one call at a time.
func (rep *replica) stop() {
	r, inst := rep.logs, rep.inst
	rep.inst = nil
	inst.trans.close()
	rep.begin(vtime.AnyOrder)
	over := inst.raft.Shutdown()
	rep.settle()
	for _, c := range r.calls {
		if c == nil || c.inst != inst {
			continue
		}
		r.end(c)
		if c.pipe == nil {
			rep.begin(vtime.AnyOrder)
			c.finish(raft.RPCResponse{Error: errNodeDown})
			rep.settle()
		}
	}
	if err := over.Error(); err != nil {
		panic(fmt.Sprintf("nodes: at %v: %v does not stop: %v", r.loop.Now(), rep, err))
	}
}

// reopen replaces the instance by a new one on the same stores, as they are.
func (rep *replica) reopen() {
	rep.stop()
	if err := rep.open(false); err != nil {
		panic(fmt.Sprintf("nodes: at %v: %v cannot be opened again: %v", rep.logs.loop.Now(), rep, err))
	}
}

// watchPipes lets the streams of entries to a crashed replica time out.
func (r *raftLogs) watchPipes(down *replica) {
	for _, p := range down.shard.replicas {
		if p.inst != nil && p.inst.pipes[down.place] != nil {
			r.loop.After(r.cfg.CallTimeout, r.hBreak, uint64(p.index)<<32|uint64(down.index))
		}
	}
}

// callTimeout gives up the stream from one replica to another, when that is
// still down.
func (r *raftLogs) callTimeout(arg uint64) {
	from, to := r.replicas[arg>>32], r.replicas[uint32(arg)]
	if from.inst != nil && to.inst == nil {
		r.breakPipe(from, to)
	}
}

// breakPipe ends the stream of entries between two replicas and forgets what is
// under way in it.
func (r *raftLogs) breakPipe(from, to *replica) {
	p := from.inst.pipes[to.place]
	from.inst.pipes[to.place] = nil
	if p == nil || p.isClosed() {
		return
	}
	var first *call
	for _, c := range r.calls {
		if c == nil || c.pipe != p {
			continue
		}
		if first == nil {
			first = c
		}
		r.end(c)
	}
	if first == nil {
		first = &call{kind: callAppend, pipe: p, request: &raft.AppendEntriesRequest{}, resp: &raft.AppendEntriesResponse{}}
		first.over.Add(1)
	}
	from.begin(vtime.AnyOrder)
	first.finish(raft.RPCResponse{Error: errNodeDown})
	from.settle()
	from.collect()
}

// Restart implements Replication.
func (r *raftLogs) Restart(node txnproto.NodeID) error {
	if r.up[node] {
		return nil
	}
	r.advance()
	for _, rep := range r.onNode[node] {
		r.failCallsTo(rep)
	}
	r.up[node] = true
	for _, rep := range r.onNode[node] {
		snap, err := rep.store.reload()
		if err == nil && rep.store.file != nil {
			err = rep.snaps.decode(snap)
		}
		if err != nil {
			return fmt.Errorf("data-dir: %w", err)
		}
		if err := rep.open(false); err != nil {
			return err
		}
		rep.written()
		if rep.shard.leader == nil {
			rep.arm(r.loop.Now())
		}
		rep.behind = true
		rep.shard.settleAt = 0
		if !rep.shard.kicking {
			rep.shard.kicking = true
			r.loop.After(0, r.hKick, uint64(rep.shard.id))
		}
	}
	return nil
}

// failCallsTo ends, one at a time, what hangs on a replica that was down.
func (r *raftLogs) failCallsTo(rep *replica) {
	for _, p := range rep.shard.replicas {
		if p.inst != nil && p != rep {
			r.breakPipe(p, rep)
		}
	}
	for i := range r.calls { // concluding one may add others, to live replicas
		if c := r.calls[i]; c != nil && c.to == rep {
			r.conclude(c, raft.RPCResponse{Error: errNodeDown})
		}
	}
}

// advance moves the bubble's clock to the loop's, and takes up what the
// instances' pauses ended in.
func (r *raftLogs) advance() {
	r.cfg.Bubble.AdvanceTo(r.loop.Now(), vtime.AnyOrder)
	for _, rep := range r.replicas {
		if rep.inst != nil {
			rep.collect()
		}
	}
}

// hasAllOf reports whether rep has every entry of the leader's. What piled up while
// a call hung is more than the library sends in one message, and it sends no
// second one by itself: without a proposal the rest would stay where it is.
func (rep *replica) hasAllOf(lead *replica) bool {
	return lead == nil || rep.inst.raft.LastIndex() >= lead.inst.raft.LastIndex()
}

// kick helps the shard's restarted replicas to catch up, until they have.
func (r *raftLogs) kick(sh *raftShard) {
	r.advance()
	lead := sh.leader
	left := false
	for _, rep := range sh.replicas {
		if rep.inst == nil || !rep.behind {
			continue
		}
		if rep.catchUpTo == 0 && lead != nil {
			// What it had applied when it went down, and its snapshot, may reach
			// as far as the leader: only an entry made since shows that it hears.
			rep.catchUpTo = lead.inst.raft.LastIndex() + 1
		}
		if rep == lead || rep.catchUpTo > 0 && rep.inst.raft.AppliedIndex() >= rep.catchUpTo && rep.hasAllOf(lead) {
			rep.behind, rep.catchUpTo = false, 0
			continue
		}
		left = true
	}
	sh.kicking = left
	if !left {
		return
	}
	if lead != nil && !lead.lead.writing {
		lead.proposeNoop()
	}
	r.loop.After(catchUpEvery, r.hKick, uint64(sh.id))
}
