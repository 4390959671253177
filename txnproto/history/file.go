package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// FormatVersion is the version of the history file that Writer writes and Reader
// reads.
//
// A history file is text, one JSON object a line. The first is the Header. The
// records follow in the order in which they were recorded, their fields in any
// order, all numbers whole:
//
//	{"commit":TXN,"request":N,"client":N,"class":N,"begin_ns":N,"end_ns":N,"writes":N,
//	 "reads":[[KEY,VERSION],…],
//	 "scans":[{"lo":KEY,"hi":KEY,"shard":N,"seen":[[KEY,VERSION],…]},…]}
//	{"abort":TXN}
//	{"install":TXN,"shard":N,"writes":[[KEY,VERSION,VALUE],…]}
//
// writes of a commit is how many versions the transaction installs; it is left out
// when unknown. A scan covers lo ≤ key < hi; without shard it covers all shards.
// An installed VALUE of null is a deletion. Every other field may be left out when
// it is 0 or empty. The last line is {"records":N,"unfinished":true}: the number of
// records before it, by which a file cut short is known, and whether the run stopped
// while transactions were ending (see Sink.MarkUnfinished).
const FormatVersion = 1

// Header is the first line of a history file.
type Header struct {
	Format   int    `json:"history"` // FormatVersion
	Protocol string `json:"protocol,omitempty"`
	Level    Level  `json:"level"` // promised
	Seed     uint64 `json:"seed,omitempty"`
	// BaseKeys says that the keys below it are rows of the initial database, and no
	// others.
	BaseKeys uint64 `json:"base_keys,omitempty"`
	// Spec is the text that describes the run, such as its YAML. From it the caller
	// knows which shard a key belongs to.
	Spec string `json:"spec,omitempty"`
}

// Present returns the rows of the initial database, for Options.
func (h *Header) Present() func(Key) bool {
	return func(k Key) bool { return uint64(k) < h.BaseKeys }
}

// Writer writes a history file as records come. Errors of the underlying writer
// are kept and returned by Close.
type Writer struct {
	w          *bufio.Writer
	line       []byte
	records    int
	unfinished bool
}

var _ Sink = (*Writer)(nil)

// NewWriter writes the header, whose Format it sets, and returns the writer of the
// records.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h.Format = FormatVersion
	text, err := json.Marshal(&h)
	if err != nil {
		return nil, fmt.Errorf("history file: header: %w", err)
	}
	fw := &Writer{w: bufio.NewWriterSize(w, 1<<16), line: make([]byte, 0, 1024)}
	fw.line = append(fw.line, text...)
	if err := fw.flushLine(); err != nil {
		return nil, err
	}
	return fw, nil
}

func (w *Writer) flushLine() error {
	w.line = append(w.line, '\n')
	_, err := w.w.Write(w.line) // bufio keeps the first error
	w.line = w.line[:0]
	if err != nil {
		return fmt.Errorf("history file: %w", err)
	}
	return nil
}

// record ends a record's line. An error stays in the buffer until Close.
func (w *Writer) record() {
	w.line = append(w.line, "}\n"...)
	_, _ = w.w.Write(w.line) // bufio keeps the first error, and Close returns it
	w.line = w.line[:0]
	w.records++
}

func (w *Writer) field(name string, v uint64) {
	w.line = append(w.line, name...)
	w.line = strconv.AppendUint(w.line, v, 10)
}

func (w *Writer) signedField(name string, v int64) {
	w.line = append(w.line, name...)
	w.line = strconv.AppendInt(w.line, v, 10)
}

// Commit writes a commit record.
func (w *Writer) Commit(c *Commit) {
	w.field(`{"commit":`, uint64(c.Txn))
	if c.Request != 0 {
		w.field(`,"request":`, uint64(c.Request))
	}
	if c.Client != 0 {
		w.field(`,"client":`, uint64(c.Client))
	}
	if c.Class != 0 {
		w.field(`,"class":`, uint64(c.Class))
	}
	w.signedField(`,"begin_ns":`, int64(c.Begin))
	w.signedField(`,"end_ns":`, int64(c.End))
	if c.Writes != WritesUnknown {
		w.signedField(`,"writes":`, int64(c.Writes))
	}
	if len(c.Reads) > 0 {
		w.reads(`,"reads":[`, c.Reads)
	}
	for i := range c.Scans {
		s := &c.Scans[i]
		if i == 0 {
			w.line = append(w.line, `,"scans":[`...)
		} else {
			w.line = append(w.line, ',')
		}
		w.field(`{"lo":`, uint64(s.Lo))
		w.field(`,"hi":`, uint64(s.Hi))
		if s.Shard != AllShards {
			w.signedField(`,"shard":`, int64(s.Shard))
		}
		if len(s.Seen) > 0 {
			w.reads(`,"seen":[`, s.Seen)
		}
		w.line = append(w.line, '}')
		if i == len(c.Scans)-1 {
			w.line = append(w.line, ']')
		}
	}
	w.record()
}

func (w *Writer) reads(name string, reads []Read) {
	w.line = append(w.line, name...)
	for i, r := range reads {
		if i > 0 {
			w.line = append(w.line, ',')
		}
		w.field("[", uint64(r.Key))
		w.field(",", uint64(r.Version))
		w.line = append(w.line, ']')
	}
	w.line = append(w.line, ']')
}

// Abort writes an abort record.
func (w *Writer) Abort(txn TxnID) {
	w.field(`{"abort":`, uint64(txn))
	w.record()
}

// Install writes an install record.
func (w *Writer) Install(txn TxnID, shard ShardID, writes []Write) {
	w.field(`{"install":`, uint64(txn))
	if shard != AllShards {
		w.signedField(`,"shard":`, int64(shard))
	}
	w.line = append(w.line, `,"writes":[`...)
	for i := range writes {
		x := &writes[i]
		if i > 0 {
			w.line = append(w.line, ',')
		}
		w.field("[", uint64(x.Key))
		w.field(",", uint64(x.Version))
		if x.Tombstone {
			w.line = append(w.line, ",null]"...)
			continue
		}
		w.signedField(",", x.Value)
		w.line = append(w.line, ']')
	}
	w.line = append(w.line, ']')
	w.record()
}

// MarkUnfinished has the last line say so.
func (w *Writer) MarkUnfinished() { w.unfinished = true }

// Close writes the last line and flushes. It returns the first error of all writing.
func (w *Writer) Close() error {
	w.field(`{"records":`, uint64(w.records))
	if w.unfinished {
		w.line = append(w.line, `,"unfinished":true`...)
	}
	w.line = append(w.line, '}')
	if err := w.flushLine(); err != nil {
		return err
	}
	if err := w.w.Flush(); err != nil {
		return fmt.Errorf("history file: %w", err)
	}
	return nil
}
