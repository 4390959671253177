//go:build !linux

package memory

// onHugePages does nothing: here the system decides alone.
func onHugePages([]byte) {}
