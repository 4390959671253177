package reports

import (
	"slices"
	"strconv"
	"strings"

	"interleave/txnproto"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// starved says in words who starved, and why.
func (c *comparison) starved() string {
	var b strings.Builder
	for _, r := range c.results {
		lines := c.explain(r)
		for i, line := range lines {
			indent := ""
			if i == len(lines)-1 {
				indent = "  "
			}
			b.WriteString(indent + wrap(line, Width-len(indent), "  ") + "\n")
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "Who starved, and why\n" + b.String()
}

// Explain says in plain sentences which requests of the run starved and why, a
// class each, and last which request fared worst; nothing when none starved.
func Explain(r *Result) []string { return newComparison([]*Result{r}).explain(r) }

func (c *comparison) explain(r *Result) []string {
	if r.StarvedCount == 0 {
		return nil
	}
	var lines []string
	for i := range r.Classes {
		if k := &r.Classes[i]; k.Starved > 0 {
			lines = append(lines, c.name(r)+": "+r.whoStarved(k)+" "+r.whyStarved(k))
		}
	}
	s := &r.StarvedBy[0]
	line := "The worst: request " + itoa(int64(s.Request)) + " of client " + itoa(int64(s.Client))
	if s.Client < 0 {
		line = "The worst: an arrival that no client was free for"
	}
	if len(r.Classes) > 1 {
		line += " (" + s.Class + ")"
	}
	line += ", " + s.Ended + " after " + plural(uint64(s.Attempts), "attempt", "attempts") + " in " + formatTime(s.AgeNS)
	if s.Reason != txnproto.NoReason.String() {
		line += ", last aborted for " + s.Reason
	}
	return append(lines, line+".")
}

func (r *Result) whoStarved(k *Class) string {
	all := k.Committed + k.RolledBack + k.GivenUp + k.Unfinished
	of := formatCount(k.Starved) + " of " + plural(all, "request", "requests")
	if len(r.Classes) > 1 {
		of += " in class " + k.Name
	}
	return of + " starved."
}

// whyStarved explains what kept a class's requests from committing, from what
// its aborts were for and what went on around them.
func (r *Result) whyStarved(k *Class) string {
	if k.Aborted == 0 {
		if k.Committed == 0 {
			return "None of them was aborted: they never got what they waited for."
		}
		return "None of them was aborted: they waited, most of the time for " + r.longestPart(k) + "."
	}
	reason := mainReason(k)
	others := r.commitsDuring(k)
	open := "An attempt runs " + operations(k) + "and stays open " + formatTime(k.AttemptMean) + ", in which " +
		plural(uint64(others+0.5), "other transaction commits", "other transactions commit")
	var why string
	switch reason {
	case txnproto.Validation:
		why = open + "; validation then finds that one of these wrote something it had read, " + k.oftenAborted() +
			", and all its work is repeated from the start against the same odds: the longer a transaction, the worse."
	case txnproto.TSOrder:
		why = open + "; its timestamp is from its begin, so where a younger one has been before, it comes too late, " +
			k.oftenAborted() + "; a retry has a new timestamp but as long a way."
		why += r.slowClocks()
	case txnproto.Deadlock:
		why = "An attempt " + holds(k) + "was chosen as the victim of a deadlock " + k.oftenAborted() +
			"; a policy that spares whom it has hit before (the protocol's victim parameter) bounds that."
	case txnproto.WaitDie:
		why = open + "; under wait-die it dies whenever an older one holds what it asks for, " + k.oftenAborted() + "."
	case txnproto.Wounded:
		why = open + "; an older transaction that wants one of its locks wounds it, " + k.oftenAborted() + "."
	case txnproto.NoWait, txnproto.CannotLock:
		why = open + "; it aborts at the first lock that is taken, " + k.oftenAborted() + ": the more locks, the likelier one is."
	case txnproto.LockTimeout:
		why = "An attempt waited longer than the lock timeout " + k.oftenAborted() + "."
	case txnproto.WriteConflict:
		why = open + "; when one of these has written what it wants to write, the first updater wins, " + k.oftenAborted() + "."
	case txnproto.SSIPivot:
		why = open + "; it is aborted when it would close a dangerous structure of read-write conflicts, " + k.oftenAborted() + "."
	case txnproto.Cascade:
		why = "An attempt read from transactions that aborted, and had to abort with them " + k.oftenAborted() + "."
	case txnproto.LeaderChange, txnproto.RPCTimeout:
		why = "A node, its leadership or a message was lost " + k.oftenAborted() + "."
	case txnproto.Constraint:
		why = "A constraint of the database forbade it " + k.oftenAborted() + ", and repeating it did not help."
	case txnproto.Reconnaissance:
		why = open + "; the rows in what it scans come and go between its reconnaissance and its turn, and it starts again, " + k.oftenAborted() + "."
	case txnproto.NoReason, txnproto.NumReasons:
		panic("reports: an abort without a reason")
	default:
		panic("reports: unknown abort reason " + reason.String())
	}
	return why + lostTime(k) + r.compareClasses(k)
}

// slowClocks says how much worse those fare whose clocks are behind, where they do, and
// where they stay behind.
func (r *Result) slowClocks() string {
	if len(r.ClientGroups) < 2 || r.clocksMove() {
		return ""
	}
	slow, fast := &r.ClientGroups[0], &r.ClientGroups[len(r.ClientGroups)-1]
	if slow.AbortRatio <= fast.AbortRatio {
		return ""
	}
	behind, ahead := "the quarter of the clients with the slowest clocks", "those with the fastest"
	if len(r.ClientGroups) < ClientQuarters {
		behind, ahead = "the client with the slowest clock", "that with the fastest"
	}
	return " Whose clock is behind begins late: of the attempts of " + behind + " " + formatShare(slow.AbortRatio) +
		" are aborted, of " + ahead + " " + formatShare(fast.AbortRatio) + "."
}

func operations(k *Class) string {
	if k.OpsMean == 0 {
		return ""
	}
	return digits(k.OpsMean) + " operations "
}

func holds(k *Class) string {
	if k.OpsMean == 0 {
		return ""
	}
	return "of " + digits(k.OpsMean) + " operations "
}

// oftenAborted says how many of a class's attempts were aborted.
func (k *Class) oftenAborted() string {
	if k.Aborted == k.AttemptsDone {
		return "in every one of its " + plural(k.AttemptsDone, "attempt", "attempts")
	}
	return "in " + formatShare(k.AbortRatio) + " of its attempts"
}

// mainReason is the reason of most of the class's aborts, the first of several.
func mainReason(k *Class) txnproto.AbortReason {
	best, most := txnproto.NoReason, uint64(0)
	for i := txnproto.AbortReason(1); i < txnproto.NumReasons; i++ {
		if n := k.Aborts[i.String()]; n > most {
			best, most = i, n
		}
	}
	return best
}

// lostTime says how much of its time the class lost by retrying, when that is much.
func lostTime(k *Class) string {
	lost, backoff := k.Breakdown.Share(txnproto.PartLostAttempts), k.Breakdown.Share(txnproto.PartBackoff)
	if lost+backoff < 0.1 {
		return ""
	}
	return " Of the time until they commit, its requests spend " + formatShare(lost) + " in attempts that abort and " +
		formatShare(backoff) + " waiting for the next."
}

// commitsDuring is how many transactions commit while one attempt is open.
func (r *Result) commitsDuring(k *Class) float64 {
	return r.Throughput * float64(k.AttemptMean) / 1e9
}

// compareClasses sets the class against the one that is aborted least.
func (r *Result) compareClasses(k *Class) string {
	if len(r.Classes) < 2 {
		return ""
	}
	best := slices.MinFunc(r.Classes, func(a, b Class) int {
		switch {
		case a.AbortRatio < b.AbortRatio:
			return -1
		case a.AbortRatio > b.AbortRatio:
			return 1
		default:
			return 0
		}
	})
	if best.Name == k.Name || best.AttemptsDone == 0 {
		return ""
	}
	return " Class " + best.Name + ", with " + digits(best.OpsMean) + " operations, is aborted in " +
		formatShare(best.AbortRatio) + " of its attempts."
}

// longestPart names where the class's committed requests spent most time.
func (r *Result) longestPart(k *Class) string {
	longest := txnproto.Part(0)
	for p := range txnproto.NumParts {
		if k.Breakdown[p] > k.Breakdown[longest] {
			longest = p
		}
	}
	return strings.ReplaceAll(longest.String(), "_", " ") + " (" + formatShare(k.Breakdown.Share(longest)) + ")"
}
