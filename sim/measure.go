package sim

import (
	"strings"
	"time"

	"interleave/nodes"
	"interleave/reports"
	"interleave/sim/event"
	"interleave/txnproto"
	"interleave/txnproto/history"
)

// snapshot takes the figures of the window that ends at now.
func (r *run) snapshot(now event.Time, open []txnproto.OpenRequest) {
	records := make([]reports.Open, 0, len(open))
	for i := range open {
		o := &open[i]
		records = append(records, reports.Open{
			Request: o.Request, Client: o.Client, Class: o.Class, Attempts: o.Attempt, Arrival: o.Arrival, Reason: o.Reason,
		})
	}
	var busy, work time.Duration
	for n := range r.spec.Machines {
		w := r.cluster.Work(txnproto.NodeID(n))
		busy += r.cluster.CPU(txnproto.NodeID(n)).Stats().Busy
		work += w.UsefulCPU + w.WastedCPU + w.RolledBackCPU
		r.collector.Work(true, w.UsefulCPU+w.UsefulDisk+w.RolledBackCPU+w.RolledBackDisk)
		r.collector.Work(false, w.WastedCPU+w.WastedDisk)
	}
	res := r.collector.Finish(now, records)
	control := r.cluster.Control()
	res.SetControl(&control)
	res.SetOperations(r.cluster.Decided())
	res.Resources = r.resources()
	res.Laws = append(res.Laws, reports.UtilisationLaw(busy, work, res.FinishedAttempts(), r.spec.Clients))
	res.Isolation = reports.Isolation{Promised: r.promise, Found: reports.Unchecked, Anomalies: []reports.Anomaly{}}
	r.entries = res.Resources.LogEntries
	r.result = res
}

// resources is what the window used of stations, network and logs.
func (r *run) resources() reports.Resources {
	res := reports.Resources{Stations: []reports.Station{}, Messages: []reports.Traffic{}}
	for n := range r.spec.Machines {
		id := txnproto.NodeID(n)
		work := r.cluster.Work(id)
		cpu, disk := r.cluster.CPU(id).Stats(), r.cluster.Disk(id).Stats()
		res.Stations = append(res.Stations,
			reports.Station{
				Name: id.String() + " cpu", Utilisation: cpu.Utilization(),
				Useful:    usefulPart(work.UsefulCPU, cpu.Window*time.Duration(cpu.Servers), cpu.Utilization()),
				QueueMean: cpu.MeanQueue(), QueueMax: cpu.MaxQueue,
			},
			reports.Station{
				Name: id.String() + " disk", Utilisation: disk.Utilization(),
				Useful:    usefulPart(work.UsefulDisk, disk.Window, disk.Utilization()),
				QueueMean: disk.MeanQueue(), QueueMax: disk.MaxQueue,
			})
		res.Fsyncs += disk.Syncs
	}
	if cpu := r.cluster.Oracle(); cpu != nil {
		s := cpu.Stats()
		res.Stations = append(res.Stations, reports.Station{
			Name: reports.OracleStation, Utilisation: s.Utilization(), QueueMean: s.MeanQueue(), QueueMax: s.MaxQueue,
		})
	}
	for _, k := range r.net.Stats().Kinds {
		if k.Messages == 0 {
			continue
		}
		res.Messages = append(res.Messages, reports.Traffic{Kind: k.Name, Count: k.Messages, Bytes: uint64(k.Bytes)})
		res.MessageCount += k.Messages
		res.MessageBytes += uint64(k.Bytes)
	}
	repl := r.repl.Stats()
	res.LogEntries, res.LogBatches, res.Elections = repl.Entries, repl.Batches, repl.Elections
	res.LeaderlessNS, res.Snapshots = int64(repl.Leaderless), repl.Snapshots
	return res
}

// usefulPart is the share of whole that committed attempts used. An attempt's
// time is booked when it ends, that of before the window with it: a station that
// does little else would seem to do more than it can.
func usefulPart(useful, whole time.Duration, utilisation float64) float64 {
	return min(share(useful, whole), utilisation)
}

func share(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// judge checks the laws and the history, and writes the history where it is wanted.
func (r *run) judge() error {
	for _, l := range r.result.Laws {
		if !l.OK {
			r.fail(reports.VerdictLaw, "%s: expected %v, measured %v", l.Name, l.Expected, l.Measured)
		}
	}
	if r.recorder == nil {
		return nil
	}
	// The checker needs room: nothing else of the run is wanted any more.
	r.cluster.Forget()
	r.repl, r.net = nil, nil
	if r.spec.Check {
		r.isolation(r.recorder.rec.Check())
	}
	if r.opt.History != nil {
		level, err := history.ParseLevel(r.promise)
		if err != nil {
			return err
		}
		return r.recorder.write(r.opt.History, history.Header{
			Protocol: r.spec.Protocol, Level: level, Seed: uint64(r.spec.Seed),
			BaseKeys: r.workload.InitialKeys(), Spec: string(r.result.Spec),
		})
	}
	return nil
}

// isolation takes the checker's judgement into the result.
func (r *run) isolation(h *history.Result) {
	iso := &r.result.Isolation
	iso.Found, iso.Exact, iso.Note, iso.Transactions = h.Found.String(), h.Exact, h.Note, uint64(h.Transactions)
	counts := map[history.Kind]int{}
	for _, c := range h.Counts {
		counts[c.Kind] = c.N
	}
	shown := map[history.Kind]bool{}
	for i := range h.Anomalies {
		a := &h.Anomalies[i]
		if shown[a.Kind] {
			continue // the smallest of a kind is enough here
		}
		shown[a.Kind] = true
		lines := strings.Split(strings.TrimRight(a.Explain(), "\n"), "\n")
		iso.Anomalies = append(iso.Anomalies, reports.Anomaly{Name: a.Kind.String(), Count: uint64(counts[a.Kind]), Cycle: lines})
	}
	if !h.OK {
		r.fail(reports.VerdictIsolation, "%s promises %s: %s", r.spec.Protocol, r.promise, h.Verdict())
	}
}

var _ nodes.InstallRecorder = (*run)(nil)
