package reports

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strconv"

	"interleave/txnproto"
)

// digestBuffer is how much is gathered before it is hashed.
const digestBuffer = 4096

// digestRecord bounds the bytes of one record.
const digestRecord = 64

// digest is the SHA-256 of everything that happened: every request's outcome in
// order of completion and every version installed, in order of installation.
// The records have fixed lengths and a leading letter, so that no two sequences
// of records make the same bytes.
type digest struct {
	h     hash.Hash
	buf   []byte
	line  []byte
	trace func([]byte)
}

func (d *digest) init(trace func([]byte)) {
	d.h = sha256.New()
	d.buf = make([]byte, 0, digestBuffer)
	d.trace = trace
}

// room makes place for one record.
func (d *digest) room() {
	if len(d.buf)+digestRecord > cap(d.buf) {
		d.h.Write(d.buf)
		d.buf = d.buf[:0]
	}
}

func (d *digest) request(r *txnproto.RequestRecord) {
	d.room()
	le := binary.LittleEndian
	b := append(d.buf, 'R', byte(r.Ending), byte(r.Reason))
	b = le.AppendUint32(b, uint32(r.Attempts))
	b = le.AppendUint64(b, uint64(r.Request))
	b = le.AppendUint64(b, uint64(r.Txn))
	b = le.AppendUint64(b, uint64(r.Arrival))
	b = le.AppendUint64(b, uint64(r.Begin))
	b = le.AppendUint64(b, uint64(r.End))
	d.buf = b
	if d.trace != nil {
		d.traceRequest(r)
	}
}

func (d *digest) install(shard txnproto.ShardID, index uint64, txn txnproto.TxnID, key txnproto.Key, v txnproto.Version) {
	d.room()
	le := binary.LittleEndian
	b := append(d.buf, 'I')
	b = le.AppendUint32(b, uint32(shard))
	b = le.AppendUint64(b, index)
	b = le.AppendUint64(b, uint64(txn))
	b = le.AppendUint64(b, uint64(key))
	b = le.AppendUint64(b, uint64(v))
	d.buf = b
	if d.trace != nil {
		l := append(d.line[:0], "install "...)
		l = append(l, shard.String()...)
		l = appendNamed(l, " index ", index)
		l = appendNamed(l, " T", uint64(txn))
		l = appendNamed(l, " key ", uint64(key))
		l = appendNamed(l, " version ", uint64(v))
		d.line = append(l, '\n')
		d.trace(d.line)
	}
}

func (d *digest) traceRequest(r *txnproto.RequestRecord) {
	l := appendNamed(d.line[:0], "request ", uint64(r.Request))
	l = appendNamed(l, " client ", uint64(r.Client))
	l = append(l, ' ')
	l = append(l, r.Ending.String()...)
	l = appendNamed(l, " T", uint64(r.Txn))
	l = appendNamed(l, " attempts ", uint64(r.Attempts))
	l = append(l, " last-abort "...)
	l = append(l, r.Reason.String()...)
	l = appendNamed(l, " arrival ", uint64(r.Arrival))
	l = appendNamed(l, " begin ", uint64(r.Begin))
	l = appendNamed(l, " end ", uint64(r.End))
	d.line = append(l, '\n')
	d.trace(d.line)
}

func appendNamed(b []byte, name string, n uint64) []byte {
	return strconv.AppendUint(append(b, name...), n, 10)
}

// sum returns the digest of the records so far; more may follow.
func (d *digest) sum() string {
	d.h.Write(d.buf)
	d.buf = d.buf[:0]
	return hex.EncodeToString(d.h.Sum(nil))
}
