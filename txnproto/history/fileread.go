package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// maxLineBytes bounds a line of a history file: a scan of millions of rows.
const maxLineBytes = 1 << 28

// Reader reads a history file. Its errors name the line and the field.
type Reader struct {
	Header Header

	in      *bufio.Scanner
	line    int
	records int
	parse   lineParser
	c       Commit
	writes  []Write
}

// NewReader reads the header.
func NewReader(r io.Reader) (*Reader, error) {
	fr := &Reader{in: bufio.NewScanner(r)}
	fr.in.Buffer(make([]byte, 1<<16), maxLineBytes)
	if !fr.next() {
		if err := fr.in.Err(); err != nil {
			return nil, fr.fail(err)
		}
		return nil, errors.New("history file: empty")
	}
	dec := json.NewDecoder(bytes.NewReader(fr.in.Bytes()))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&fr.Header); err != nil {
		return nil, fr.fail(fmt.Errorf("header: %w", err))
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fr.fail(errors.New("header: more than one object on the line"))
	}
	if fr.Header.Format != FormatVersion {
		return nil, fr.fail(fmt.Errorf("header: field history: format %d: want %d", fr.Header.Format, FormatVersion))
	}
	return fr, nil
}

func (r *Reader) next() bool {
	r.line++
	return r.in.Scan()
}

func (r *Reader) fail(err error) error {
	return fmt.Errorf("history file: line %d: %w", r.line, err)
}

// ReadAll gives every record to sink in order. On an error, those before it have
// been given. It is called once.
func (r *Reader) ReadAll(sink Sink) error {
	for r.next() {
		last, err := r.record(sink)
		if err != nil {
			return r.fail(err)
		}
		if last {
			if r.next() {
				return r.fail(errors.New("there is more after the last line"))
			}
			return r.readError()
		}
		r.records++
	}
	if err := r.readError(); err != nil {
		return err
	}
	return fmt.Errorf("history file: cut short after line %d: no closing line", r.line-1)
}

func (r *Reader) readError() error {
	if err := r.in.Err(); err != nil {
		return r.fail(err)
	}
	return nil
}

// The fields of a record's line, as bits.
const (
	fieldCommit = 1 << iota
	fieldAbort
	fieldInstall
	fieldRecords
	fieldRequest
	fieldClient
	fieldClass
	fieldBegin
	fieldEnd
	fieldWrites
	fieldReads
	fieldScans
	fieldShard
	fieldUnfinished

	kindFields    = fieldCommit | fieldAbort | fieldInstall | fieldRecords
	commitFields  = fieldCommit | fieldRequest | fieldClient | fieldClass | fieldBegin | fieldEnd | fieldWrites | fieldReads | fieldScans
	installFields = fieldInstall | fieldShard | fieldWrites
	closingFields = fieldRecords | fieldUnfinished
)

// rawRecord is a line before its kind is known to be complete.
type rawRecord struct {
	has     int
	txn     uint64
	records uint64
	shard   int64
	count   int64 // writes of a commit
	counted bool  // writes was a number
	cut     bool
}

// record reads the line and gives it to sink. last is true for the closing line.
func (r *Reader) record(sink Sink) (last bool, err error) {
	raw := rawRecord{count: WritesUnknown, shard: int64(AllShards)}
	r.c = Commit{Reads: r.c.Reads[:0], Scans: r.c.Scans[:0]}
	r.writes = r.writes[:0]
	r.parse.reset(r.in.Bytes())
	err = r.parse.object(func(name string) error { return r.recordField(name, &raw) })
	if err == nil {
		err = r.parse.end()
	}
	if err != nil {
		return false, err
	}
	allowed := 0
	switch raw.has & kindFields {
	case fieldCommit:
		allowed = commitFields
	case fieldAbort:
		allowed = fieldAbort
	case fieldInstall:
		allowed = installFields
	case fieldRecords:
		allowed = closingFields
	default:
		return false, errors.New("want exactly one of the fields commit, abort, install, records")
	}
	if raw.has&^allowed != 0 {
		return false, errors.New("a field does not belong to this kind of record")
	}
	if raw.has&fieldWrites != 0 && raw.counted != (raw.has&fieldCommit != 0) {
		return false, errors.New("field writes: want a number in a commit, a list in an install")
	}
	switch {
	case raw.has&fieldCommit != 0:
		r.c.Txn, r.c.Writes = TxnID(raw.txn), int(raw.count)
		sink.Commit(&r.c)
	case raw.has&fieldAbort != 0:
		sink.Abort(TxnID(raw.txn))
	case raw.has&fieldInstall != 0:
		sink.Install(TxnID(raw.txn), ShardID(raw.shard), r.writes)
	default:
		if raw.records != uint64(r.records) {
			return false, fmt.Errorf("field records: says %d records; there are %d", raw.records, r.records)
		}
		if raw.cut {
			sink.MarkUnfinished()
		}
		return true, nil
	}
	return false, nil
}

// recordField parses the value of one field.
func (r *Reader) recordField(name string, raw *rawRecord) (err error) {
	p := &r.parse
	bit := 0
	var n uint64
	switch name {
	case "commit":
		bit = fieldCommit
		raw.txn, err = p.number(math.MaxUint64)
	case "abort":
		bit = fieldAbort
		raw.txn, err = p.number(math.MaxUint64)
	case "install":
		bit = fieldInstall
		raw.txn, err = p.number(math.MaxUint64)
	case "records":
		bit = fieldRecords
		raw.records, err = p.number(math.MaxUint64)
	case "request":
		bit = fieldRequest
		n, err = p.number(math.MaxUint64)
		r.c.Request = RequestID(n)
	case "client":
		bit = fieldClient
		n, err = p.number(math.MaxUint32)
		r.c.Client = uint32(n)
	case "class":
		bit = fieldClass
		n, err = p.number(math.MaxUint16)
		r.c.Class = uint16(n)
	case "begin_ns":
		bit = fieldBegin
		r.c.Begin, err = p.time()
	case "end_ns":
		bit = fieldEnd
		r.c.End, err = p.time()
	case "writes":
		bit = fieldWrites
		if p.peek() == '[' {
			err = p.array(r.writeItem)
			break
		}
		raw.counted = true
		n, err = p.number(math.MaxInt32)
		raw.count = int64(n)
	case "reads":
		bit = fieldReads
		err = p.array(func() error { return p.readPair(&r.c.Reads) })
	case "scans":
		bit = fieldScans
		err = p.array(r.scanItem)
	case "shard":
		bit = fieldShard
		n, err = p.number(math.MaxInt32 - 1)
		raw.shard = int64(n)
	case "unfinished":
		bit = fieldUnfinished
		raw.cut = p.word("true")
		if !raw.cut && !p.word("false") {
			err = fmt.Errorf("want true or false, got %s", p.got())
		}
	default:
		return fmt.Errorf("unknown field %q", name)
	}
	if err != nil {
		return fmt.Errorf("field %s: %w", name, err)
	}
	if raw.has&bit != 0 {
		return fmt.Errorf("field %s: given twice", name)
	}
	raw.has |= bit
	return nil
}

// writeItem parses one [key, version, value] of an install.
func (r *Reader) writeItem() (err error) {
	p := &r.parse
	var w Write
	var n uint64
	if err = p.want('['); err != nil {
		return err
	}
	if n, err = p.number(math.MaxUint64); err != nil {
		return err
	}
	w.Key = Key(n)
	if err = p.want(','); err != nil {
		return err
	}
	if n, err = p.number(math.MaxInt64); err != nil {
		return err
	}
	w.Version = Version(n)
	if err = p.want(','); err != nil {
		return err
	}
	if p.word("null") {
		w.Tombstone = true
	} else if w.Value, err = p.signed(); err != nil {
		return err
	}
	r.writes = append(r.writes, w)
	return p.want(']')
}

// scanItem parses one scan of a commit.
func (r *Reader) scanItem() error {
	p := &r.parse
	s := Scan{Shard: AllShards}
	seen := 0
	err := p.object(func(name string) (err error) {
		bit := 0
		var n uint64
		switch name {
		case "lo":
			bit = 1
			n, err = p.number(math.MaxUint64)
			s.Lo = Key(n)
		case "hi":
			bit = 2
			n, err = p.number(math.MaxUint64)
			s.Hi = Key(n)
		case "shard":
			bit = 4
			n, err = p.number(math.MaxInt32 - 1)
			s.Shard = ShardID(n)
		case "seen":
			bit = 8
			err = p.array(func() error { return p.readPair(&s.Seen) })
		default:
			return fmt.Errorf("unknown field %q", name)
		}
		if err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
		if seen&bit != 0 {
			return fmt.Errorf("field %s: given twice", name)
		}
		seen |= bit
		return nil
	})
	if err != nil {
		return err
	}
	if seen&3 != 3 {
		return errors.New("a scan wants the fields lo and hi")
	}
	r.c.Scans = append(r.c.Scans, s)
	return nil
}
