package history

import (
	"errors"
	"fmt"
)

// DefaultWindowBytes is the size of the recorded history up to which it is kept
// whole: about two and a half million transactions of ten operations.
const DefaultWindowBytes = 256 << 20

// Sizes of the recording's chunks: they double from the first up to the last, unless
// one record needs more or the window is so small that chunks must be smaller.
const (
	minChunkBytes = 4 << 10
	maxChunkBytes = 1 << 20
)

// chunksPerWindow is the least number of chunks in a window, so that half a
// window can be let go with some precision.
const chunksPerWindow = 8

// chunk is a piece of the recording that can be decoded alone, with what is
// needed to size the checker's columns. Records do not straddle chunks.
type chunk struct {
	data    []byte
	commits int
	others  int // aborts and installs: each may name one more transaction
	reads   int // without those of scans
	scans   int
	writes  int

	minTxn, maxTxn TxnID
	minKey, maxKey Key // of writes
}

func (c *chunk) sawTxn(t TxnID) {
	c.minTxn, c.maxTxn = min(c.minTxn, t), max(c.maxTxn, t)
}

// Recorder keeps a history in memory, encoded, and has it checked. It belongs to
// one goroutine. It is a Sink. Recording allocates only a new chunk now and then.
//
// When the recording reaches Options.WindowBytes, what is there is checked and the
// older half is let go; so a longer history is checked in windows that overlap by
// about half, and the result says so.
type Recorder struct {
	opt      Options
	nextSize int // of the next chunk
	maxSize  int
	window   int64

	chunks []chunk
	d      deltas
	bytes  int64 // encoded bytes of chunks

	cut      bool  // MarkUnfinished
	commits  int   // over the whole run
	windows  int   // checked so far and let go
	spanSum  int   // transactions in those windows, summed
	lapSum   int   // transactions kept for the next window, summed
	released bool  // chunks were let go
	found    found // what the windows so far have shown
}

var _ Sink = (*Recorder)(nil)

// NewRecorder returns an empty recorder. The options are those of the check, which
// may begin before the run ends. Zero values of bounds take their defaults.
func NewRecorder(opt Options) *Recorder {
	opt.fill()
	r := &Recorder{opt: opt, window: opt.WindowBytes}
	r.maxSize = int(min(maxChunkBytes, max(r.window/chunksPerWindow, 1)))
	r.nextSize = min(minChunkBytes, r.maxSize)
	r.found.init(&r.opt)
	return r
}

// room returns the chunk to append n bytes at most to, checking and letting go of
// old ones first where the window is full.
func (r *Recorder) room(n int) *chunk {
	if len(r.chunks) > 0 {
		c := &r.chunks[len(r.chunks)-1]
		if cap(c.data)-len(c.data) >= n {
			return c
		}
	}
	if r.bytes >= r.window && len(r.chunks) > 1 {
		r.slide()
	}
	r.chunks = append(r.chunks, chunk{
		data:   make([]byte, 0, max(r.nextSize, n)),
		minTxn: ^TxnID(0), minKey: ^Key(0),
	})
	r.nextSize = min(2*r.nextSize, r.maxSize)
	r.d = deltas{}
	return &r.chunks[len(r.chunks)-1]
}

// slide checks the window and lets its older half go.
func (r *Recorder) slide() {
	checkChunks(r.chunks, &r.found, r.opt, scope{partial: true})
	r.windows++
	drop := len(r.chunks) / 2
	for i := range r.chunks {
		r.spanSum += r.chunks[i].commits
		if i < drop {
			r.bytes -= int64(len(r.chunks[i].data))
		} else {
			r.lapSum += r.chunks[i].commits
		}
	}
	kept := copy(r.chunks, r.chunks[drop:])
	clear(r.chunks[kept:])
	r.chunks = r.chunks[:kept]
	r.released = true
}

// Commit records that an attempt committed, with what it read. The record and its
// slices may be reused after the call.
//
// It panics when Writes is below WritesUnknown.
func (r *Recorder) Commit(c *Commit) {
	if c.Writes < WritesUnknown {
		panic(fmt.Sprintf("history: %v commits with %d writes", c.Txn, c.Writes))
	}
	ch := r.room(commitBound(c))
	before := len(ch.data)
	ch.data = appendCommit(ch.data, &r.d, c)
	r.bytes += int64(len(ch.data) - before)
	ch.commits++
	ch.reads += len(c.Reads)
	ch.scans += len(c.Scans)
	ch.sawTxn(c.Txn)
	r.commits++
}

// Abort records that an attempt aborted. It is needed only for attempts that had
// installed versions others could read.
func (r *Recorder) Abort(txn TxnID) {
	ch := r.room(1 + maxVarint)
	before := len(ch.data)
	ch.data = appendAbort(ch.data, &r.d, txn)
	r.bytes += int64(len(ch.data) - before)
	ch.others++
	ch.sawTxn(txn)
}

// Install records that a shard installed versions written by txn, before or after
// the record of its end.
//
// It panics when a version is not below 2^63.
func (r *Recorder) Install(txn TxnID, shard ShardID, writes []Write) {
	ch := r.room(maxInstallHead + len(writes)*maxWriteBytes)
	for i := range writes {
		w := &writes[i]
		if w.Version >= 1<<63 {
			panic(fmt.Sprintf("history: %v installs key %d at version %d, which is not below 2^63", txn, w.Key, w.Version))
		}
		ch.minKey, ch.maxKey = min(ch.minKey, w.Key), max(ch.maxKey, w.Key)
	}
	before := len(ch.data)
	ch.data = appendInstall(ch.data, &r.d, txn, shard, writes)
	r.bytes += int64(len(ch.data) - before)
	ch.others++
	ch.writes += len(writes)
	ch.sawTxn(txn)
}

// MarkUnfinished tells the checker that the run stopped while transactions were
// ending: versions of committed ones may be missing, and so may the ends of those
// whose versions were installed and read. Neither is then a fault.
func (r *Recorder) MarkUnfinished() { r.cut = true }

// Bytes returns the encoded size of the history held in memory.
func (r *Recorder) Bytes() int64 { return r.bytes }

// Commits returns the number of committed attempts recorded.
func (r *Recorder) Commits() int { return r.commits }

// Check judges what has been recorded. The recording stays, and may go on.
func (r *Recorder) Check() *Result {
	f := r.found.clone()
	st := checkChunks(r.chunks, &f, r.opt, scope{partial: r.released, cut: r.cut})
	res := f.result(&r.opt)
	res.Transactions = r.commits
	res.Edges = f.edges
	res.Exact = !r.released
	res.Windows = r.windows + 1
	if r.released {
		res.Note = fmt.Sprintf("checked in %d windows of about %d transactions, each overlapping the one before by about %d; "+
			"an anomaly whose transactions lie farther apart may have been missed",
			res.Windows, (r.spanSum+st.commits)/res.Windows, r.lapSum/r.windows)
	}
	return res
}

// ErrReleased is returned when a history is wanted whole and its older part has
// been checked and let go.
var ErrReleased = errors.New("history: the older part has been checked and let go")

// Replay gives every record to sink in order. It returns ErrReleased when the
// history is no longer whole.
func (r *Recorder) Replay(sink Sink) error {
	if r.released {
		return ErrReleased
	}
	var p player
	for i := range r.chunks {
		p.play(&r.chunks[i], sink)
	}
	if r.cut {
		sink.MarkUnfinished()
	}
	return nil
}

// player decodes whole records into slices it reuses.
type player struct {
	c      Commit
	writes []Write
}

func (p *player) play(ch *chunk, sink Sink) {
	cur := cursor{b: ch.data}
	for !cur.done() {
		switch t := cur.tag(); t {
		case tagCommit:
			p.commit(&cur)
			sink.Commit(&p.c)
		case tagAbort:
			sink.Abort(cur.txn())
		case tagInstall:
			txn, shard, n := cur.installHead()
			p.writes = p.writes[:0]
			var key Key
			for range n {
				w := cur.write(key)
				p.writes = append(p.writes, w)
				key = w.Key
			}
			sink.Install(txn, shard, p.writes)
		default:
			panic(fmt.Sprintf("history: unknown tag %d in a chunk at byte %d", t, cur.off-1))
		}
	}
}

func (p *player) commit(cur *cursor) {
	var h commitHead
	cur.commitHead(&h)
	reads, scans := p.c.Reads[:0], p.c.Scans[:0]
	var key Key
	for range h.reads {
		rd := cur.read(key)
		reads = append(reads, rd)
		key = rd.Key
	}
	for i := range h.scans {
		if i < cap(scans) {
			scans = scans[:i+1] // keep the list that stood there
		} else {
			scans = append(scans, Scan{})
		}
		cur.scan(&scans[i])
	}
	p.c = h.Commit
	p.c.Reads, p.c.Scans = reads, scans
}
