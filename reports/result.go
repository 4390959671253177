package reports

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"interleave/txnproto"
)

// Verdict says whether a run is to be trusted, or what was wrong with it.
type Verdict string

// The verdicts.
const (
	VerdictOK               Verdict = "ok"
	VerdictIsolation        Verdict = "isolation"          // the promised isolation was broken
	VerdictInvariant        Verdict = "invariant"          // the final state breaks the workload's invariant
	VerdictReplicasDiffer   Verdict = "replicas-differ"    // two replicas of a shard ended unequal
	VerdictLaw              Verdict = "law"                // the figures contradict each other
	VerdictDeadlocked       Verdict = "deadlocked"         // every open request waits, and nothing will end it
	VerdictStalled          Verdict = "stalled"            // nothing is scheduled any more, or nothing completes
	VerdictVirtualTimeBound Verdict = "virtual-time-bound" // --max-virtual-time was reached first
	VerdictUnrepeatable     Verdict = "unrepeatable"       // the wall clock may have disturbed the run, each time it was tried
	VerdictCutShort         Verdict = "cut-short"          // interrupted
)

// Failed reports whether the verdict makes the command exit with 1.
func (v Verdict) Failed() bool { return v != VerdictOK }

// Result is everything measured in one run.
type Result struct {
	Spec    json.RawMessage `json:"spec"`    // the settings, as a spec file has them
	Command string          `json:"command"` // the command line that repeats the run
	Digest  string          `json:"digest"`  // SHA-256 in hexadecimal
	Verdict Verdict         `json:"verdict"`
	// Why says in one line what led to a verdict other than ok.
	Why       string    `json:"why,omitempty"`
	Notes     []string  `json:"notes,omitempty"`
	Isolation Isolation `json:"isolation"`

	WindowNS  int64 `json:"window_ns"`  // length of the window
	VirtualNS int64 `json:"virtual_ns"` // of the whole run, the first elections and the warm-up included

	Committed  uint64 `json:"committed"`   // requests, in the window; so are the next three
	RolledBack uint64 `json:"rolled_back"` // by the program
	GivenUp    uint64 `json:"given_up"`
	TurnedAway uint64 `json:"turned_away"` // open loop: arrivals beyond the limit
	Unfinished uint64 `json:"unfinished"`  // requests open at the end
	OldestNS   int64  `json:"oldest_unfinished_ns"`

	Throughput      float64           `json:"throughput"`     // committed requests per virtual second
	AttemptsPerS    float64           `json:"attempts_per_s"` // finished attempts per virtual second
	AbortRatio      float64           `json:"abort_ratio"`
	AbortsPerCommit float64           `json:"aborts_per_commit"`
	AbortedAttempts uint64            `json:"aborted_attempts"`
	Aborts          map[string]uint64 `json:"aborts"` // by reason; those that did not occur are absent
	WastedWork      float64           `json:"wasted_work"`

	Latency        Latency   `json:"latency"`
	AttemptLatency Latency   `json:"attempt_latency"`
	Breakdown      Breakdown `json:"breakdown"`

	Attempts      Attempts  `json:"attempts"`
	Starved       float64   `json:"starved"` // share of all requests
	StarvedCount  uint64    `json:"starved_count"`
	StarvedBy     []Starved `json:"starved_requests"` // the worst of them
	LongestWaitNS int64     `json:"longest_wait_ns"`
	Fairness      Fairness  `json:"fairness"`
	AgeRatio      float64   `json:"age_ratio"`
	Classes       []Class   `json:"classes"`
	// ClientGroups are quarters of the clients, or one client each, by their clocks at
	// the start, the slowest first.
	ClientGroups []ClientGroup `json:"client_groups,omitempty"`

	Operations     uint64            `json:"operations"` // at their shards, decided in the window
	LockWaits      uint64            `json:"lock_waits"`
	LockWaitNS     int64             `json:"lock_wait_time_ns"`
	BlockingRatio  float64           `json:"blocking_ratio"`
	QueueMean      float64           `json:"queue_mean"` // length met by an operation that waited
	QueueMax       int               `json:"queue_max"`
	Deadlocks      uint64            `json:"deadlocks"`
	FalseDeadlocks uint64            `json:"false_deadlocks"`
	CycleLengths   []CycleLength     `json:"cycle_lengths"`
	HottestKeys    []HotKey          `json:"hottest_keys"`
	ProtocolExtra  map[string]uint64 `json:"protocol_counters,omitempty"` // a protocol's own, by name

	Resources  Resources  `json:"resources"`
	Confidence Confidence `json:"confidence"`
	Laws       []Law      `json:"laws"`

	// Wall holds what depends on the machine; nil unless asked for.
	Wall *Wall `json:"wall,omitempty"`

	settings map[string]string
}

// Isolation is the checker's judgement.
type Isolation struct {
	Promised     string    `json:"promised"`
	Found        string    `json:"found"` // the strongest level kept; "unchecked" without a check
	Exact        bool      `json:"exact"` // the whole history was checked at once
	Note         string    `json:"note,omitempty"`
	Transactions uint64    `json:"transactions"`
	Anomalies    []Anomaly `json:"anomalies"`
}

// Unchecked is Isolation.Found of a run whose history was not checked.
const Unchecked = "unchecked"

// Anomaly is one kind of breach, with its smallest cycle.
type Anomaly struct {
	Name  string   `json:"name"`
	Count uint64   `json:"count"`
	Cycle []string `json:"cycle"` // one line an edge, with its because
}

// Latency summarises a histogram of three significant digits. Count, sum, mean
// and max are exact.
type Latency struct {
	Count  uint64 `json:"count"`
	MeanNS int64  `json:"mean_ns"`
	P50NS  int64  `json:"p50_ns"`
	P90NS  int64  `json:"p90_ns"`
	P99NS  int64  `json:"p99_ns"`
	P999NS int64  `json:"p99.9_ns"`
	MaxNS  int64  `json:"max_ns"`
	SumNS  int64  `json:"sum_ns"`
}

// Breakdown is the latency of all committed requests together, by part. Its
// parts sum to Latency.SumNS.
type Breakdown txnproto.Parts

// Share returns a part's share of the whole, 0 when there is none.
func (b *Breakdown) Share(p txnproto.Part) float64 {
	sum := (*txnproto.Parts)(b).Sum()
	if sum == 0 {
		return 0
	}
	return float64(b[p]) / float64(sum)
}

// MarshalJSON writes an object with one number for each part.
func (b Breakdown) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	for p := range txnproto.NumParts {
		out.WriteString([]string{"{", ","}[min(int(p), 1)])
		out.WriteString(`"` + p.String() + `_ns":` + strconv.FormatInt(int64(b[p]), 10))
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (b *Breakdown) UnmarshalJSON(data []byte) error {
	var m map[string]int64
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	for p := range txnproto.NumParts {
		b[p] = time.Duration(m[p.String()+"_ns"])
	}
	return nil
}

// Attempts is the distribution of attempts per committed request.
type Attempts struct {
	P50  int64   `json:"p50"`
	P99  int64   `json:"p99"`
	Max  int64   `json:"max"`
	Mean float64 `json:"mean"`
}

// Starved is one request that the run treated badly.
type Starved struct {
	Request  uint64 `json:"request"`
	Client   int32  `json:"client"`
	Class    string `json:"class"`
	Attempts int    `json:"attempts"`
	AgeNS    int64  `json:"age_ns"` // from arrival to its end, or to the end of the run
	Ended    string `json:"ended"`  // committed, given up, unfinished
	Reason   string `json:"reason"` // of its last abort; "none" when it never aborted
}

// Fairness holds Jain's indices: 1 is equal, 1/n is one taking all.
type Fairness struct {
	Clients *float64 `json:"clients"` // null in an open loop
	Classes *float64 `json:"classes"` // null where the workload has one class
}

// Class is what befell one transaction class, or one group of clients.
type Class struct {
	Name         string            `json:"name"`
	Committed    uint64            `json:"committed"`
	RolledBack   uint64            `json:"rolled_back"`
	GivenUp      uint64            `json:"given_up"`
	Unfinished   uint64            `json:"unfinished"`
	Starved      uint64            `json:"starved"`
	AttemptsDone uint64            `json:"attempts_done"` // finished attempts
	Aborted      uint64            `json:"aborted_attempts"`
	AbortRatio   float64           `json:"abort_ratio"`
	Aborts       map[string]uint64 `json:"aborts"`
	OpsMean      float64           `json:"ops_mean"` // operations of a committed transaction
	Attempts     Attempts          `json:"attempts"`
	Latency      Latency           `json:"latency"`
	AttemptMean  int64             `json:"attempt_mean_ns"` // how long a finished attempt ran, aborted or not
	Breakdown    Breakdown         `json:"breakdown"`
}

// ClientQuarters is how many groups the clients are divided into, where there are as many.
const ClientQuarters = 4

// ClientGroup is what befell the clients whose clocks were, at the start, ahead of time
// by no less and no more than these.
type ClientGroup struct {
	AheadFromNS int64 `json:"ahead_from_ns"`
	AheadToNS   int64 `json:"ahead_to_ns"`
	Class
}

// CycleLength counts the deadlocks of one length.
type CycleLength struct {
	Transactions int    `json:"transactions"` // 15 stands for that many or more
	Count        uint64 `json:"count"`
}

// HotKey is a key where transactions met. Both counts are exact for a key that
// stayed in the list of the hottest from its first conflict on, and at least
// what is given otherwise.
type HotKey struct {
	Key    uint64 `json:"key"`
	Waits  uint64 `json:"waits"`
	WaitNS int64  `json:"wait_ns"`
	Aborts uint64 `json:"aborts"`
	// MissedAtMost bounds how many of the key's conflicts came before it was listed.
	MissedAtMost uint64 `json:"missed_at_most"`
}

// Resources is what the run used, in the window.
type Resources struct {
	Stations     []Station `json:"stations"`
	Messages     []Traffic `json:"messages"` // by kind
	MessageCount uint64    `json:"message_count"`
	MessageBytes uint64    `json:"message_bytes"`
	LogEntries   uint64    `json:"log_entries"`
	LogBatches   uint64    `json:"log_batches"`
	Fsyncs       uint64    `json:"fsyncs"`
	Elections    uint64    `json:"elections"`
	LeaderlessNS int64     `json:"leaderless_ns"`
	Snapshots    uint64    `json:"snapshots"`
}

// Station is the use of one queueing station.
type Station struct {
	Name        string  `json:"name"` // n1 cpu
	Utilisation float64 `json:"utilisation"`
	// Useful is the part spent on attempts that committed: by processors, and by
	// the disks of leaders. What followers write counts as no attempt's.
	Useful    float64 `json:"useful"`
	QueueMean float64 `json:"queue_mean"`
	QueueMax  int     `json:"queue_max"`
}

// Traffic counts messages of one kind.
type Traffic struct {
	Kind  string `json:"kind"`
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"`
}

// Confidence holds 95 % intervals by batch means: the window is cut into
// batches of equal length, whose means are taken as independent.
type Confidence struct {
	Batches    int      `json:"batches"`  // 0: too few completions for an interval
	BatchNS    int64    `json:"batch_ns"` // length of one
	Throughput Interval `json:"throughput"`
	LatencyNS  Interval `json:"latency_ns"` // mean latency
	AbortRatio Interval `json:"abort_ratio"`
}

// Interval is a mean with the half width of its 95 % interval.
type Interval struct {
	Mean float64 `json:"mean"`
	Half float64 `json:"half_width"`
}

// Law is a relation that must hold between the figures of every run.
type Law struct {
	Name      string  `json:"name"`
	Expected  float64 `json:"expected"`
	Measured  float64 `json:"measured"`
	Tolerance float64 `json:"tolerance"` // largest |measured - expected| that the window's edges explain
	OK        bool    `json:"ok"`
}

// NewLaw returns the law with its outcome.
func NewLaw(name string, expected, measured, tolerance float64) Law {
	diff := measured - expected
	return Law{name, expected, measured, tolerance, diff <= tolerance && -diff <= tolerance}
}

// Wall is what depends on the machine.
type Wall struct {
	ElapsedNS  int64   `json:"elapsed_ns"`
	RequestsPS float64 `json:"requests_per_s"` // completed requests per wall second
	EntriesPS  float64 `json:"entries_per_s"`  // log entries per wall second
	Events     uint64  `json:"events"`
	CheckNS    int64   `json:"check_ns"` // spent in the checker
	HeapBytes  uint64  `json:"heap_bytes"`
	Repeats    int     `json:"repeats"` // runs thrown away because the wall clock may have disturbed them
}

// Setting returns the run's setting name as text, "" when it has none.
func (r *Result) Setting(name string) string {
	if r.settings == nil {
		r.settings = map[string]string{}
		var raw map[string]json.RawMessage
		if json.Unmarshal(r.Spec, &raw) == nil {
			for k, v := range raw { // order: into a map
				r.settings[k] = settingText(v)
			}
		}
	}
	return r.settings[name]
}

func settingText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return strings.Trim(string(v), "{}")
}
