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
		sh := &r.shards[i]
		sh.settling, sh.settleAt = true, 0
		r.loop.After(0, r.hSettle, uint64(sh.id))
	}
}

// settleStep proposes a no-op while the shard has not settled.
func (r *raftLogs) settleStep(sh *raftShard) {
	if !sh.settling {
		return
	}
	if rep := sh.leader; rep != nil && rep.lead.announced && rep.lead.idle() {
		rep.proposeNoop()
	}
	r.loop.After(settleEvery, r.hSettle, uint64(sh.id))
}

// checkSettled ends Settle when every live replica has applied what it is to.
func (r *raftLogs) checkSettled(sh *raftShard) {
	if !sh.settling || sh.settleAt == 0 {
		return
	}
	for _, rep := range sh.replicas {
		if rep.inst != nil && rep.inst.raft.AppliedIndex() < sh.settleAt {
			return
		}
	}
	sh.settling = false
	for i := range r.shards {
		if r.shards[i].settling {
			return
		}
	}
	done := r.settled
	r.settled = nil
	done()
}
