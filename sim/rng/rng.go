// Package rng is every random choice of a run: named streams, distributions of
// durations and choosers of keys, the same on every processor.
//
// One root seed makes a run. Each consumer has a stream of its own, derived
// from the seed and the consumer's name, so adding a draw to one never shifts
// another. What must not depend on the order of draws (the latency of a
// message) is drawn from a hash of what it is: see Hash and Dist.
package rng

// Seed is the root seed of a run.
type Seed uint64

// Stream returns the stream named name, for example "client/17/keys".
func (s Seed) Stream(name string) *Stream {
	h := uint64(14695981039346656037)
	for i := 0; i < len(name); i++ {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return &Stream{state: Hash(uint64(s), h)}
}

// Key returns the 64-bit key named name under s, for use with Hash.
func (s Seed) Key(name string) uint64 { return s.Stream(name).state }

// Stream is one consumer's sequence of random numbers.
type Stream struct{ state uint64 }

// Uint64 returns 64 random bits.
func (s *Stream) Uint64() uint64 {
	s.state += 0x9e3779b97f4a7c15
	return mix(s.state)
}

// Float64 returns a number in [0, 1), a multiple of 2^-53.
func (s *Stream) Float64() float64 { return float64(s.Uint64()>>11) / (1 << 53) }

// Uint64n returns a number in [0, n), without bias. REQUIRES: n > 0.
func (s *Stream) Uint64n(n uint64) uint64 {
	for {
		x := s.Uint64()
		r := x % n
		if x-r <= -n {
			return r
		}
	}
}

func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Hash mixes two words into one whose bits are all usable.
func Hash(a, b uint64) uint64 { return mix(mix(a+0x9e3779b97f4a7c15) ^ (b * 0xd6e8feb86659fd93)) }
