package memory

import (
	"testing"
	"unsafe"
)

// TestMake: the elements are there, zero and writable, on huge pages or not.
func TestMake(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 2*hugePageBytes/8 - 1, 2 * hugePageBytes / 8, 5*hugePageBytes/8 + 3} {
		s := Make[uint64](n)
		if len(s) != n {
			t.Fatalf("Make(%d) has %d elements", n, len(s))
		}
		for i := range s {
			if s[i] != 0 {
				t.Fatalf("Make(%d): element %d is %d", n, i, s[i])
			}
			s[i] = uint64(i)
		}
		for i := range s {
			Prefetch(&s[i])
			if s[i] != uint64(i) {
				t.Fatalf("Make(%d): element %d reads %d", n, i, s[i])
			}
		}
	}
}

// TestWholePages: what is asked for begins and ends at pages, lies inside, and
// leaves out less than a page at either end.
func TestWholePages(t *testing.T) {
	all := make([]byte, 6*hugePageBytes)
	start := uintptr(unsafe.Pointer(&all[0]))
	for _, c := range []struct{ from, to int }{
		{0, len(all)},
		{1, len(all)},
		{4096, 3*hugePageBytes + 17},
		{hugePageBytes - 1, len(all) - 1},
		{5, hugePageBytes},
	} {
		w := wholePages(all[c.from:c.to])
		if len(w) == 0 {
			if c.to-c.from >= 2*hugePageBytes {
				t.Errorf("nothing of %d bytes", c.to-c.from)
			}
			continue
		}
		at := uintptr(unsafe.Pointer(&w[0]))
		before, after := int(at-start)-c.from, c.to-int(at-start)-len(w)
		if at%hugePageBytes != 0 || len(w)%hugePageBytes != 0 || before < 0 || before >= hugePageBytes || after < 0 || after >= hugePageBytes {
			t.Errorf("[%d, %d): %d bytes at %#x, %d left before and %d after", c.from, c.to, len(w), at, before, after)
		}
	}
}
