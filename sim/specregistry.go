package sim

import (
	"interleave/sim/rng"
	"interleave/txnproto"
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

func networkNames() []string { return []string{"lan", "three-zones", "five-regions"} }

var tmpWorkloads = map[string][]txnproto.Param{
	"ycsb": {
		{Name: "mix", Kind: txnproto.ParamString, Default: ""},
		{Name: "distribution", Kind: txnproto.ParamString, Default: "uniform"},
		{Name: "theta", Kind: txnproto.ParamFloat, Default: "0.99"},
		{Name: "keys", Kind: txnproto.ParamInt, Default: "10000"},
		{Name: "ops", Kind: txnproto.ParamInt, Default: "10"},
	},
	"bank": {{Name: "accounts", Kind: txnproto.ParamInt, Default: "100"}},
}

func workloadNames() []string { return sortedKeys(tmpWorkloads) }

func workloadParams(name string) []txnproto.Param { return tmpWorkloads[name] }

func workloadDefault(workload, param string) string {
	for _, d := range workloadParams(workload) {
		if d.Name == param {
			return d.Default
		}
	}
	return ""
}

func checkWorkload(r *RunSpec) error {
	_, err := txnproto.NewParams(r.Workload, workloadParams(r.Workload), r.WorkloadParam)
	return err
}
