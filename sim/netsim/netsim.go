// Package netsim is the network between the sites of a run: per pair of zones a
// distribution of one-way latency, per directed link a transmitter of bounded
// speed, loss under a reliable transport, and sites that can be cut off.
//
// A message's life:
//
//	Send ── waits for the link's transmitter ── latency ── arrival: Handler(Arg)
//	     └ each lost transmission adds a retransmission timeout
//
// What a message meets depends on what it is, never on what was sent before it:
// latency and losses are drawn from a hash of the link, the Kind and the Key.
// Only the transmitter and the order of FIFO messages carry over from message to
// message, and both go by the order of sending.
package netsim

import (
	"fmt"
	"time"

	"interleave/sim/event"
	"interleave/sim/rng"
)

// Site is a machine, or the place where a zone's clients are: an index into
// Config.Sites.
type Site int32

// Zone is a place; sites of one zone are near each other. It is an index into
// Config.Zones.
type Zone int32

// Kind classes messages, for counting. It is an index into Config.Kinds.
type Kind uint8

// MaxKinds is how many kinds of messages there can be.
const MaxKinds = 32

// Config describes a network.
type Config struct {
	// Zones are the names of the zones.
	Zones []string
	// Sites has the zone of each site: the machines first, then, where a
	// preset made it, one client site per zone.
	Sites []Zone
	// Machines is how many of the sites are machines.
	Machines int
	// Latency is the one-way latency from a zone (row) to a zone (column),
	// between different sites.
	Latency [][]rng.Dist
	// Loopback is the latency from a site to itself.
	Loopback rng.Dist
	// Loss is the probability that one transmission is lost, from 0 to below 1.
	Loss float64
	// RetransmitTimeout is how much longer than the mean round trip of the
	// link a sender waits before it sends a lost message again. Each retry
	// waits twice as long as the one before.
	RetransmitTimeout time.Duration
	// BytesPerSecond is the speed of each directed link; 0 is no limit.
	BytesPerSecond int64
	// Kinds are the names of the kinds of messages, at most MaxKinds.
	Kinds []string
	// NeverCut says that no site will be cut off. What is under way need then not
	// be kept track of, and a message costs one event and nothing else.
	NeverCut bool
}

// Machine returns the site of machine i.
func (c *Config) Machine(i int) Site { return Site(i) }

// Client returns the site of the clients of zone z. REQUIRES: the
// configuration is of a preset.
func (c *Config) Client(z Zone) Site { return Site(c.Machines + int(z)) }

// Validate reports what is wrong with c.
func (c *Config) Validate() error {
	if len(c.Zones) == 0 {
		return fmt.Errorf("zones: none: want at least one")
	}
	if len(c.Latency) != len(c.Zones) {
		return fmt.Errorf("latency: %d rows: want one for each of %d zones", len(c.Latency), len(c.Zones))
	}
	for z, row := range c.Latency {
		if len(row) != len(c.Zones) {
			return fmt.Errorf("latency: %d columns from zone %s: want one for each of %d zones", len(row), c.Zones[z], len(c.Zones))
		}
	}
	for s, z := range c.Sites {
		if z < 0 || int(z) >= len(c.Zones) {
			return fmt.Errorf("sites: site %d is in zone %d: want 0 to %d", s, z, len(c.Zones)-1)
		}
	}
	if c.Machines < 0 || c.Machines > len(c.Sites) {
		return fmt.Errorf("machines: %d: want 0 to the %d sites", c.Machines, len(c.Sites))
	}
	if !(c.Loss >= 0 && c.Loss < 1) {
		return fmt.Errorf("loss: %v: want a probability from 0 to below 1", c.Loss)
	}
	if c.RetransmitTimeout < 0 || c.RetransmitTimeout > time.Hour {
		return fmt.Errorf("retransmit-timeout: %v: want 0s to 1h", c.RetransmitTimeout)
	}
	if c.BytesPerSecond < 0 {
		return fmt.Errorf("bytes-per-second: %d: want 0 (no limit) or more", c.BytesPerSecond)
	}
	if len(c.Kinds) > MaxKinds {
		return fmt.Errorf("kinds: %d: want at most %d", len(c.Kinds), MaxKinds)
	}
	return nil
}

// Message is one message to be sent.
type Message struct {
	From, To Site
	Kind     Kind
	// FIFO messages of one directed link arrive in the order in which they
	// are sent; the others may overtake and be overtaken.
	FIFO  bool
	Bytes int
	// Key says what the message is, among those of its kind on its link:
	// equal keys meet equal latency and losses.
	Key uint64
	// Handler is called with Arg when the message arrives.
	Handler event.HandlerID
	Arg     uint64
}

const (
	// maxRetransmissions is after how many lost retransmissions the transport
	// gives up and the message is dropped, as many as Linux makes by default.
	maxRetransmissions = 15
	// maxBackoff bounds the doubling of the retransmission timeout.
	maxBackoff = 6
)

// Net is the network of one run.
type Net struct {
	loop   *event.Loop
	cfg    Config
	loss   uint64 // a transmission whose 53 random bits are below is lost
	links  []link // from*sites + to
	sites  []siteState
	arrive event.HandlerID

	flights []flight
	free    []uint32

	from  event.Time // of the window
	kinds [MaxKinds]KindStats
}

// link is one directed link.
type link struct {
	key      uint64
	latency  rng.Dist
	timeout  time.Duration // before the first retransmission
	idleAt   event.Time    // from when on the transmitter is idle
	lastFIFO event.Time    // arrival of the latest FIFO message
}

// siteState says whether a site is cut off, and how often it has been: what was
// under way at a cut is lost although the site may be back when it arrives.
type siteState struct {
	cut  bool
	cuts uint32
}

// flight is a message under way.
type flight struct {
	from, to         Site
	fromCuts, toCuts uint32
	h                event.HandlerID
	kind             Kind
	arg              uint64
}

// New returns the network cfg describes. It reports an error, naming the field,
// when cfg is not valid.
func New(loop *event.Loop, seed rng.Seed, cfg Config) (*Net, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	n := &Net{
		loop:  loop,
		cfg:   cfg,
		loss:  uint64(cfg.Loss * (1 << 53)),
		links: make([]link, len(cfg.Sites)*len(cfg.Sites)),
		sites: make([]siteState, len(cfg.Sites)),
		from:  loop.Now(),
	}
	key := seed.Key("netsim")
	for from, zf := range cfg.Sites {
		for to, zt := range cfg.Sites {
			l := &n.links[from*len(cfg.Sites)+to]
			l.key = rng.Hash(key, uint64(from)<<32|uint64(to))
			l.lastFIFO = -1
			if from == to {
				l.latency = cfg.Loopback
				continue
			}
			l.latency = cfg.Latency[zf][zt]
			l.timeout = cfg.RetransmitTimeout + l.latency.Mean() + cfg.Latency[zt][zf].Mean()
		}
	}
	for i, name := range cfg.Kinds {
		n.kinds[i].Name = name
	}
	n.arrive = loop.Handle("netsim.arrive", n.arrived)
	return n, nil
}

// Config returns the configuration. It is not to be changed.
func (n *Net) Config() *Config { return &n.cfg }

// Zone returns the zone of s.
func (n *Net) Zone(s Site) Zone { return n.cfg.Sites[s] }

// Send sends m now and returns when it will arrive: its handler runs then,
// unless one of its ends is cut off first. It returns event.Never, and drops the
// message, when an end is cut off or every retransmission is lost. A message
// from a site to itself takes the loopback latency, no transmitter, and is not
// lost. Send does not keep m.
func (n *Net) Send(m *Message) event.Time {
	if m.Bytes < 0 || int(m.Kind) >= MaxKinds {
		n.panicMessage(m)
	}
	k := &n.kinds[m.Kind]
	k.Messages++
	k.Bytes += int64(m.Bytes)
	if !n.cfg.NeverCut && (n.sites[m.From].cut || n.sites[m.To].cut) {
		k.Dropped++
		return event.Never
	}
	l := &n.links[int(m.From)*len(n.sites)+int(m.To)]
	// Kinds number their messages each in its own way; equal keys of two of
	// them are not the same message.
	what := rng.Hash(l.key+uint64(m.Kind), m.Key)
	at := n.loop.Now()
	if m.From != m.To {
		if n.cfg.BytesPerSecond > 0 {
			at = max(at, l.idleAt).Add(event.TransferTime(int64(m.Bytes), n.cfg.BytesPerSecond))
			l.idleAt = at
		}
		if n.loss > 0 {
			delay, ok := n.retransmit(l, what, k)
			if !ok {
				k.Dropped++
				return event.Never
			}
			at = at.Add(delay)
		}
	}
	at = at.Add(l.latency.At(what))
	if m.FIFO {
		at = max(at, l.lastFIFO+1)
		l.lastFIFO = at
	}
	if n.cfg.NeverCut {
		n.loop.At(at, m.Handler, m.Arg)
		return at
	}
	from, to := &n.sites[m.From], &n.sites[m.To]
	n.loop.At(at, n.arrive, uint64(n.fly(flight{m.From, m.To, from.cuts, to.cuts, m.Handler, m.Kind, m.Arg})))
	return at
}

func (n *Net) panicMessage(m *Message) {
	panic(fmt.Sprintf("netsim: message of kind %d with %d bytes from %d to %d at %v, want a kind below %d and bytes of at least 0",
		m.Kind, m.Bytes, m.From, m.To, n.loop.Now(), MaxKinds))
}

// retransmit returns how long the lost transmissions of a message delay it. It
// reports false when all were lost. Transmission i is lost by the hash of the
// message and i: whoever sends it again under the same key loses it again.
func (n *Net) retransmit(l *link, what uint64, k *KindStats) (delay time.Duration, ok bool) {
	for i := uint64(0); rng.Hash(what, i+1)>>11 < n.loss; i++ {
		if i == maxRetransmissions {
			return 0, false
		}
		delay += l.timeout << min(i, maxBackoff)
		k.Retransmissions++
	}
	return delay, true
}

// fly keeps f until it arrives and returns its index.
func (n *Net) fly(f flight) uint32 {
	if k := len(n.free); k > 0 {
		i := n.free[k-1]
		n.free = n.free[:k-1]
		n.flights[i] = f
		return i
	}
	n.flights = append(n.flights, f)
	return uint32(len(n.flights) - 1)
}

func (n *Net) arrived(i uint64) {
	f := n.flights[i]
	n.free = append(n.free, uint32(i))
	from, to := &n.sites[f.from], &n.sites[f.to]
	if from.cuts != f.fromCuts || to.cuts != f.toCuts {
		n.kinds[f.kind].Dropped++
		return
	}
	n.loop.Call(f.h, f.arg)
}

// InFlight returns how many messages are under way, those included that a cut
// has doomed. REQUIRES: sites may be cut off.
func (n *Net) InFlight() int { return len(n.flights) - len(n.free) }

// Cut cuts s off: what is under way to or from it is lost, and so is what is
// sent to or from it until Heal. Cutting a site that is cut off changes nothing.
func (n *Net) Cut(s Site) {
	if n.cfg.NeverCut {
		panic(fmt.Sprintf("netsim: site %d is cut off at %v, in a network configured with NeverCut", s, n.loop.Now()))
	}
	if st := &n.sites[s]; !st.cut {
		st.cut = true
		st.cuts++
	}
}

// Heal connects s again.
func (n *Net) Heal(s Site) { n.sites[s].cut = false }

// IsCut reports whether s is cut off.
func (n *Net) IsCut(s Site) bool { return n.sites[s].cut }

// KindStats counts the messages of one kind in a window, by the time of sending;
// Dropped by the time at which they were lost.
type KindStats struct {
	Name     string
	Messages uint64
	Bytes    int64
	// Dropped messages never arrived: an end was cut off, or every
	// retransmission was lost.
	Dropped uint64
	// Retransmissions are the transmissions sent again.
	Retransmissions uint64
}

// Stats is the traffic of a window.
type Stats struct {
	Window time.Duration
	Kinds  []KindStats // by Kind, as many as Config.Kinds
}

// Total returns the sum over all kinds, without a name.
func (s Stats) Total() KindStats {
	var t KindStats
	for _, k := range s.Kinds {
		t.Messages += k.Messages
		t.Bytes += k.Bytes
		t.Dropped += k.Dropped
		t.Retransmissions += k.Retransmissions
	}
	return t
}

// ResetStats starts a new window now.
func (n *Net) ResetStats() {
	n.from = n.loop.Now()
	for i := range n.kinds {
		n.kinds[i] = KindStats{Name: n.kinds[i].Name}
	}
}

// Stats returns the traffic of the window that ends now.
func (n *Net) Stats() Stats {
	return Stats{
		Window: n.loop.Now().Sub(n.from),
		Kinds:  append([]KindStats(nil), n.kinds[:len(n.cfg.Kinds)]...),
	}
}
