package memory

import "syscall"

// onHugePages asks for b to be on huge pages. A system that has none, or does not
// give them to those who ask, says so by an error, which changes nothing.
func onHugePages(b []byte) {
	if b = wholePages(b); len(b) > 0 {
		_ = syscall.Madvise(b, syscall.MADV_HUGEPAGE)
	}
}
