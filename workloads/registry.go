package workloads

import (
	"fmt"
	"slices"
	"strings"

	"interleave/txnproto"
)

// Info is a workload's entry in the registry.
type Info struct {
	Name, Help string
	Params     []txnproto.Param
	// Clients and Requests are how many a demonstration is made for; 0 is any number.
	Clients, Requests int

	make func(p txnproto.Params, clients int) (txnproto.Workload, error)
}

// registry is the one list, in the order in which help shows it.
var registry = []Info{ycsbInfo, bankInfo, twoTransfersInfo, queueInfo}

// Workloads lists the registered workloads.
func Workloads() []Info { return slices.Clone(registry) }

// Find returns the entry named name, or an error that lists the names.
func Find(name string) (Info, error) {
	names := make([]string, len(registry))
	for i, w := range registry {
		if w.Name == name {
			return w, nil
		}
		names[i] = w.Name
	}
	return Info{}, fmt.Errorf("unknown workload %q: allowed are %s", name, strings.Join(names, ", "))
}

// New returns the workload named name. Parameters not given have their
// defaults. clients is the number of generators that will be made, with ids 0
// to clients-1 (1 for the arrivals of an open loop): new rows get their keys by
// it. The cost does not grow with the number of keys, so New is also the check
// of a setting. The error names the parameter, the value and what is allowed.
func New(name string, given map[string]string, clients int) (txnproto.Workload, error) {
	info, err := Find(name)
	if err != nil {
		return nil, err
	}
	if clients < 1 {
		return nil, fmt.Errorf("workload %s: clients is %d, allowed are whole numbers from 1", name, clients)
	}
	p, err := txnproto.NewParams("workload "+name, info.Params, given)
	if err != nil {
		return nil, err
	}
	w, err := info.make(p, clients)
	if err != nil {
		return nil, fmt.Errorf("workload %s: %w", name, err)
	}
	return w, nil
}
