//go:build !unix || aix

package vtime

import "time"

// realClock says that there is none: time.Now is the bubble's clock, and the
// standard library has no other that is portable. Runs are not watched then.
func realClock() (time.Duration, bool) { return 0, false }
