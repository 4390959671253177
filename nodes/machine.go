package nodes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"

	"interleave/txnproto"
)

// prepared is a participant's branch that waits for the decision.
type prepared struct {
	info        txnproto.Info // Request, Client, ID, Attempt, TS, FirstTS
	coordinator txnproto.ShardID
	index       uint64 // of its log entry: recovery keeps log order
	puts        []txnproto.Put
}

// decision is a commit that not every participant is known to have carried out.
type decision struct {
	info         txnproto.Info
	participants []txnproto.ShardID
	// Of an EntryCommitAll: see Entry.
	remote  []txnproto.Put
	remotes []int32
}

// lastCommit is a client's newest committed request that wrote here: what a
// repeated question is answered from. A client has one request open at a time,
// so one entry a client is enough.
type lastCommit struct {
	request txnproto.RequestID
	txn     txnproto.TxnID
}

// machine is a shard's replicated state at one replica: the rows and what
// atomic commit must remember. It implements StateMachine.
//
// Invariant: it depends on the entries applied and on nothing else.
type machine struct {
	store    *Store
	prepared txnTable[prepared]
	decided  txnTable[decision]
	last     []lastCommit // by client
	// carried is, by client, the newest commit whose writes an EntryInstall has brought. A
	// client's commits come to a shard in order: see Host.hold.
	carried []txnproto.TxnID
	index   uint64 // applied up to

	freePrepared []*prepared
	freeDecided  []*decision
}

func newMachine(s *Store) *machine {
	return &machine{
		store: s,
	}
}

// Apply applies the entry at index and fills in the versions of what it
// installs; for an EntryFinish that commits, e.Puts becomes what was prepared.
func (m *machine) Apply(index uint64, e *Entry) {
	if index <= m.index {
		panic(fmt.Sprintf("nodes: shard %v applies entry %d after %d", m.store.shard, index, m.index))
	}
	m.index = index
	for _, t := range e.Forget {
		if d := m.decided.get(t); d != nil {
			m.decided.del(t)
			m.freeDecided = append(m.freeDecided, d)
		}
	}
	switch e.Kind {
	case EntryNoop, EntryBatch:
	case EntryCommit, EntryCommitAll:
		m.install(e.Puts, e)
		m.setLast(e.Client, lastCommit{e.Request, e.Txn})
		if len(e.Participants) > 0 {
			d := m.newDecision()
			d.info = e.info()
			d.participants = append(d.participants[:0], e.Participants...)
			d.remote, d.remotes = append(d.remote[:0], e.Remote...), append(d.remotes[:0], e.Remotes...)
			m.decided.put(e.Txn, d)
		}
	case EntryPrepare:
		p := m.newPrepared()
		p.info, p.coordinator, p.index = e.info(), e.Coordinator, index
		p.puts = append(p.puts[:0], e.Puts...)
		m.prepared.put(e.Txn, p)
	case EntryFinish:
		m.finish(e)
	case EntryInstall:
		m.carry(e)
	default:
		panic("nodes: unknown entry kind")
	}
}

// finish ends a prepared branch. One that is not there has been ended by an
// earlier entry of the same decision.
func (m *machine) finish(e *Entry) {
	p := m.prepared.get(e.Txn)
	e.Puts = e.Puts[:0]
	if p == nil {
		return
	}
	m.prepared.del(e.Txn)
	if e.Outcome == txnproto.Committed {
		m.install(p.puts, e)
		e.Puts = append(e.Puts, p.puts...)
	}
	m.freePrepared = append(m.freePrepared, p)
}

// install makes puts committed rows, with the versions that e's protocol numbers them by.
func (m *machine) install(puts []txnproto.Put, e *Entry) {
	var v txnproto.Version
	switch m.store.versioning {
	case txnproto.VersionLatest:
	case txnproto.VersionByCommit:
		v = txnproto.Version(e.CommitTS)
	case txnproto.VersionByBegin:
		v = txnproto.Version(e.TS)
	case txnproto.VersionByExposure:
		for i := range puts {
			m.store.Install(&puts[i], puts[i].Version)
		}
		return
	default:
		panic("nodes: unknown versioning")
	}
	for i := range puts {
		puts[i].Version = m.store.Install(&puts[i], v)
	}
	if v != 0 {
		m.store.Collect(txnproto.Version(e.Watermark))
	}
}

func (m *machine) setLast(c txnproto.ClientID, l lastCommit) {
	for int(c) >= len(m.last) {
		m.last = append(m.last, lastCommit{})
	}
	m.last[c] = l
}

func (m *machine) newPrepared() *prepared {
	if n := len(m.freePrepared); n > 0 {
		p := m.freePrepared[n-1]
		m.freePrepared = m.freePrepared[:n-1]
		return p
	}
	return &prepared{}
}

func (m *machine) newDecision() *decision {
	if n := len(m.freeDecided); n > 0 {
		d := m.freeDecided[n-1]
		m.freeDecided = m.freeDecided[:n-1]
		return d
	}
	return &decision{}
}

// inDoubt returns the prepared branches in log order.
func (m *machine) inDoubt() []*prepared {
	ps := make([]*prepared, 0, m.prepared.n)
	for _, p := range m.prepared.all { // order: sorted below
		ps = append(ps, p)
	}
	sort.Slice(ps, func(i, j int) bool { return ps[i].index < ps[j].index })
	return ps
}

// decisions returns the decisions that are not known to be carried out everywhere, by txn.
func (m *machine) decisions() []*decision {
	ds := make([]*decision, 0, m.decided.n)
	for _, d := range m.decided.all { // order: sorted below
		ds = append(ds, d)
	}
	sort.Slice(ds, func(i, j int) bool { return ds[i].info.ID < ds[j].info.ID })
	return ds
}

// committed reports whether the log holds the decision to commit txn of request.
func (m *machine) committed(client txnproto.ClientID, request txnproto.RequestID, txn txnproto.TxnID) bool {
	if m.decided.get(txn) != nil {
		return true
	}
	return int(client) < len(m.last) && m.last[client] == lastCommit{request, txn}
}

// differs says in words how m and o differ, or "".
func (m *machine) differs(o *machine) string {
	if k, ok := m.store.differs(o.store); ok {
		return fmt.Sprintf("key %d is %+v and %+v", k, m.store.Get(k), o.store.Get(k))
	}
	return m.commitsDiffer(o)
}

// commitsDiffer says in words how what m and o remember of commits differs, or "".
func (m *machine) commitsDiffer(o *machine) string {
	a, b := m.encode(nil, false), o.encode(nil, false)
	if string(a) != string(b) {
		return fmt.Sprintf("what atomic commit remembers: %d and %d prepared, %d and %d decisions",
			m.prepared.n, o.prepared.n, m.decided.n, o.decided.n)
	}
	return ""
}

func (e *Entry) info() txnproto.Info {
	return txnproto.Info{ID: e.Txn, Request: e.Request, Client: e.Client, Attempt: int(e.Attempt), TS: e.TS, FirstTS: e.FirstTS, CommitTS: e.CommitTS}
}

func (e *Entry) setInfo(i *txnproto.Info) {
	e.Txn, e.Request, e.Client, e.Attempt, e.TS, e.FirstTS, e.CommitTS = i.ID, i.Request, i.Client, int32(i.Attempt), i.TS, i.FirstTS, i.CommitTS
}

// The formats of a snapshot: the second has, at its end, what EntryInstalls brought.
const (
	snapshotFormat        = 1
	snapshotFormatCarried = 2
)

// encode appends the state to b, with the rows when rows is set.
func (m *machine) encode(b []byte, rows bool) []byte {
	le := binary.LittleEndian
	format := byte(snapshotFormat)
	if len(m.carried) > 0 {
		format = snapshotFormatCarried
	}
	b = append(b, format)
	if rows {
		b = le.AppendUint64(b, m.index)
		written := m.store.inKeyOrder()
		b = le.AppendUint64(b, uint64(len(written)))
		for i := range written {
			r := &written[i]
			b = appendPut(b, &txnproto.Put{Key: r.key, Value: r.value, Deleted: r.deleted()})
			b = m.store.appendVersion(b, r.version())
		}
		b = m.store.appendOld(b)
	}
	b = le.AppendUint64(b, uint64(m.prepared.n))
	for _, p := range m.inDoubt() {
		e := Entry{Kind: EntryPrepare, Coordinator: p.coordinator, Puts: p.puts}
		e.Versioned = m.store.versioning == txnproto.VersionByExposure
		e.setInfo(&p.info)
		b = appendSized(b, &e)
		b = le.AppendUint64(b, p.index)
	}
	b = le.AppendUint64(b, uint64(m.decided.n))
	for _, d := range m.decisions() {
		e := Entry{Kind: EntryCommit, Participants: d.participants}
		if len(d.remotes) > 0 {
			e.Kind, e.Remote, e.Remotes = EntryCommitAll, d.remote, d.remotes
		}
		e.setInfo(&d.info)
		b = appendSized(b, &e)
	}
	b = le.AppendUint64(b, uint64(len(m.last)))
	for _, l := range m.last {
		b = le.AppendUint64(b, uint64(l.request))
		b = le.AppendUint64(b, uint64(l.txn))
	}
	if format == snapshotFormatCarried {
		b = le.AppendUint64(b, uint64(len(m.carried)))
		for _, t := range m.carried {
			b = le.AppendUint64(b, uint64(t))
		}
	}
	return b
}

func appendSized(b []byte, e *Entry) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = e.AppendTo(b)
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// Snapshot writes the whole state.
func (m *machine) Snapshot(w io.Writer) error {
	_, err := w.Write(m.encode(nil, true))
	return err
}

// Restore replaces the state by one that Snapshot wrote.
func (m *machine) Restore(rd io.Reader) error {
	b, err := io.ReadAll(rd)
	if err != nil {
		return fmt.Errorf("nodes: reading a snapshot: %w", err)
	}
	r := reader{b: b}
	format := r.u8()
	if format != snapshotFormat && format != snapshotFormatCarried {
		return fmt.Errorf("nodes: snapshot of format %d, want %d or %d", format, snapshotFormat, snapshotFormatCarried)
	}
	n := newMachine(NewStore(m.store.shard, m.store.place, m.store.base, m.store.versioning))
	n.index = r.u64()
	for i := r.u64(); i > 0 && !r.bad; i-- {
		p := r.put()
		n.store.Install(&p, 1)
		n.store.set(n.store.find(p.Key), oldVersion{p.Value, n.store.readVersion(&r), p.Deleted})
	}
	n.store.readOld(&r)
	for i := r.u64(); i > 0 && !r.bad; i-- {
		e := r.entry()
		n.prepared.put(e.Txn, &prepared{e.info(), e.Coordinator, r.u64(), e.Puts})
	}
	for i := r.u64(); i > 0 && !r.bad; i-- {
		e := r.entry()
		n.decided.put(e.Txn, &decision{e.info(), e.Participants, e.Remote, e.Remotes})
	}
	for i := r.u64(); i > 0 && !r.bad; i-- {
		n.last = append(n.last, lastCommit{txnproto.RequestID(r.u64()), txnproto.TxnID(r.u64())})
	}
	if format == snapshotFormatCarried {
		for i := r.u64(); i > 0 && !r.bad; i-- {
			n.carried = append(n.carried, txnproto.TxnID(r.u64()))
		}
	}
	if r.bad || len(r.b) != 0 {
		return errors.New("nodes: snapshot is cut short or too long")
	}
	*m = *n
	return nil
}

func (r *reader) entry() Entry {
	var e Entry
	n := r.u32()
	if uint64(n) > uint64(len(r.b)) {
		r.bad = true
		return e
	}
	if err := e.Decode(r.take(int(n))); err != nil {
		r.bad = true
	}
	return e
}
