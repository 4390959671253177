package schedule

import "fmt"

// Answer is the answer to one question about a schedule.
type Answer uint8

// The answers.
const (
	No Answer = iota
	Yes
	Unknown // the search is beyond its bound
)

var answerNames = [...]string{"no", "yes", "unknown"}

// String returns yes, no or unknown.
func (a Answer) String() string {
	if int(a) >= len(answerNames) {
		panic(fmt.Sprintf("schedule: unknown answer %d", uint8(a)))
	}
	return answerNames[a]
}

// MarshalText writes the answer's name.
func (a Answer) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Class is a set of schedules that the theory has a name for.
type Class uint8

// The classes.
const (
	Serial Class = iota
	ConflictSerializable
	ViewSerializable
	FinalStateSerializable
	Recoverable
	Cascadeless
	Strict
	Rigorous
	CommitOrdered
	TwoPhaseLocking
	StrictTwoPhaseLocking
	RigorousTwoPhaseLocking
	TimestampOrdering
	ThomasWriteRule
	numClasses
)

var classText = [numClasses]struct{ name, title string }{
	Serial:                  {"serial", "serial"},
	ConflictSerializable:    {"conflict_serializable", "conflict serializable"},
	ViewSerializable:        {"view_serializable", "view serializable"},
	FinalStateSerializable:  {"final_state_serializable", "final-state serializable"},
	Recoverable:             {"recoverable", "recoverable"},
	Cascadeless:             {"cascadeless", "cascadeless (ACA)"},
	Strict:                  {"strict", "strict"},
	Rigorous:                {"rigorous", "rigorous"},
	CommitOrdered:           {"commit_ordered", "commit order keeps conflicts"},
	TwoPhaseLocking:         {"two_phase_locking", "two-phase locking"},
	StrictTwoPhaseLocking:   {"strict_two_phase_locking", "strict 2PL"},
	RigorousTwoPhaseLocking: {"rigorous_two_phase_locking", "rigorous 2PL"},
	TimestampOrdering:       {"timestamp_ordering", "basic timestamp ordering"},
	ThomasWriteRule:         {"thomas_write_rule", "with Thomas's write rule"},
}

// String returns the class's name in JSON.
func (c Class) String() string {
	if c >= numClasses {
		panic(fmt.Sprintf("schedule: unknown class %d", uint8(c)))
	}
	return classText[c].name
}

// Title returns the class in words.
func (c Class) Title() string {
	if c >= numClasses {
		panic(fmt.Sprintf("schedule: unknown class %d", uint8(c)))
	}
	return classText[c].title
}

// MarshalText writes the class's name.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Verdict says whether a schedule is in a class, and which operations decide it.
type Verdict struct {
	Class   Class  `json:"class"`
	Holds   Answer `json:"holds"`
	Because string `json:"because"`
}

func yes(c Class, because string, args ...any) Verdict {
	return Verdict{c, Yes, fmt.Sprintf(because, args...)}
}

func no(c Class, because string, args ...any) Verdict {
	return Verdict{c, No, fmt.Sprintf(because, args...)}
}
