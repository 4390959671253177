// Package keymap holds the two tables that controllers keep by key: a hash map
// to small pool indices and an ordered map. Both allocate only while they grow.
package keymap

import "interleave/txnproto"

// Map maps keys to nonzero 32-bit values, usually indices into the caller's own
// pool. It is a hash table with linear probing, and deletion moves later
// entries of a run back instead of leaving marks (Knuth, The Art of Computer
// Programming vol. 3, 6.4, algorithm R), so it never needs cleaning however
// many keys come and go. The zero Map is empty.
type Map struct {
	slots []slot // length a power of two
	n     int
	shift uint8 // 64 - log2(len(slots))
}

type slot struct {
	key txnproto.Key
	val int32 // 0: free
}

const minSlots = 64

// home is where k's run starts. The multiplier is 2^64 over the golden ratio:
// consecutive keys, the usual ones, fall far apart and evenly.
func (m *Map) home(k txnproto.Key) int {
	return int(uint64(k) * 0x9e3779b97f4a7c15 >> m.shift)
}

// Len returns the number of keys.
func (m *Map) Len() int { return m.n }

// Get returns k's value, 0 when it has none.
func (m *Map) Get(k txnproto.Key) int32 {
	if m.n == 0 {
		return 0
	}
	mask := len(m.slots) - 1
	for i := m.home(k); ; i = (i + 1) & mask {
		s := &m.slots[i]
		if s.val == 0 || s.key == k {
			return s.val
		}
	}
}

// Ref returns where k's value is, to be read or changed; 0 means that k was
// absent. The caller must leave a nonzero value there before it uses the map again.
func (m *Map) Ref(k txnproto.Key) *int32 {
	if 4*(m.n+1) > 3*len(m.slots) {
		m.grow()
	}
	mask := len(m.slots) - 1
	for i := m.home(k); ; i = (i + 1) & mask {
		s := &m.slots[i]
		if s.val == 0 {
			s.key = k
			m.n++
			return &s.val
		}
		if s.key == k {
			return &s.val
		}
	}
}

// Delete removes k, which may be absent.
func (m *Map) Delete(k txnproto.Key) {
	if m.n == 0 {
		return
	}
	mask := len(m.slots) - 1
	i := m.home(k)
	for m.slots[i].key != k || m.slots[i].val == 0 {
		if m.slots[i].val == 0 {
			return
		}
		i = (i + 1) & mask
	}
	m.n--
	// i is a hole; an entry further on whose run started at or before the hole moves in.
	for j := (i + 1) & mask; m.slots[j].val != 0; j = (j + 1) & mask {
		if h := m.home(m.slots[j].key); (j-h)&mask >= (j-i)&mask {
			m.slots[i] = m.slots[j]
			i = j
		}
	}
	m.slots[i].val = 0
}

func (m *Map) grow() {
	old := m.slots
	size := max(minSlots, 2*len(old))
	m.slots = make([]slot, size)
	m.shift = 64
	for ; size > 1; size >>= 1 {
		m.shift--
	}
	mask := len(m.slots) - 1
	for _, s := range old {
		if s.val == 0 {
			continue
		}
		i := m.home(s.key)
		for m.slots[i].val != 0 {
			i = (i + 1) & mask
		}
		m.slots[i] = s
	}
}

// Each calls f for every key, in an order that depends on the map's history:
// for dumps and checks that sort what they get.
func (m *Map) Each(f func(k txnproto.Key, v int32)) {
	for _, s := range m.slots {
		if s.val != 0 {
			f(s.key, s.val)
		}
	}
}
