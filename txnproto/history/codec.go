package history

import "encoding/binary"

// The encoding of a record in a chunk. Numbers are varints; ids, times and keys
// are differences from the record or key before, so that what grows slowly takes a
// byte or two. Every chunk starts from zero and can be read alone.
//
//	commit   tag, Δtxn, Δrequest, client, class, Δbegin, end−begin, writes+1,
//	         number of reads, number of scans,
//	         per read (Δkey, version),
//	         per scan (lo, hi−lo, shard+1, number seen, per seen (Δkey, version))
//	abort    tag, Δtxn
//	install  tag, Δtxn, shard+1, number of writes,
//	         per write (Δkey, version·2 + tombstone, value)
const (
	tagCommit = iota + 1
	tagAbort
	tagInstall
)

// deltas is the state that differences are taken from, the same while writing and
// while reading.
type deltas struct {
	txn     uint64
	request uint64
	end     int64
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
func putSigned(b []byte, v int64) []byte {
	return binary.AppendUvarint(b, zigzag(v))
}

// Upper bounds of encoded sizes, so that a record never has to grow its chunk.
const (
	maxVarint      = binary.MaxVarintLen64
	maxCommitHead  = 1 + 9*maxVarint
	maxReadBytes   = 2 * maxVarint
	maxScanHead    = 4 * maxVarint
	maxInstallHead = 1 + 3*maxVarint
	maxWriteBytes  = 3 * maxVarint
)

func commitBound(c *Commit) int {
	n := maxCommitHead + len(c.Reads)*maxReadBytes
	for i := range c.Scans {
		n += maxScanHead + len(c.Scans[i].Seen)*maxReadBytes
	}
	return n
}

func appendCommit(b []byte, d *deltas, c *Commit) []byte {
	b = append(b, tagCommit)
	b = putSigned(b, int64(uint64(c.Txn)-d.txn))
	b = putSigned(b, int64(uint64(c.Request)-d.request))
	b = binary.AppendUvarint(b, uint64(c.Client))
	b = binary.AppendUvarint(b, uint64(c.Class))
	b = putSigned(b, int64(c.Begin)-d.end)
	b = putSigned(b, int64(c.End-c.Begin))
	b = binary.AppendUvarint(b, uint64(c.Writes+1))
	b = binary.AppendUvarint(b, uint64(len(c.Reads)))
	b = binary.AppendUvarint(b, uint64(len(c.Scans)))
	b = appendReads(b, c.Reads)
	for i := range c.Scans {
		s := &c.Scans[i]
		b = binary.AppendUvarint(b, uint64(s.Lo))
		b = binary.AppendUvarint(b, uint64(s.Hi-s.Lo))
		b = binary.AppendUvarint(b, uint64(s.Shard+1))
		b = binary.AppendUvarint(b, uint64(len(s.Seen)))
		b = appendReads(b, s.Seen)
	}
	d.txn, d.request, d.end = uint64(c.Txn), uint64(c.Request), int64(c.End)
	return b
}

func appendReads(b []byte, reads []Read) []byte {
	var key uint64
	for _, r := range reads {
		b = putSigned(b, int64(uint64(r.Key)-key))
		b = binary.AppendUvarint(b, uint64(r.Version))
		key = uint64(r.Key)
	}
	return b
}

func appendAbort(b []byte, d *deltas, txn TxnID) []byte {
	b = append(b, tagAbort)
	b = putSigned(b, int64(uint64(txn)-d.txn))
	d.txn = uint64(txn)
	return b
}

func appendInstall(b []byte, d *deltas, txn TxnID, shard ShardID, writes []Write) []byte {
	b = append(b, tagInstall)
	b = putSigned(b, int64(uint64(txn)-d.txn))
	b = binary.AppendUvarint(b, uint64(shard+1))
	b = binary.AppendUvarint(b, uint64(len(writes)))
	var key uint64
	for i := range writes {
		w := &writes[i]
		b = putSigned(b, int64(uint64(w.Key)-key))
		v := uint64(w.Version) << 1
		if w.Tombstone {
			v |= 1
		}
		b = binary.AppendUvarint(b, v)
		b = putSigned(b, w.Value)
		key = uint64(w.Key)
	}
	d.txn = uint64(txn)
	return b
}

// cursor reads the records of one chunk. Only encodings made by this process pass
// through it, so a malformed one is a broken invariant and panics by index.
type cursor struct {
	b   []byte
	off int
	d   deltas
}

func (c *cursor) done() bool { return c.off >= len(c.b) }

func (c *cursor) uvarint() uint64 {
	if b := c.b[c.off]; b < 0x80 {
		c.off++
		return uint64(b)
	}
	var v uint64
	for s := uint(0); ; s += 7 {
		b := c.b[c.off]
		c.off++
		v |= uint64(b&0x7f) << s
		if b < 0x80 {
			return v
		}
	}
}

// skip passes over n varints, each of which ends with a byte below 0x80.
func (c *cursor) skip(n int) {
	for n > 0 {
		n -= int(^c.b[c.off] >> 7)
		c.off++
	}
}

func (c *cursor) signed() int64 { return unzigzag(c.uvarint()) }

func (c *cursor) tag() byte {
	t := c.b[c.off]
	c.off++
	return t
}

func (c *cursor) txn() TxnID {
	c.d.txn += uint64(c.signed())
	return TxnID(c.d.txn)
}

// commitHead is a commit record without its reads and scans, which follow it in
// the chunk: reads first, each by read, then scans, each by scanHead.
type commitHead struct {
	Commit
	reads, scans int
}

func (c *cursor) commitHead(h *commitHead) {
	h.Txn = c.txn()
	c.d.request += uint64(c.signed())
	h.Request = RequestID(c.d.request)
	h.Client = uint32(c.uvarint())
	h.Class = uint16(c.uvarint())
	h.Begin = Time(c.d.end + c.signed())
	h.End = h.Begin + Time(c.signed())
	c.d.end = int64(h.End)
	h.Writes = int(c.uvarint()) - 1
	h.reads = int(c.uvarint())
	h.scans = int(c.uvarint())
}

// read decodes the next (key, version) after key prev.
func (c *cursor) read(prev Key) Read {
	k := Key(uint64(prev) + uint64(c.signed()))
	return Read{Key: k, Version: Version(c.uvarint())}
}

// scanHead decodes a scan up to its list and returns the list's length.
func (c *cursor) scanHead(s *Scan) int {
	s.Lo = Key(c.uvarint())
	s.Hi = s.Lo + Key(c.uvarint())
	s.Shard = ShardID(c.uvarint()) - 1
	return int(c.uvarint())
}

// scan decodes a whole scan into s, reusing its list.
func (c *cursor) scan(s *Scan) {
	n := c.scanHead(s)
	s.Seen = s.Seen[:0]
	var key Key
	for range n {
		r := c.read(key)
		s.Seen = append(s.Seen, r)
		key = r.Key
	}
}

// skipScan passes over a scan.
func (c *cursor) skipScan() {
	var s Scan
	c.skip(2 * c.scanHead(&s))
}

func (c *cursor) installHead() (txn TxnID, shard ShardID, writes int) {
	txn = c.txn()
	shard = ShardID(c.uvarint()) - 1
	return txn, shard, int(c.uvarint())
}

// write decodes the next write after key prev.
func (c *cursor) write(prev Key) Write {
	k := Key(uint64(prev) + uint64(c.signed()))
	v := c.uvarint()
	return Write{Key: k, Version: Version(v >> 1), Tombstone: v&1 != 0, Value: c.signed()}
}
