package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"interleave/txnproto/schedule"
)

// TimelineSVG returns the executed schedule as a picture, waiting times shaded.
func (r *ScheduleRun) TimelineSVG() string {
	var marks []schedule.RunMark
	for i := range r.Steps {
		s := &r.Steps[i]
		if !shownStep(s) || s.Event == StepBegun && s.Number == 0 && s.Attempt == 1 {
			continue
		}
		m := schedule.RunMark{
			Txn: s.Txn, Text: s.short(), Style: s.style(), Waiting: s.Event == StepWaits, Caption: s.caption(),
		}
		if s.Number > 0 {
			m.Label = strconv.Itoa(s.Number)
		}
		if r.schedule != nil && r.schedule.Timed {
			m.Label = strings.TrimSpace(m.Label + " " + time.Duration(s.At).Round(ScheduleStep/100).String())
		}
		marks = append(marks, m)
	}
	return schedule.RunTimelineSVG("Run under "+r.Protocol, marks)
}

// style is the kind of operation whose colours the step has.
func (s *RunStep) style() schedule.Kind {
	switch s.Event {
	case StepBegun, StepMarked, StepPlaced:
		return schedule.Begin
	case StepCommitted:
		return schedule.Commit
	case StepAborted, StepRolledBack:
		return schedule.Abort
	case StepGranted, StepWaits:
		switch {
		case strings.HasPrefix(s.Op, "w"), strings.HasPrefix(s.Op, "i"), strings.HasPrefix(s.Op, "d"):
			return schedule.Write
		case strings.HasPrefix(s.Op, "r"), strings.HasPrefix(s.Op, "u"):
			return schedule.Read
		default:
			return schedule.Begin // a lock, a commit that waits
		}
	default:
		panic("sim: unknown event " + string(s.Event))
	}
}

// caption is what came of the step in a few words.
func (s *RunStep) caption() string {
	switch s.Event {
	case StepWaits:
		if len(s.For) > 3 {
			return "waits for " + strconv.Itoa(len(s.For)) + " others over " + s.Over
		}
		return "waits" + s.forWhom()
	case StepAborted:
		return s.Reason
	case StepGranted:
		known := !slices.ContainsFunc(s.Reads, func(x ItemRead) bool { return x.State == "unknown" && x.From == "initial" })
		if d := s.done(); d != "ok" && len(d) <= 30 && known {
			return d
		}
		return ""
	case StepBegun:
		if s.Attempt > 1 {
			return "attempt " + strconv.Itoa(s.Attempt)
		}
		return ""
	case StepPlaced:
		return "number " + strconv.Itoa(s.Place)
	case StepMarked, StepCommitted, StepRolledBack:
		return ""
	default:
		panic("sim: unknown event " + string(s.Event))
	}
}
