// Package vtime runs ordinary goroutine code, with its channels, mutexes and
// timers, in virtual time and with a repeatable outcome.
//
// The code runs in a bubble of testing/synctest: in it the clock of package
// time is virtual and moves only when every goroutine is durably blocked, and
// Settle waits for that state. One goroutine, the driver (the function given to
// Run), pokes the code and looks at what came of it:
//
//	b.Begin(vtime.OrderMatters) // a stimulus starts
//	inbox <- message            // one message, or one batch to one receiver
//	b.Settle()                  // every goroutine has gone as far as it can
//
// # Why the outcome repeats
//
// Within a stimulus the order in which goroutines run could differ between
// runs, and with it what they do. Four things are done about it:
//
//   - GOMAXPROCS is 1 for the run, so that one goroutine runs at a time, and the
//     scheduler takes them from one queue in order.
//   - The garbage collector is off. It runs between two stimuli, when everything
//     is blocked, once the heap has grown.
//   - A goroutine can still be preempted when it has run for 10 ms of wall time,
//     which on a busy machine is soon. So Begin gives the driver a fresh time
//     slice, and Settle looks at a real clock: in a stimulus shorter than 10 ms
//     nothing can have been preempted. A longer one is counted as suspect, and
//     the caller should run again. That holds for stimuli in which order can
//     matter at all. Of those for which the caller knows that it cannot
//     (AnyOrder) no account is kept; Shuffle is there to test that claim.
//   - What remains is the caller's: one stimulus at a time, so that no select
//     ever has two channels ready; no blocking system call within a stimulus (the
//     runtime gives the processor to another goroutine meanwhile); nothing that
//     depends on the order of a map.
//
// # The two clocks
//
// The bubble's clock need not follow the simulator's. AdvanceTo moves it there,
// which runs what timers are due. As long as no timer of the code matters it may
// be left behind: each advance is a stimulus and costs as much.
package vtime
