// Package station is queueing stations as plain state machines on the event
// loop: CPU, k identical servers with one first-in-first-out queue, and Disk, a
// log disk whose syncs each cover all writes that wait for one.
//
// Both keep statistics that can be cut to a window: ResetStats starts it, Stats
// reads it at the current time. Work that straddles an edge counts by the part
// inside, so that utilisation never exceeds 1.
package station
