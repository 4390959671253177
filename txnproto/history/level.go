package history

import (
	"fmt"
	"strings"
)

// Level is an isolation level. Higher values come later in the list of levels, which
// is not a chain: snapshot and repeatable-read do not imply one another.
type Level uint8

// The levels; the package comment says what each rules out.
const (
	NoLevel Level = iota // not even read-uncommitted, or no level was promised
	ReadUncommitted
	ReadCommitted
	Snapshot
	RepeatableRead
	Serializable
	StrictSerializable
	numLevels
)

var levelNames = [numLevels]string{
	"none", "read-uncommitted", "read-committed", "snapshot", "repeatable-read",
	"serializable", "strict-serializable",
}

// String returns the level's name, as ParseLevel takes it.
func (l Level) String() string {
	if l >= numLevels {
		panic(fmt.Sprintf("history: unknown level %d", uint8(l)))
	}
	return levelNames[l]
}

// ParseLevel returns the level of that name. The error lists the names.
func ParseLevel(name string) (Level, error) {
	for i, n := range levelNames {
		if n == name {
			return Level(i), nil
		}
	}
	return NoLevel, fmt.Errorf("isolation level %q: want one of %s", name, strings.Join(levelNames[:], ", "))
}

// Levels returns the levels a history can be judged against, weakest first.
func Levels() []Level {
	return []Level{ReadUncommitted, ReadCommitted, Snapshot, RepeatableRead, Serializable, StrictSerializable}
}

// MarshalText writes the level's name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads a level's name.
func (l *Level) UnmarshalText(text []byte) error {
	v, err := ParseLevel(string(text))
	if err != nil {
		return err
	}
	*l = v
	return nil
}

// levelSet is a set of levels, one bit each.
type levelSet uint8

func (s levelSet) has(l Level) bool { return s&(1<<l) != 0 }

func levels(ls ...Level) levelSet {
	var s levelSet
	for _, l := range ls {
		s |= 1 << l
	}
	return s
}

// list returns the members, weakest first.
func (s levelSet) list() []Level {
	var out []Level
	for _, l := range Levels() {
		if s.has(l) {
			out = append(out, l)
		}
	}
	return out
}
