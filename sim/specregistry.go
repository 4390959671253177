package sim

import (
	"fmt"

	"interleave/sim/netsim"
	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/workloads"
)

func protocolNames() []string {
	var names []string
	for _, p := range txnproto.Protocols() {
		names = append(names, p.Name)
	}
	return names
}

func distributionNames() []string {
	var names []string
	for _, c := range rng.Choosers() {
		names = append(names, c.Name)
	}
	return names
}

func networkNames() []string {
	var names []string
	for _, p := range netsim.Presets() {
		names = append(names, p.Name)
	}
	return names
}

func workloadNames() []string {
	var names []string
	for _, w := range workloads.Workloads() {
		names = append(names, w.Name)
	}
	return names
}

// workloadInfo returns the registry's entry, an empty one for an unknown name.
func workloadInfo(name string) workloads.Info {
	info, err := workloads.Find(name)
	if err != nil {
		return workloads.Info{}
	}
	return info
}

func workloadParams(name string) []txnproto.Param { return workloadInfo(name).Params }

func workloadDefault(workload, param string) string {
	for _, d := range workloadParams(workload) {
		if d.Name == param {
			return d.Default
		}
	}
	return ""
}

// NewWorkload makes the run's workload.
func (r *RunSpec) NewWorkload() (txnproto.Workload, error) {
	generators := r.Clients
	if r.Rate > 0 {
		generators = 1
	}
	return workloads.New(r.Workload, r.WorkloadParam, generators)
}

func (r *RunSpec) checkWorkload() error {
	info := workloadInfo(r.Workload)
	if info.Clients > 0 && (r.Clients != info.Clients || r.Rate > 0) {
		return fmt.Errorf("clients: %d is not allowed with workload %s: want %d, in a closed loop", r.Clients, r.Workload, info.Clients)
	}
	w, err := r.NewWorkload()
	if err != nil {
		return err
	}
	p, ok := txnproto.ProtocolNamed(r.Protocol)
	if ok && (p.Declares || p.Sequenced) && !declares(w) {
		return fmt.Errorf("protocol: %s locks beforehand what transactions declare, and those of workload %s declare nothing: want another", r.Protocol, r.Workload)
	}
	return nil
}

// declares reports whether w's programs tell beforehand what they will access. It asks
// one program, so w must not be the workload of a run.
func declares(w txnproto.Workload) bool {
	_, ok := w.Generator(0, "declares", 0).Next(nil).(txnproto.Declarer)
	return ok
}
