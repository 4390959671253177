package sim

import (
	"math"
	"slices"
	"time"

	"interleave/internal/names"
	"interleave/sim/rng"
	"interleave/txnproto"
)

// Groups of fields, in the order of the help.
const (
	groupProtocol   = "Protocol"
	groupTimestamps = "Timestamps"
	groupWorkload   = "Workload"
	groupClients    = "Clients"
	groupRetry      = "Retry"
	groupCluster    = "Cluster"
	groupMeasure    = "Measurement"
	groupFiles      = "Files"
)

// Bounds that keep a typing error from becoming a run that cannot be held.
const (
	maxClients  = 10_000_000
	maxMachines = 1000
	maxCount    = 1e12
)

var inf = math.Inf(1)

// shorthands are the workload parameters that have a field of their own.
var shorthands = map[string]bool{}

// Fields returns every setting, in the order of the help and of a written spec.
func Fields() []Field { return slices.Clone(fieldTable) }

// fieldTable is the one list of settings and defaults.
var fieldTable = slices.Concat(protocolFields(), timestampFields(), workloadFields(), clientFields(), retryFields(), clusterFields(), measureFields(), fileFields())

func protocolFields() []Field {
	return []Field{
		choice(Field{
			Name: "protocol", Group: groupProtocol, Default: "2pl,to,occ", Many: true, Choices: protocolNames,
			Help: "concurrency control, or all (see: simulate list protocols)",
		}, func(r *RunSpec) *string { return &r.Protocol }),
		pairs(Field{
			Name: "param", Group: groupProtocol,
			Help: "parameter of a protocol, PROTOCOL.NAME=VALUE, or NAME=VALUE for every protocol that has it; may be repeated",
		}, func(r *RunSpec) *map[string]string { return &r.Param }, nil),
	}
}

func workloadFields() []Field {
	share := func(name, what string) Field {
		return realShort(Field{Name: name, Group: groupWorkload, Max: 1, Help: "share of operations that " + what})
	}
	return []Field{
		choice(Field{
			Name: "workload", Group: groupWorkload, Default: "ycsb", Many: true, Choices: workloadNames,
			Help: "what the clients do (see: simulate list workloads)",
		}, func(r *RunSpec) *string { return &r.Workload }),
		pairs(Field{
			Name: "workload-param", Group: groupWorkload,
			Help: "parameter of the workload, NAME=VALUE; may be repeated",
		}, func(r *RunSpec) *map[string]string { return &r.WorkloadParam }, shorthands),
		ofWorkload(Field{
			Name: "mix", Group: groupWorkload, Many: true, Choices: func() []string { return []string{"custom", "a", "b", "c", "d", "e", "f"} },
			Help: "YCSB core mix, a to f, with its distribution unless another is given; or custom",
		}, KindChoice, nil),
		ofWorkload(Field{
			Name: "distribution", Group: groupWorkload, Default: "uniform,zipfian", Many: true, Choices: distributionNames,
			Help: "which keys are accessed (see: simulate list distributions)",
		}, KindChoice, nil),
		realShort(Field{
			Name: "theta", Group: groupWorkload, Many: true, Max: inf,
			Help: "skew of the zipfian distributions: 0 is uniform, 1.2 is extreme",
		}),
		wholeShort(Field{Name: "keys", Group: groupWorkload, Many: true, Min: 1, Max: float64(rng.MaxKeys), Help: "rows in the database at the start"}),
		wholeShort(Field{Name: "ops", Group: groupWorkload, Many: true, Min: 1, Max: 1e6, Help: "operations of one transaction"}),
		share("read", "read"),
		share("update", "write without reading"),
		share("rmw", "read and write in one step"),
		share("insert", "add a row"),
		share("scan", "read a range"),
		ofWorkload(Field{Name: "classes", Group: groupWorkload, Help: "transaction classes with their weights, such as short and long"}, KindText, nil),
		{
			Name: "ycsb-file", Group: groupWorkload, Kind: KindText,
			Help: "take the workload from a property file of YCSB's; other settings override it",
			// Its content is laid under the spec when it is set.
			set: func(*RunSpec, string) error { return nil },
			get: func(*RunSpec) string { return "" },
		},
	}
}

func clientFields() []Field {
	return []Field{
		whole(Field{
			Name: "clients", Group: groupClients, Default: "24", Many: true, Min: 1, Max: maxClients,
			Help: "clients, each with one request open at a time; open loop: requests served at a time",
		}, func(r *RunSpec) *int { return &r.Clients }),
		dist(Field{
			Name: "think", Group: groupClients, Default: "0s",
			Help: "a client's pause between two requests, a distribution",
		}, func(r *RunSpec) *rng.Dist { return &r.Think }),
		decimal(Field{
			Name: "rate", Group: groupClients, Default: "0", Many: true, Max: 1e9,
			Help: "open loop: requests that arrive per virtual second (Poisson); 0 is a closed loop",
		}, func(r *RunSpec) *float64 { return &r.Rate }),
		whole(Field{
			Name: "max-open", Group: groupClients, Default: "10000", Min: 1, Max: maxClients,
			Help: "open loop: requests open at a time; those beyond are turned away and counted",
		}, func(r *RunSpec) *int { return &r.MaxOpen }),
		whole(Field{
			Name: "mpl", Group: groupClients, Default: "0", Many: true, Max: maxClients,
			Help: "multiprogramming limit: attempts that run at a time; 0 is no limit",
		}, func(r *RunSpec) *int { return &r.MPL }),
	}
}

func retryFields() []Field {
	policy := choice(Field{
		Name: "retry", Group: groupRetry, Default: "exponential", Many: true,
		Choices: func() []string { return txnproto.RetryPolicyNames },
		Help:    "how an aborted request is tried again",
	}, nil)
	policy.set = func(r *RunSpec, s string) error {
		p, err := txnproto.ParseRetryPolicy(s)
		if err != nil {
			return unknownName("retry", s, txnproto.RetryPolicyNames)
		}
		r.Retry = p
		return nil
	}
	policy.get = func(r *RunSpec) string { return txnproto.RetryPolicyNames[r.Retry] }
	return []Field{
		policy,
		duration(Field{
			Name: "backoff", Group: groupRetry, Default: "1ms",
			Help: "wait before the first retry",
		}, func(r *RunSpec) *time.Duration { return &r.Backoff }),
		duration(Field{
			Name: "backoff-max", Group: groupRetry, Default: "100ms",
			Help: "longest wait before a retry",
		}, func(r *RunSpec) *time.Duration { return &r.BackoffMax }),
		decimal(Field{
			Name: "jitter", Group: groupRetry, Default: "0.5", Max: 1,
			Help: "share of the wait that is random",
		}, func(r *RunSpec) *float64 { return &r.Jitter }),
		whole(Field{
			Name: "max-attempts", Group: groupRetry, Default: "0", Many: true, Max: math.MaxInt32,
			Help: "attempts after which a request is given up; 0 is no bound",
		}, func(r *RunSpec) *int { return &r.MaxAttempts }),
		boolean(Field{
			Name: "fresh-keys", Group: groupRetry, Default: "false",
			Help: "a retry draws new keys instead of repeating its own",
		}, func(r *RunSpec) *bool { return &r.FreshKeys }),
	}
}

func clusterFields() []Field {
	return []Field{
		whole(Field{Name: "shards", Group: groupCluster, Default: "3", Many: true, Min: 1, Max: maxMachines, Help: "partitions of the keys, each a replicated log"}, func(r *RunSpec) *int { return &r.Shards }),
		whole(Field{Name: "replicas", Group: groupCluster, Default: "3", Many: true, Min: 1, Max: 99, Help: "copies of each shard, on different machines"}, func(r *RunSpec) *int { return &r.Replicas }),
		whole(Field{Name: "machines", Group: groupCluster, Default: "3", Many: true, Min: 1, Max: maxMachines, Help: "machines, each with processors and a log disk"}, func(r *RunSpec) *int { return &r.Machines }),
		choice(Field{
			Name: "replication", Group: groupCluster, Default: "raft", Many: true,
			Choices: func() []string { return []string{"raft", "quorum", "none"} },
			Help:    "hashicorp/raft in virtual time, its fast model, or a single copy",
		}, func(r *RunSpec) *string { return &r.Replication }),
		choice(Field{
			Name: "placement", Group: groupCluster, Default: "hash",
			Choices: func() []string { return []string{"hash", "range"} },
			Help:    "how keys are divided among the shards",
		}, func(r *RunSpec) *string { return &r.Placement }),
		choice(Field{
			Name: "network", Group: groupCluster, Default: "lan", Many: true, Choices: networkNames,
			Help: "latencies between the machines (see: simulate list networks)",
		}, func(r *RunSpec) *string { return &r.Network }),
		decimal(Field{Name: "loss", Group: groupCluster, Default: "0", Many: true, Max: 0.9, Help: "share of transmissions that are lost and sent again"}, func(r *RunSpec) *float64 { return &r.Loss }),
		perSecond(Field{Name: "bandwidth", Group: groupCluster, Help: "of a link in one direction, bytes per second; 0 is no limit, and the network's own is the default"}, func(r *RunSpec) *int64 { return &r.Bandwidth }),
		whole(Field{Name: "cpus", Group: groupCluster, Default: "4", Many: true, Min: 1, Max: 4096, Help: "processors of a machine"}, func(r *RunSpec) *int { return &r.CPUs }),
		dist(Field{Name: "cpu-op", Group: groupCluster, Default: "exp:20µs", Help: "processor time of an operation, a distribution"}, func(r *RunSpec) *rng.Dist { return &r.CPUOp }),
		dist(Field{Name: "cpu-commit", Group: groupCluster, Default: "exp:20µs", Help: "processor time of a commit, prepare or decision, a distribution"}, func(r *RunSpec) *rng.Dist { return &r.CPUCommit }),
		dist(Field{Name: "fsync", Group: groupCluster, Default: "lognormal:500µs,0.3", Help: "time of a disk sync, a distribution"}, func(r *RunSpec) *rng.Dist { return &r.Fsync }),
		perSecond(Field{Name: "disk-bandwidth", Group: groupCluster, Default: "500MB", Help: "of a log disk, bytes per second; 0 is no limit"}, func(r *RunSpec) *int64 { return &r.DiskBandwidth }),
		text(Field{
			Name: "crash", Group: groupCluster,
			Help: "stop nodes: NODE@TIME+DOWN, such as n1@300ms+2s (from when the clients begin); several separated by commas",
		}, func(r *RunSpec) *string { return &r.Crash }),
	}
}

func measureFields() []Field {
	requests := whole(Field{
		Name: "requests", Group: groupMeasure, Default: "2000", Min: 1, Max: maxCount,
		Help: "end when so many requests have completed after the warm-up",
	}, func(r *RunSpec) *int { return &r.Requests })
	requests.get = unsetIfZero(requests.get, "0")
	length := duration(Field{
		Name: "duration", Group: groupMeasure,
		Help: "end after this virtual time, warm-up included, instead of --requests",
	}, func(r *RunSpec) *time.Duration { return &r.Duration })
	length.get = unsetIfZero(length.get, "0s")
	return []Field{
		requests,
		length,
		duration(Field{
			Name: "warmup", Group: groupMeasure, Default: "100ms",
			Help: "virtual time before measurement starts",
		}, func(r *RunSpec) *time.Duration { return &r.Warmup }),
		duration(Field{
			Name: "max-virtual-time", Group: groupMeasure, Default: "1h",
			Help: "end a run that takes longer from when its clients begin, with the verdict virtual-time-bound",
		}, func(r *RunSpec) *time.Duration { return &r.MaxVirtualTime }),
		whole(Field{
			Name: "seed", Group: groupMeasure, Default: "1", Many: true, Max: math.MaxUint64,
			Help: "root of all randomness: same spec, same seed, same run",
		}, func(r *RunSpec) *rng.Seed { return &r.Seed }),
		whole(Field{
			Name: "starvation-attempts", Group: groupMeasure, Default: "10", Min: 1, Max: math.MaxInt32,
			Help: "a request that needed more attempts counts as starved",
		}, func(r *RunSpec) *int { return &r.StarvationAttempts }),
		boolean(Field{
			Name: "check", Group: groupMeasure, Default: "true",
			Help: "prove from the history that the promised isolation was kept",
		}, func(r *RunSpec) *bool { return &r.Check }),
		whole(Field{
			Name: "check-window", Group: groupMeasure, Default: "0", Max: maxCount,
			Help: "check in overlapping windows of so many requests; 0 checks the whole history",
		}, func(r *RunSpec) *int { return &r.CheckWindow }),
	}
}

func fileFields() []Field {
	return []Field{
		text(Field{
			Name: "data-dir", Group: groupFiles, Outside: true,
			Help: "keep raft's logs in BoltDB files in this directory instead of memory",
		}, func(r *RunSpec) *string { return &r.DataDir }),
		text(Field{
			Name: "history", Group: groupFiles, Outside: true,
			Help: "write the history to this file (see: simulate check)",
		}, func(r *RunSpec) *string { return &r.History }),
	}
}

func unsetIfZero(get func(*RunSpec) string, zero string) func(*RunSpec) string {
	return func(r *RunSpec) string {
		if s := get(r); s != zero {
			return s
		}
		return ""
	}
}

func fieldNamed(name string) (*Field, error) {
	known := make([]string, len(fieldTable))
	for i := range fieldTable {
		if fieldTable[i].Name == name {
			return &fieldTable[i], nil
		}
		known[i] = fieldTable[i].Name
	}
	if n := names.Nearest(name, known); n != "" {
		return nil, &UnknownField{name, n}
	}
	return nil, &UnknownField{Name: name}
}

// UnknownField is the error for a setting that does not exist.
type UnknownField struct{ Name, Nearest string }

// Error implements error.
func (e *UnknownField) Error() string {
	if e.Nearest != "" {
		return "unknown field \"" + e.Name + "\": did you mean \"" + e.Nearest + "\"?"
	}
	return "unknown field \"" + e.Name + "\": simulate schema lists those that exist"
}
