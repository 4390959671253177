package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// grace is how long runs have to hand over what they have after a signal.
const grace = 900 * time.Millisecond

// interruptible returns a context that ends with the first SIGINT, SIGTERM or
// SIGHUP (the terminal was closed).
// The second one ends the process as usual, but not a worker: it hears of one
// Ctrl-C twice, from the terminal and from its parent.
func interruptible(args []string) (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup asks to go on
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	if len(args) == 0 || args[0] != workerName {
		context.AfterFunc(ctx, stop)
	}
	return ctx, stop
}
