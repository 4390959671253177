//go:build unix && !aix

package vtime

import (
	"time"

	"golang.org/x/sys/unix"
)

// realClock reads the monotonic clock of the machine. time.Now would give the
// bubble's, so it asks the kernel.
func realClock() (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
