package locking

import "strings"

// Mode is what a lock allows its holder and forbids others.
type Mode uint8

// The modes, after Gray, Lorie, Putzolu and Traiger 1976 with the update mode of
// Gray and Reuter 1993 (ch. 7.8). None is the mode of who holds nothing.
const (
	None Mode = iota
	IS        // means to take S below
	IX        // means to take X below; on a gap: means to insert into it
	S         // reads
	SIX       // reads, and means to take X below
	U         // reads now, means to write later
	X         // writes
	NumModes
)

var modeNames = [NumModes]string{"-", "IS", "IX", "S", "SIX", "U", "X"}

// String returns the mode's usual name.
func (m Mode) String() string { return modeNames[m] }

// modeSet is a set of modes, a bit each.
type modeSet uint8

func setOf(modes ...Mode) modeSet {
	var s modeSet
	for _, m := range modes {
		s |= 1 << m
	}
	return s
}

func (s modeSet) has(m Mode) bool { return s>>m&1 != 0 }

// clash holds, for each requested mode, the modes of others that forbid it.
// The table is Gray and Reuter's symmetric one: U goes with S whoever came first.
var clash = [NumModes]modeSet{
	None: 0,
	IS:   setOf(X),
	IX:   setOf(S, SIX, U, X),
	S:    setOf(IX, SIX, X),
	SIX:  setOf(IX, S, SIX, U, X),
	U:    setOf(IX, SIX, U, X),
	X:    setOf(IS, IX, S, SIX, U, X),
}

// Compatible reports whether two transactions may hold a and b on one thing.
func Compatible(a, b Mode) bool { return !clash[a].has(b) }

// join is the conversion table: the weakest mode that forbids others at least
// what both forbid.
var join = [NumModes][NumModes]Mode{
	None: {None, IS, IX, S, SIX, U, X},
	IS:   {IS, IS, IX, S, SIX, U, X},
	IX:   {IX, IX, IX, SIX, SIX, SIX, X},
	S:    {S, S, SIX, S, SIX, U, X},
	SIX:  {SIX, SIX, SIX, SIX, SIX, SIX, X},
	U:    {U, U, SIX, U, SIX, U, X},
	X:    {X, X, X, X, X, X, X},
}

// Join returns the mode that a holder of a converts to when it asks for b.
func Join(a, b Mode) Mode { return join[a][b] }

// Lock is what can be held or asked for at one key: the row itself, and the gap
// of absent keys between the next smaller present key and this one.
type Lock struct {
	Row, Gap Mode
}

func (l Lock) compatible(o Lock) bool {
	return !clash[l.Row].has(o.Row) && !clash[l.Gap].has(o.Gap)
}

func (l Lock) join(o Lock) Lock { return Lock{join[l.Row][o.Row], join[l.Gap][o.Gap]} }

// covers reports whether holding l makes asking for o needless.
func (l Lock) covers(o Lock) bool { return l.join(o) == l }

// String returns the lock for dumps: "X", "S+gap:S", "gap:IX".
func (l Lock) String() string {
	var parts []string
	if l.Row != None {
		parts = append(parts, l.Row.String())
	}
	if l.Gap != None {
		parts = append(parts, "gap:"+l.Gap.String())
	}
	if len(parts) == 0 {
		return None.String()
	}
	return strings.Join(parts, "+")
}
