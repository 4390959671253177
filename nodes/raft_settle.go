package nodes

import "time"

// settleEvery is how often a leader tells its followers the commit index while
// Settle waits for one that is slow.
const settleEvery = 10 * time.Millisecond

// Settle implements Replication. Each leader proposes two no-ops: when the first
// is applied everything before it is committed, and the second tells the
// followers so. For those that are slow it goes on at intervals.
func (r *raftLogs) Settle(done func()) {
	if r.settled != nil {
		panic("nodes: Settle called twice")
	}
	r.settled = done
	for i := range r.shards {
		r.shards[i].settleAt = 0
		r.loop.After(0, r.hSettle, uint64(i))
	}
}

// settleStep proposes a no-op while the shard has not settled.
func (r *raftLogs) settleStep(sh *raftShard) {
	if r.settled == nil {
		return
	}
	if rep := sh.leader; rep != nil && rep.lead.announced && rep.lead.idle() && !sh.settledNow() {
		rep.proposeNoop()
	}
	r.loop.After(settleEvery, r.hSettle, uint64(sh.id))
}

// settledNow reports whether every live replica has applied what it is to.
func (sh *raftShard) settledNow() bool {
	if sh.settleAt == 0 || sh.leader == nil || !sh.leader.lead.announced {
		return false
	}
	for _, rep := range sh.replicas {
		if rep.inst != nil && rep.inst.raft.AppliedIndex() < sh.settleAt {
			return false
		}
	}
	return true
}

// checkSettled ends Settle when every shard has settled.
func (r *raftLogs) checkSettled() {
	for i := range r.shards {
		if !r.shards[i].settledNow() {
			return
		}
	}
	done := r.settled
	r.settled = nil
	done()
}
