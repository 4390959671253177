//go:build amd64 || arm64

package memory

import "unsafe"

// line asks for the cache line at p.
//
//go:noescape
func line(p unsafe.Pointer)
