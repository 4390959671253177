package txnproto

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"interleave/sim/clock"
	"interleave/sim/event"
)

// Draws says when the transactions of a protocol draw timestamps. A protocol that
// needs none has 0 and pays for none: what it compares by age is numbered for it.
type Draws uint8

// The occasions.
const (
	DrawsFirst     Draws = 1 << iota // at a request's first begin: its age over all attempts
	DrawsBegin                       // at each attempt's begin
	DrawsReader                      // at each attempt's begin, of those declared to read only
	DrawsStatement                   // before each read and scan: the statement's snapshot
	DrawsCommit                      // when a commit that wrote is decided
)

var drawsText = []struct {
	draws Draws
	text  string
}{
	{DrawsFirst, "when a request begins"},
	{DrawsBegin, "when an attempt begins"},
	{DrawsReader, "when a reader begins"},
	{DrawsStatement, "before each statement that reads"},
	{DrawsCommit, "when a commit is decided"},
}

// String says when, in words; "" for never.
func (d Draws) String() string {
	var parts []string
	for _, t := range drawsText {
		if d&t.draws != 0 {
			parts = append(parts, t.text)
		}
	}
	return strings.Join(parts, ", ")
}

// OnClocks reports whether the protocol is right with timestamps from loose clocks.
func (p *Protocol) OnClocks() bool { return p.ClockCommit || !p.Draws.InOrder() }

// InOrder reports whether the protocol relies on timestamps that are drawn in order of
// real time: who reads at a snapshot must find all that was committed before it.
func (d Draws) InOrder() bool { return d&(DrawsReader|DrawsStatement|DrawsCommit) != 0 }

// TimestampSource is where timestamps come from.
type TimestampSource uint8

// The sources.
const (
	// FromCounter is one counter for the whole run, which costs nothing.
	FromCounter TimestampSource = iota
	// FromClock is each client's own clock, with the client's number behind the reading.
	FromClock
	// FromOracle is a counter at one machine, which has to be asked.
	FromOracle
)

// TimestampSourceNames are the sources' names in a spec, indexed by TimestampSource.
var TimestampSourceNames = []string{"counter", "clock", "oracle"}

// String returns the source's name in a spec.
func (s TimestampSource) String() string { return TimestampSourceNames[s] }

// ParseTimestampSource returns the source of that name.
func ParseTimestampSource(name string) (TimestampSource, error) {
	if i := slices.Index(TimestampSourceNames, name); i >= 0 {
		return TimestampSource(i), nil
	}
	return 0, fmt.Errorf("timestamps: %q is unknown: want one of %s", name, strings.Join(TimestampSourceNames, ", "))
}

// Stamping is how clients come to their timestamps.
type Stamping struct {
	Source TimestampSource
	Draws  Draws // of the protocol
	// Clocks are the clients' own, with FromClock.
	Clocks *clock.Clocks
	// CatchUp lets a client whose attempt was refused as too old move its clock on past
	// the newest timestamp that the shard has met.
	CatchUp bool
	// NodeClocks are the machines' own, under Protocol.ClockCommit with FromClock.
	NodeClocks *clock.Clocks
}

// A clock's timestamps are made as Bernstein and Goodman have it (1981, sec. 4), after
// Lamport: the reading above, the number of the client below. A client's readings are
// made to increase, by a nanosecond where the clock stands, so that its timestamps are
// unique and in the order of its attempts. Machines have the number behind the last
// client's, so that a commit never has the timestamp of a snapshot.

// clientBits is how many low bits of a clock's timestamp name one of n clients, or none.
func clientBits(n int) int { return bits.Len(uint(n)) }

// LongestClocked is the longest run for which the timestamps of n clients' clocks
// have room: they stay below 2^63, as versions must.
func LongestClocked(n int) time.Duration {
	return time.Duration(uint64(1)<<(63-clientBits(n)) - 1)
}

// fromClock reports whether timestamps of this run come from clocks.
func (c *Clients) fromClock() bool {
	return c.cfg.Stamping.Source == FromClock && c.cfg.Stamping.Draws != 0
}

// clockStamp is the least timestamp of a reading. Readings from -Bound on have one.
func (c *Clients) clockStamp(reading event.Time) Timestamp {
	st := &c.cfg.Stamping
	ns := uint64(reading.Add(st.Clocks.Bound() + 1))
	if ns >= 1<<(63-clientBits(len(c.sessions))) {
		panic(fmt.Sprintf("txnproto: at %v: a clock of %d clients shows %v, for which timestamps have no room", c.loop.Now(), len(c.sessions), reading))
	}
	return Timestamp(ns << clientBits(len(c.sessions)))
}

// readClock draws the session's next timestamp from its clock.
func (c *Clients) readClock(s *session) Timestamp {
	s.reading = max(c.cfg.Stamping.Clocks.Read(int(s.id), c.loop.Now()), s.reading+1)
	ts := c.clockStamp(s.reading) + Timestamp(s.id)
	c.newest = max(c.newest, ts)
	return ts
}

// readingOf is the reading that a clock's timestamp was made of.
func (c *Clients) readingOf(ts Timestamp) event.Time {
	return event.Time(ts >> clientBits(len(c.sessions))).Add(-c.cfg.Stamping.Clocks.Bound() - 1)
}

// NodeStamp draws a timestamp from a machine's clock, newer than met.
func (c *Clients) NodeStamp(n NodeID, met Timestamp) Timestamp {
	reading := c.cfg.Stamping.NodeClocks.Read(int(n), c.loop.Now())
	if met != 0 {
		reading = max(reading, c.readingOf(met)+1)
	}
	return c.clockStamp(reading) + Timestamp(len(c.sessions))
}

// Behind is about how long a machine's clock takes until it shows what a client's did
// when it drew ts; 0 when it is past that.
func (c *Clients) Behind(n NodeID, ts Timestamp) time.Duration {
	return max(c.readingOf(ts).Sub(c.cfg.Stamping.NodeClocks.Read(int(n), c.loop.Now())), 0)
}

// seen makes the session's next timestamp newer than that of its own commit.
func (s *session) seen(commit Timestamp) {
	if s.c.fromClock() && commit != 0 {
		s.reading = max(s.reading, s.c.readingOf(commit))
	}
}

// moveOn sets the session's clock past a timestamp that the session was too late for.
func (c *Clients) moveOn(s *session, met Timestamp) {
	c.cfg.Stamping.Clocks.MoveOn(int(s.id), c.loop.Now(), c.readingOf(met)+1)
}

// NewTS draws a timestamp from the counter: newer than all drawn from it before.
func (c *Clients) NewTS() Timestamp {
	c.txns++
	return Timestamp(c.txns)
}

// NewestTS is the newest timestamp drawn.
func (c *Clients) NewestTS() Timestamp {
	if c.fromClock() {
		return c.newest
	}
	return Timestamp(c.txns)
}

// OldestTS is a timestamp that nothing which runs, or begins later, is older than:
// that of the oldest running attempt, or the newest drawn when none is running. With
// clocks the next attempt may be as old as the slowest clock allowed makes it.
func (c *Clients) OldestTS() Timestamp {
	oldest := Timestamp(c.txns)
	if c.fromClock() {
		oldest = c.clockStamp(c.loop.Now().Add(-c.cfg.Stamping.Clocks.Bound()))
	}
	for _, s := range c.sessions {
		if s.state == stateTimestamp || s.state == stateOp || s.state == stateThink || s.state == stateCommit {
			oldest = min(oldest, s.tx.TS)
		}
	}
	return oldest
}

// stampAttempt gives the attempt its timestamp. It reports false when that has to be
// asked for; until it is there, TS is one that it is sure to be newer than.
func (s *session) stampAttempt() bool {
	st := &s.c.cfg.Stamping
	s.tx.TS = Timestamp(s.tx.ID)
	first := s.tx.Attempt == 1
	switch st.Source {
	case FromCounter:
	case FromClock:
		if st.Draws != 0 {
			s.tx.TS = s.c.readClock(s)
		}
	case FromOracle:
		if st.Draws&DrawsBegin != 0 || st.Draws&DrawsFirst != 0 && first || st.Draws&DrawsReader != 0 && s.tx.ReadOnly {
			s.askTimestamp()
			return false
		}
	default:
		panic("txnproto: unknown source of timestamps")
	}
	if first {
		s.tx.FirstTS = s.tx.TS
	}
	return true
}

// stampStatement reports false when the operation under way has to wait for a
// timestamp of its own, its snapshot, which it asks for.
func (s *session) stampStatement() bool {
	st := &s.c.cfg.Stamping
	if st.Source != FromOracle || st.Draws&DrawsStatement == 0 || s.op.Kind != Read && s.op.Kind != Scan {
		return true
	}
	s.askTimestamp()
	return false
}

// askTimestamp asks the oracle.
func (s *session) askTimestamp() {
	s.state = stateTimestamp
	s.waitNode = -1 // the oracle does not fail
	s.sentAt = s.now()
	m := s.msg(MsgTimestamp, -1, -1)
	m.Coord = -1
	s.c.cluster.AskOracle(s.id, m)
}

// stamped takes the oracle's answer and goes on with what needed it.
func (s *session) stamped(m *Msg) {
	if s.state != stateTimestamp || m.Tx.ID != s.tx.ID || m.OpSeq != s.opSeq {
		return // of an attempt that is over
	}
	s.cur[PartTimestamp] += s.now().Sub(s.sentAt)
	if s.begun {
		s.op.Snapshot = Version(m.Tx.TS)
		s.runOp()
		return
	}
	s.tx.TS = m.Tx.TS
	if s.tx.Attempt == 1 {
		s.tx.FirstTS = s.tx.TS
	}
	s.goOn()
}
