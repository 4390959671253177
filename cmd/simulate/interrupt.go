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

// interruptible returns a context that ends with the first SIGINT or SIGTERM;
// the second one ends the process as usual.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
