//go:build !amd64 && !arm64

package memory

import "unsafe"

// line does nothing: this processor has no instruction for it that we know.
func line(unsafe.Pointer) {}
