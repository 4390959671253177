package history

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// scope says how much of a history the chunks given to the checker are.
type scope struct {
	partial bool // something came before or is still to come
	cut     bool // installs of committed transactions, and ends of others, may be missing
}

// stats are sums over chunks.
type stats struct {
	commits, others, reads, scans, writes int
	minTxn, maxTxn                        TxnID
	minKey, maxKey                        Key
}

func sumStats(chunks []chunk) stats {
	s := stats{minTxn: ^TxnID(0), minKey: ^Key(0)}
	for i := range chunks {
		c := &chunks[i]
		s.commits += c.commits
		s.others += c.others
		s.reads += c.reads
		s.scans += c.scans
		s.writes += c.writes
		s.minTxn, s.maxTxn = min(s.minTxn, c.minTxn), max(s.maxTxn, c.maxTxn)
		s.minKey, s.maxKey = min(s.minKey, c.minKey), max(s.maxKey, c.maxKey)
	}
	return s
}

// Values of the writer column. Nodes are numbered from 0: committed transactions
// in order of their commit records, then all others.
const (
	superseded = 1 << 31   // flag: the same transaction overwrote the version
	initialTxn = 1<<31 - 1 // wrote the initial version, the first entry of each key
	none       = ^uint32(0)
)

// outside flags a slot: the read saw a version that is not among those known, which
// comes after the slot's and before the next.
const outside = 1 << 31

// unknownWrites marks a transaction that did not say how many versions it
// installs. Far from zero: installs are subtracted from it.
const unknownWrites = math.MinInt32 / 2

// columns is a history laid out for checking: transactions as dense nodes, and the
// versions of each key as a chain of entries in version order.
type columns struct {
	chunks []chunk
	stats  stats

	txns    table
	ids     []TxnID // by node
	nCommit uint32  // nodes below it are committed
	aborted []bool  // by node − nCommit: an abort was recorded
	missing []int32 // by committed node: versions said to be installed and not seen yet

	keys   keyTable
	start  []uint32 // by key id: its first entry, the initial version; one more at the end
	ver    []uint64 // by entry: version·2 + tombstone, ascending within a key
	writer []uint32 // by entry: node, perhaps superseded, or initialTxn

	writesBy, readsBy partition
	buffer            []access // of the writes, then of the reads
	reads             []access // resolved: at is the slot
	scans             []scanRef
}

// scanRef is where a scan is encoded.
type scanRef struct {
	node  uint32
	chunk uint32
	off   uint32
}

// eachRecord decodes every record. Callbacks must consume what follows a head.
func (c *columns) eachRecord(commit func(cur *cursor, chunk int, h *commitHead), abort func(TxnID),
	install func(cur *cursor, txn TxnID, n int),
) {
	var h commitHead
	for i := range c.chunks {
		cur := cursor{b: c.chunks[i].data}
		for !cur.done() {
			switch t := cur.tag(); t {
			case tagCommit:
				cur.commitHead(&h)
				commit(&cur, i, &h)
			case tagAbort:
				abort(cur.txn())
			case tagInstall:
				txn, _, n := cur.installHead()
				install(&cur, txn, n)
			default:
				panic(fmt.Sprintf("history: unknown tag %d in a chunk at byte %d", t, cur.off-1))
			}
		}
	}
}

func skipReads(cur *cursor, h *commitHead) {
	cur.skip(2 * h.reads)
	for range h.scans {
		cur.skipScan()
	}
}

func skipWrites(cur *cursor, n int) { cur.skip(3 * n) }

// load fills all columns but those of reads. What contradicts itself goes to f.
func (c *columns) load(f *found, sc scope) {
	c.stats = sumStats(c.chunks)
	if 3*uint64(c.stats.writes)+uint64(c.stats.reads) >= 1<<31 { // entries and slots have 31 bits
		panic(fmt.Sprintf("history: %d reads and %d writes in one window; the limit is reached: set a smaller WindowBytes",
			c.stats.reads, c.stats.writes))
	}
	c.loadKeys()
	c.loadTxns(f)
	c.loadChains(f)
	if !sc.partial && !sc.cut {
		for n, m := range c.missing {
			if m != 0 && m > unknownWrites/2 {
				what := "fewer"
				if m < 0 {
					m, what = -m, "more"
				}
				f.inconsistent(c.ids[n], fmt.Sprintf("%v installed %s versions than its commit said, by %d", c.ids[n], what, m))
			}
		}
	}
	c.missing = nil
}

// loadKeys numbers the written keys in key order.
func (c *columns) loadKeys() {
	st := &c.stats
	if st.writes == 0 {
		return
	}
	if c.keys.tryInterval(st.minKey, st.maxKey, st.writes) {
		return
	}
	if c.keys.tryBits(st.minKey, st.maxKey, st.writes) {
		c.eachWrittenKey(c.keys.mark)
		c.keys.marked()
		return
	}
	all := make([]Key, 0, st.writes)
	c.eachWrittenKey(func(k Key) { all = append(all, k) })
	slices.Sort(all)
	c.keys.list(slices.Clone(slices.Compact(all)))
}

func (c *columns) eachWrittenKey(visit func(Key)) {
	c.eachRecord(
		func(cur *cursor, _ int, h *commitHead) { skipReads(cur, h) },
		func(TxnID) {},
		func(cur *cursor, _ TxnID, n int) {
			var key Key
			for range n {
				key = cur.write(key).Key
				visit(key)
			}
		})
}

// loadTxns numbers the transactions, committed ones first, and sizes the partitions.
func (c *columns) loadTxns(f *found) {
	st := &c.stats
	c.txns.size(uint64(st.minTxn), uint64(st.maxTxn), st.commits+st.others)
	c.ids = make([]TxnID, 0, st.commits)
	c.missing = make([]int32, 0, st.commits)
	c.writesBy, c.readsBy = newPartition(c.keys.span), newPartition(c.keys.span)
	var requests bitset
	requests.size(st.commits)
	var others []TxnID // aborted
	c.eachRecord(
		func(cur *cursor, _ int, h *commitHead) {
			c.countReads(cur, h)
			if !c.txns.put(uint64(h.Txn), uint32(len(c.ids))) {
				f.inconsistent(h.Txn, fmt.Sprintf("%v committed twice", h.Txn))
			}
			if h.Request != 0 && !requests.add(uint64(h.Request)) {
				f.inconsistent(h.Txn, fmt.Sprintf("request %d committed again as %v", h.Request, h.Txn))
			}
			if h.End < h.Begin {
				f.inconsistent(h.Txn, fmt.Sprintf("%v ended at %d ns, before it began at %d ns", h.Txn, h.End, h.Begin))
			}
			// A second commit of one transaction still gets a node: slots count on it.
			c.ids = append(c.ids, h.Txn)
			m := int32(unknownWrites)
			if h.Writes != WritesUnknown {
				m = int32(min(h.Writes, math.MaxInt32/2))
			}
			c.missing = append(c.missing, m)
		},
		func(t TxnID) { others = append(others, t) },
		func(cur *cursor, _ TxnID, n int) {
			var key Key
			for range n {
				key = cur.write(key).Key
				at, _ := c.keys.place(key)
				c.writesBy.count(at)
			}
		})
	c.nCommit = uint32(len(c.ids))
	for _, t := range others {
		if n, ok := c.txns.get(uint64(t)); ok && n < c.nCommit {
			f.inconsistent(t, fmt.Sprintf("%v both committed and aborted", t))
			continue
		}
		c.aborted[c.other(t)-c.nCommit] = true
	}
}

func (c *columns) countReads(cur *cursor, h *commitHead) {
	var key Key
	for range h.reads {
		key = cur.read(key).Key
		if at, ok := c.keys.place(key); ok {
			c.readsBy.count(at)
		}
	}
	for range h.scans {
		cur.skipScan()
	}
}

// other returns the node of a transaction that is not committed, making it if new.
func (c *columns) other(t TxnID) uint32 {
	if n, ok := c.txns.get(uint64(t)); ok {
		return n
	}
	n := uint32(len(c.ids))
	c.txns.put(uint64(t), n)
	c.ids = append(c.ids, t)
	c.aborted = append(c.aborted, false)
	if n >= maxNodes {
		panic(fmt.Sprintf("history: more than %d transactions in one window: set a smaller WindowBytes", maxNodes))
	}
	return n
}

// loadChains places the versions of each key in order.
func (c *columns) loadChains(f *found) {
	total := c.writesBy.open()
	c.buffer = make([]access, max(total, c.readsBy.open()))
	all := c.buffer[:total]
	c.eachRecord(
		func(cur *cursor, _ int, h *commitHead) { skipReads(cur, h) },
		func(TxnID) {},
		func(cur *cursor, txn TxnID, n int) {
			node := c.other(txn)
			if node < c.nCommit {
				c.missing[node] -= int32(n)
			}
			var key Key
			for range n {
				w := cur.write(key)
				key = w.Key
				at, _ := c.keys.place(key)
				v := uint64(w.Version) << 1
				if w.Tombstone {
					v |= 1
				}
				c.writesBy.put(all, access{version: v, at: at, node: node})
			}
		})
	n := uint32(c.keys.n)
	c.start = make([]uint32, n+1)
	c.ver = make([]uint64, total+n)
	c.writer = make([]uint32, total+n)
	next := uint32(0) // entry
	fill := make([]uint32, 1<<c.writesBy.shift)
	for b := range c.writesBy.fill {
		lo, hi := c.writesBy.places(b)
		next = c.placeBucket(c.writesBy.bucket(all, b), c.keys.from(lo), c.keys.from(hi), next, fill)
	}
	c.start[n] = next
	c.orderChains(f)
}

// placeBucket lays out the chains of the keys from lo to hi from entry next on, and
// returns the entry after them. fill has room for a number per key.
func (c *columns) placeBucket(writes []access, lo, hi, next uint32, fill []uint32) uint32 {
	fill = fill[:hi-lo]
	clear(fill)
	for i := range writes {
		id, _ := c.keys.number(writes[i].at)
		writes[i].at = id - lo
		fill[id-lo]++
	}
	for i, n := range fill {
		c.start[lo+uint32(i)] = next
		c.writer[next] = initialTxn
		fill[i] = next + 1
		next += n + 1
	}
	for i := range writes {
		w := &writes[i]
		p := fill[w.at]
		fill[w.at] = p + 1
		c.ver[p], c.writer[p] = w.version, w.node
	}
	return next
}

// orderChains sorts each chain, flags superseded versions and reports versions
// that were installed twice or in place of the initial one.
func (c *columns) orderChains(f *found) {
	lastKey := make([]uint32, len(c.ids)) // by node: 1 + the key id whose chain it was last met in
	for id := range uint32(c.keys.n) {
		lo, hi := c.start[id]+1, c.start[id+1]
		c.sortChain(lo, hi)
		prev := uint64(0)
		for p := lo; p < hi; p++ {
			if v := c.ver[p] >> 1; v == prev {
				t := c.ids[c.writer[p]]
				what := "which was installed before"
				if v == 0 {
					what = "which is the initial state"
				}
				f.inconsistent(t, fmt.Sprintf("%v installed %s at version %d, %s", t, f.key(c.keys.key(id)), v, what))
			} else {
				prev = v
			}
		}
		for p := hi; p > lo; p-- {
			w := c.writer[p-1]
			if lastKey[w] == id+1 {
				c.writer[p-1] |= superseded
			}
			lastKey[w] = id + 1
		}
	}
}

func (c *columns) sortChain(lo, hi uint32) {
	ver, wr := c.ver, c.writer
	for p := lo + 1; p < hi; p++ {
		if ver[p] >= ver[p-1] {
			continue
		}
		if hi-lo > 64 {
			sort.Stable(chainOrder{ver[lo:hi], wr[lo:hi]})
			return
		}
		v, w := ver[p], wr[p]
		q := p
		for ; q > lo && ver[q-1] > v; q-- {
			ver[q], wr[q] = ver[q-1], wr[q-1]
		}
		ver[q], wr[q] = v, w
	}
}

// chainOrder sorts the entries of one key by version.
type chainOrder struct {
	ver    []uint64
	writer []uint32
}

func (o chainOrder) Len() int           { return len(o.ver) }
func (o chainOrder) Less(i, j int) bool { return o.ver[i] < o.ver[j] }
func (o chainOrder) Swap(i, j int) {
	o.ver[i], o.ver[j] = o.ver[j], o.ver[i]
	o.writer[i], o.writer[j] = o.writer[j], o.writer[i]
}

// find returns the entry of the key with the greatest version not above v, and
// whether it is v's own.
func (c *columns) find(id uint32, v Version) (uint32, bool) {
	lo, hi := c.start[id], c.start[id+1]
	// Versions mostly count installs, so an entry's place is its version.
	if uint64(v) < uint64(hi-lo) {
		if p := lo + uint32(v); c.ver[p]>>1 == uint64(v) {
			return p, true
		}
	}
	n := sort.Search(int(hi-lo), func(i int) bool { return c.ver[lo+uint32(i)]>>1 > uint64(v) })
	p := lo + uint32(n) - 1
	return p, c.ver[p]>>1 == uint64(v)
}

// next returns the first entry after p in its chain whose version has a place in
// the version order.
func (c *columns) next(p uint32) (uint32, bool) {
	for q := p + 1; q < uint32(len(c.writer)); q++ {
		w := c.writer[q]
		if w < c.nCommit {
			return q, true
		}
		if w == initialTxn {
			break
		}
	}
	return 0, false
}

// keyOf returns the key of an entry.
func (c *columns) keyOf(p uint32) Key {
	id := sort.Search(c.keys.n, func(i int) bool { return c.start[i+1] > p })
	return c.keys.key(uint32(id))
}

// version returns the version of an entry.
func (c *columns) version(p uint32) Version { return Version(c.ver[p] >> 1) }
