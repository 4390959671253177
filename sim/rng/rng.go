// Package rng is every random choice of a run: named streams, distributions of
// durations and choosers of keys, the same on every processor.
//
// One root seed makes a run. Each consumer has a stream of its own, derived
// from the seed and the consumer's name, so adding a draw to one never shifts
// another. What must not depend on the order of draws (the latency of a
// message) is drawn from a hash of what it is: see Hash and Dist.
//
// Equal bits on every processor is a property of the arithmetic, not of luck:
// integers where possible; elementary functions of its own (math's are
// assembly on some processors and compiled to fused instructions on others);
// and every product that meets a sum is converted to float64 first, which the
// language defines as forbidding the fused form.
package rng

import "math/bits"

// Seed is the root seed of a run.
type Seed uint64

// Stream returns the stream named name, for example "client/17/keys".
func (s Seed) Stream(name string) *Stream {
	st := StreamOf(s.Key(name), 0)
	return &st
}

// Key returns the 64-bit key named name under s, for use with Hash and StreamOf.
func (s Seed) Key(name string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return Hash(uint64(s), h)
}

// StreamOf returns stream number n of the family named by key. It is how a
// consumer with many short-lived streams (one for each arrival of an open
// loop) has them without making a name for each.
func StreamOf(key, n uint64) Stream {
	state := Hash(key, n)
	return Stream{state: state, gamma: oddGamma(state ^ golden)}
}

// golden is 2^64 divided by the golden ratio, made odd.
const golden = 0x9e3779b97f4a7c15

// Stream is one consumer's sequence of random numbers.
//
// The generator is SplitMix64 of Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators" (OOPSLA 2014): a Weyl sequence whose terms go
// through Stafford's mixer 13. As there, each stream has an increment of its
// own, so two streams are not pieces of one cycle that could overlap.
type Stream struct{ state, gamma uint64 }

// Uint64 returns 64 random bits.
func (s *Stream) Uint64() uint64 {
	s.state += s.gamma
	return mix(s.state)
}

// Float64 returns a number in [0, 1), a multiple of 2^-53.
func (s *Stream) Float64() float64 { return float64(s.Uint64()>>11) / (1 << 53) }

// Uint64n returns a number in [0, n), without bias. REQUIRES: n > 0.
//
// It multiplies instead of dividing (Lemire, "Fast random integer generation in
// an interval", 2019): a division is needed only when the low word of the
// product falls below n.
func (s *Stream) Uint64n(n uint64) uint64 {
	hi, lo := bits.Mul64(s.Uint64(), n)
	if lo < n {
		for reject := -n % n; lo < reject; {
			hi, lo = bits.Mul64(s.Uint64(), n)
		}
	}
	return hi
}

// oddGamma makes an increment of z: odd, and with enough changes between
// neighbouring bits that the Weyl sequence it makes is not a regular one.
func oddGamma(z uint64) uint64 {
	z = mix(z) | 1
	if bits.OnesCount64(z^z>>1) < 24 {
		z ^= 0xaaaaaaaaaaaaaaaa
	}
	return z
}

func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Hash mixes two words into one whose bits are all usable.
func Hash(a, b uint64) uint64 { return mix(mix(a+golden) ^ (b * 0xd6e8feb86659fd93)) }
