package sim

import (
	"fmt"

	"interleave/txnproto"
	"interleave/workloads"
)

// noteUnused says which settings made no difference to the run.
func (r *run) noteUnused() {
	note := func(format string, args ...any) {
		r.result.Notes = append(r.result.Notes, fmt.Sprintf(format, args...))
	}
	p := r.protocol
	if !p.WaitClauses {
		if w := r.spec.waitClause(); w != "" {
			note("%s knows no wait clauses: wait=%s has no effect, as wait=block", p.Name, w)
		}
	}
	if p.Draws == 0 && r.spec.Timestamps != txnproto.FromCounter {
		note("%s draws no timestamps: where they come from changes nothing", p.Name)
	}
}

// waitClause is the workload's parameter wait, "" where operations wait, or it has none.
func (r *RunSpec) waitClause() string {
	for _, d := range workloadParams(r.Workload) {
		if d.Name != workloads.WaitParam {
			continue
		}
		w, given := r.WorkloadParam[d.Name]
		if !given {
			w = d.Default
		}
		if w != d.Choices[0] {
			return w
		}
	}
	return ""
}
