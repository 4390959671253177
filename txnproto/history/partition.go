package history

// access is one read or write on its way from the recording to the chains.
type access struct {
	version uint64 // of a write: version·2 + tombstone
	at      uint32 // place of the key; of a resolved read: its slot
	node    uint32
}

// Sizes of partitions: keys of one bucket and their chains should fit the second
// level cache, and the buckets being filled its translation buffer.
const (
	bucketPlaces = 4096
	maxBuckets   = 1024
)

// partition sorts accesses roughly by key before they are looked up: going through
// a million keys in the order of requests would miss the cache at every step. It
// is a counting sort over buckets of neighbouring places, stable within each.
type partition struct {
	shift uint
	fill  []uint32 // by bucket: how many it gets, then where the next goes
}

func newPartition(span int) partition {
	shift := uint(0)
	for 1<<shift < bucketPlaces || span>>shift >= maxBuckets {
		shift++
	}
	return partition{shift: shift, fill: make([]uint32, span>>shift+1)}
}

func (p *partition) count(at uint32) { p.fill[at>>p.shift]++ }

// open turns counts into places and returns their sum.
func (p *partition) open() uint32 {
	total := uint32(0)
	for i, n := range p.fill {
		p.fill[i] = total
		total += n
	}
	return total
}

// put places an access.
func (p *partition) put(all []access, a access) {
	b := a.at >> p.shift
	i := p.fill[b]
	p.fill[b] = i + 1
	all[i] = a
}

// bucket returns the accesses of bucket b once all are placed.
func (p *partition) bucket(all []access, b int) []access {
	lo := uint32(0)
	if b > 0 {
		lo = p.fill[b-1]
	}
	return all[lo:p.fill[b]]
}

// places returns where the keys of bucket b begin and end.
func (p *partition) places(b int) (lo, hi uint64) {
	return uint64(b) << p.shift, uint64(b+1) << p.shift
}
