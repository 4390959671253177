// Package memory arranges with the processor and the operating system that the
// large tables of a run are near when they are looked up: a row picked at random
// among millions costs a wait for main memory otherwise, and a second one for the
// page tables that say where it is.
//
// All of it is a hint: nothing that a program can observe, but for the time it
// takes, depends on it.
package memory

import "unsafe"

// lineBytes is the size of a cache line on the processors this runs on.
const lineBytes = 64

// Prefetch asks for the memory of *p, which will be read soon; of a large object,
// its first and last cache line only.
func Prefetch[T any](p *T) {
	first := unsafe.Pointer(p)
	line(first)
	if last := unsafe.Add(first, unsafe.Sizeof(*p)-1); uintptr(first)/lineBytes != uintptr(last)/lineBytes {
		line(last)
	}
}

// hugePageBytes is the size of a huge page on the processors this runs on.
const hugePageBytes = 2 << 20

// Make returns n zero elements, as make does, which where the system offers it
// lie on huge pages if they are many.
func Make[T any](n int) []T {
	s := make([]T, n)
	if bytes := uintptr(n) * unsafe.Sizeof(*new(T)); bytes >= 2*hugePageBytes {
		onHugePages(unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), bytes))
	}
	return s
}

// wholePages returns the part of b that covers huge pages entirely.
func wholePages(b []byte) []byte {
	at := uintptr(unsafe.Pointer(&b[0]))
	skip := -at & (hugePageBytes - 1)
	if skip >= uintptr(len(b)) {
		return nil
	}
	b = b[skip:]
	return b[:len(b)&^(hugePageBytes-1)]
}
