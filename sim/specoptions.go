package sim

import "io"

// Options are what the caller of Run wants beside the result. None of them
// changes what happens in the run.
type Options struct {
	// Progress is told now and then how much of total is done: requests, or
	// virtual nanoseconds when the run ends by time. It may be nil.
	Progress func(done, total int64)
	// History receives the recorded history; nil records none beyond the checker's need.
	History io.Writer
	// Trace receives one line for everything that enters the digest, in order:
	// where two runs differ first is where their traces do. It may be nil.
	Trace io.Writer
	// Wall adds the wall-clock figures to the result.
	Wall bool
}
