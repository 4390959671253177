package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"interleave/sim/event"
	"interleave/txnproto"
	"interleave/txnproto/history"
	"interleave/txnproto/schedule"
)

// ScheduleOptions say how a schedule is run. The zero value serves.
type ScheduleOptions struct {
	// Retry tries aborted transactions again, after a pause of ScheduleStep, at most
	// maxScheduleAttempts times. Otherwise what aborts is over.
	Retry bool
	// Explain keeps the controller's state after each operation.
	Explain bool
}

// ScheduleStep is the time between two operations of a schedule without times: long
// against everything that an operation sets going, short against every timeout.
const ScheduleStep = time.Millisecond

// maxScheduleAttempts is how often a transaction is tried with ScheduleOptions.Retry.
const maxScheduleAttempts = 20

// StepEvent is what happened in a step of an executed schedule.
type StepEvent string

// The events.
const (
	StepBegun      StepEvent = "begun"       // the transaction began
	StepGranted    StepEvent = "granted"     // the operation was done
	StepWaits      StepEvent = "waits"       // it has to wait
	StepCommitted  StepEvent = "committed"   // the commit took effect
	StepRolledBack StepEvent = "rolled back" // by the program itself
	StepAborted    StepEvent = "aborted"     // by the protocol
	StepMarked     StepEvent = "marked"      // a savepoint was set or released, or rolled back to
	StepPlaced     StepEvent = "placed"      // it has got its place in the global order
)

// RunStep is one step of an executed schedule, in the order of what happened at the
// controller.
type RunStep struct {
	// Number is the operation's place in the schedule, from 1, when the step is what came
	// of its being submitted; 0 for what came later or is no operation of the schedule.
	Number  int          `json:"number,omitempty"`
	At      event.Time   `json:"at_ns"`
	Txn     schedule.Txn `json:"transaction"`
	Attempt int          `json:"attempt"`
	Op      string       `json:"op"`
	Event   StepEvent    `json:"event"`
	// Late says that the operation had waited: its Number is in an earlier step.
	Late bool `json:"late,omitempty"`
	// Waited is for how long, in a step that ends a wait.
	Waited time.Duration `json:"waited_ns,omitempty"`
	// Reads is what a granted operation found.
	Reads []ItemRead `json:"reads,omitempty"`
	// Wrote is what a granted write leaves, when the schedule says.
	Wrote *int64 `json:"wrote,omitempty"`
	// For and Over say on whom a wait is, and for what: an item, or a range's end.
	For  []schedule.Txn `json:"for,omitempty"`
	Over string         `json:"over,omitempty"`
	// Place is its number in the global order, from 1, in a step that gives it.
	Place int `json:"place,omitempty"`
	// Reason is why it was aborted, By in whose favour, where one asked for it.
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	// Skipped are the items whose writes a commit left out, by Thomas's rule.
	Skipped []schedule.Item `json:"skipped,omitempty"`
	// State is the controller's after everything that the operation set going, with
	// ScheduleOptions.Explain, at the last step of each operation.
	State []string `json:"state,omitempty"`

	op      int // index of the operation in the schedule; -1: none of it
	attempt txnproto.TxnID
	first   txnproto.TxnID // the transaction's first attempt, in a begin
	answer  bool           // an abort that answers the operation at once
}

// ItemRead is what a read found of an item.
type ItemRead struct {
	Item schedule.Item `json:"item"`
	// State is known, unknown, absent, or skipped (SKIP LOCKED).
	State string `json:"state"`
	Value int64  `json:"value"`
	// From is who wrote what was read: a transaction, or "initial", or "own".
	From string `json:"from"`

	writer  int            // client, or fromInitial
	attempt txnproto.TxnID // of the writer; 0: none
}

// RunTxn is how a transaction of an executed schedule fared.
type RunTxn struct {
	Txn       schedule.Txn `json:"transaction"`
	Timestamp uint64       `json:"timestamp"` // of its last attempt; 0: it never began
	Attempts  int          `json:"attempts"`
	Outcome   string       `json:"outcome"` // committed, rolled back, aborted, waiting
	Reason    string       `json:"reason,omitempty"`
	// NotRun are its operations that were not reached.
	NotRun []string `json:"not_run,omitempty"`
}

// ScheduleRun is a schedule as a protocol executed it.
type ScheduleRun struct {
	Protocol     string            `json:"protocol"`
	Param        map[string]string `json:"param,omitempty"`
	Help         string            `json:"-"`
	Input        string            `json:"schedule"`
	Transactions []RunTxn          `json:"transactions"`
	Steps        []RunStep         `json:"steps"`
	// Stuck says that transactions wait and nothing is left to happen.
	Stuck bool `json:"stuck"`
	// Final are the committed values at the end.
	Final []schedule.ItemValue `json:"final_values"`
	// Executed is what was done, as a schedule with one version of each item; writes stand
	// where they were granted or, where only that agrees with what was read, at the
	// commit that installed them. Nil when reads went to older versions than any such
	// order explains.
	Executed *schedule.Schedule `json:"-"`
	// ExecutedText is Executed in text.
	ExecutedText string `json:"executed,omitempty"`
	// Deferred says that the writes of Executed stand at the commits.
	Deferred bool `json:"writes_at_commit,omitempty"`
	// Class is Executed classified.
	Class *schedule.Classification `json:"classification,omitempty"`
	// Waits is the waits-for graph when it had the most edges.
	Waits schedule.WaitsFor `json:"waits_for"`
	// Promised and Found are isolation levels; Kept says that the promised one was kept,
	// judged from the versions that were read and written.
	Promised  string     `json:"promised"`
	Found     string     `json:"found"`
	Kept      bool       `json:"kept"`
	Anomalies [][]string `json:"anomalies,omitempty"` // each with its cycle, a line an edge
	Notes     []string   `json:"notes,omitempty"`

	schedule *schedule.Schedule
}

// RunSchedule runs s under a protocol: every transaction of s is the program of a
// client of its own, on one node without replication, under the real controller.
//
// Operations are submitted in the order of s, each when the one before it has been
// answered or waits, or at its time where s has times. A transaction whose operation
// waits keeps its later ones, and submits them at once when it goes on. What a write
// writes is computed from what its transaction has read. A transaction begins, and draws
// its timestamp, at its first operation; one without an end commits after the schedule.
//
// param holds values of the protocol's parameters by name. The error names an
// unknown protocol or a parameter that is not allowed.
func RunSchedule(protocol string, param map[string]string, s *schedule.Schedule, opt ScheduleOptions) (*ScheduleRun, error) {
	p, ok := txnproto.ProtocolNamed(protocol)
	if !ok {
		return nil, unknownName("protocol", protocol, protocolNames())
	}
	params, err := txnproto.NewParams(protocol, p.Params, param)
	if err != nil {
		return nil, err
	}
	promised, err := history.ParseLevel(p.Promised(params))
	if err != nil {
		return nil, err
	}
	full := s.Completed(schedule.CommitAtEnd)
	if len(full.Ops) > schedule.MaxOps {
		return nil, fmt.Errorf("schedule: %d operations with the commits it lacks: want at most %d", len(full.Ops), schedule.MaxOps)
	}
	r := newScheduleRun(p, params, promised, full, opt)
	if err := r.play(); err != nil {
		return nil, err
	}
	out := r.out
	out.Input, out.Param, out.schedule = s.String(), param, s
	out.Notes = append(scheduleNotes(s, full), out.Notes...)
	if !p.WaitClauses && slices.ContainsFunc(s.Ops, func(op schedule.Op) bool { return op.Wait != schedule.Wait }) {
		out.Notes = append(out.Notes, fmt.Sprintf("nowait, skip locked and wait have no effect under %s.", p.Name))
	}
	return out, nil
}

// scheduleNotes says what was made of s for running it.
func scheduleNotes(s, full *schedule.Schedule) []string {
	var notes []string
	if added := full.Ops[len(s.Ops):]; len(full.Ops) > len(s.Ops) {
		var names []string
		for _, op := range added {
			names = append(names, op.Txn.String())
		}
		verb := "commits"
		if len(names) > 1 {
			verb = "commit"
		}
		notes = append(notes, fmt.Sprintf("%s, without an end in the schedule, %s after it.", strings.Join(names, ", "), verb))
	}
	share := slices.ContainsFunc(s.Ops, func(op schedule.Op) bool { return op.Lock == schedule.ForShare })
	if share {
		notes = append(notes, "A read with a share lock is run as a read.")
	}
	scan := slices.ContainsFunc(s.Ops, func(op schedule.Op) bool { return op.Lock == schedule.ForUpdate && op.Kind == schedule.Scan })
	if scan {
		notes = append(notes, "A range read for update reads each item that the schedule names in it for update, one after another.")
	}
	return notes
}

// ScheduleText returns the schedule as it was given to RunSchedule.
func (r *ScheduleRun) ScheduleText() *schedule.Schedule { return r.schedule }
