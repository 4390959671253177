package station

import (
	"fmt"
	"math/bits"
	"time"

	"interleave/sim/event"
	"interleave/sim/rng"
)

// DiskConfig describes a log disk.
type DiskConfig struct {
	// Sync is the time of one sync, its bytes not counted.
	Sync rng.Dist
	// BytesPerSecond adds the time the bytes of a sync take; 0 is no limit.
	BytesPerSecond int64
	// Key is what the sync times are drawn from, by hash: sync number n of
	// the disk takes Sync.At(rng.Hash(Key, n)), whatever it holds.
	Key uint64
}

// Validate reports what is wrong with c.
func (c DiskConfig) Validate() error {
	if c.BytesPerSecond < 0 {
		return fmt.Errorf("bytes-per-second: %d: want 0 (no limit) or more", c.BytesPerSecond)
	}
	return nil
}

// Disk is a log disk with group commit. A write is over when a sync that began
// after it is: one that arrives while a sync is in progress waits, and the next
// sync, which begins as soon as that one ends, covers all that waited.
type Disk struct {
	loop *event.Loop
	cfg  DiskConfig
	slow float64
	sync event.HandlerID

	// waiting takes arrivals; syncing is what the sync in progress covers;
	// over is the batch whose handlers are being called.
	waiting, syncing, over []write
	busy                   bool
	timer                  event.Timer // the end of the sync in progress
	began                  event.Time
	length                 time.Duration // of the sync in progress
	number                 uint64        // syncs begun
	epoch                  uint64        // crashes; a batch stops being reported at one
	lastShare              time.Duration

	stats     DiskStats // of the window; Busy of the finished syncs, Queued up to areaAt
	from      event.Time
	busyFrom  event.Time // from when on the sync in progress counts
	queuedTil event.Time
}

type write struct {
	bytes int64
	h     event.HandlerID
	arg   uint64
}

// BatchBuckets is the length of DiskStats.Batches.
const BatchBuckets = 20

// DiskStats is what a Disk did in a window.
type DiskStats struct {
	Window   time.Duration
	Syncs    uint64        // finished
	Writes   uint64        // covered by those
	Bytes    int64         // in those
	Busy     time.Duration // in which a sync was in progress
	Queued   time.Duration // integral of the number of writes waiting for a sync to begin
	MaxQueue int
	MaxBatch int
	// Batches counts the finished syncs by the number of writes they covered:
	// Batches[i] those of 2^i to 2^(i+1)-1; the last takes all above too.
	Batches [BatchBuckets]uint64
}

// Utilization returns the share of the window in which a sync was in progress.
func (s DiskStats) Utilization() float64 { return ratio(s.Busy, s.Window) }

// MeanBatch returns the mean number of writes a sync covered.
func (s DiskStats) MeanBatch() float64 { return float64(s.Writes) / float64(max(1, s.Syncs)) }

// MeanQueue returns the mean number of writes waiting for a sync to begin.
func (s DiskStats) MeanQueue() float64 { return ratio(s.Queued, s.Window) }

// NewDisk returns an idle disk. It panics when cfg is not valid.
func NewDisk(loop *event.Loop, cfg DiskConfig) *Disk {
	if err := cfg.Validate(); err != nil {
		panic("station: disk: " + err.Error())
	}
	now := loop.Now()
	d := &Disk{loop: loop, cfg: cfg, slow: 1, from: now, queuedTil: now}
	d.sync = loop.Handle("station.disk-sync", d.synced)
	return d
}

// Write appends n bytes to the log now and calls h(arg) when they are synced.
// Handlers run in order of Write. It panics if n is negative.
func (d *Disk) Write(n int, h event.HandlerID, arg uint64) {
	if n < 0 {
		panic(fmt.Sprintf("station: write of %d bytes at %v, want at least 0", n, d.loop.Now()))
	}
	d.accrue()
	d.waiting = append(d.waiting, write{int64(n), h, arg})
	if !d.busy {
		d.begin()
		return
	}
	d.stats.MaxQueue = max(d.stats.MaxQueue, len(d.waiting))
}

// begin starts a sync of all that waits. REQUIRES: something waits, no sync is
// in progress.
func (d *Disk) begin() {
	d.accrue()
	d.waiting, d.syncing = d.syncing[:0], d.waiting
	var n int64
	for i := range d.syncing {
		n += d.syncing[i].bytes
	}
	length := d.cfg.Sync.At(rng.Hash(d.cfg.Key, d.number)) + event.TransferTime(n, d.cfg.BytesPerSecond)
	if d.slow != 1 {
		length = time.Duration(float64(length) * d.slow)
	}
	if length < 0 {
		panic(fmt.Sprintf("station: sync %d takes %v at %v", d.number, length, d.loop.Now()))
	}
	d.number++
	d.busy = true
	d.began = d.loop.Now()
	d.busyFrom = d.began
	d.length = length
	d.timer = d.loop.Schedule(d.began.Add(length), d.sync, 0)
}

// synced ends the sync in progress, begins the next and reports.
func (d *Disk) synced(uint64) {
	d.count()
	d.busy = false
	d.over, d.syncing = d.syncing, d.over[:0]
	length := d.length
	// The disk does not wait for what the handlers do.
	if len(d.waiting) > 0 {
		d.begin()
	}
	epoch := d.epoch
	each, rest := length/time.Duration(len(d.over)), int(length)%len(d.over)
	for i, w := range d.over {
		if d.epoch != epoch {
			return
		}
		d.lastShare = each
		if i < rest {
			d.lastShare++
		}
		d.loop.Call(w.h, w.arg)
	}
}

// count enters the sync that ends now into the statistics.
func (d *Disk) count() {
	s, n := &d.stats, len(d.syncing)
	s.Syncs++
	s.Writes += uint64(n)
	for i := range d.syncing {
		s.Bytes += d.syncing[i].bytes
	}
	s.Busy += d.loop.Now().Sub(d.busyFrom)
	s.MaxBatch = max(s.MaxBatch, n)
	s.Batches[min(bits.Len(uint(n))-1, BatchBuckets-1)]++
}

// accrue brings the integral of the queue's length up to now.
func (d *Disk) accrue() {
	now := d.loop.Now()
	d.stats.Queued += now.Sub(d.queuedTil) * time.Duration(len(d.waiting))
	d.queuedTil = now
}

// LastShare returns, while a write's handler runs, the disk time charged to the
// write: its sync's, divided evenly among the writes it covered. The shares of
// a sync sum to its length.
func (d *Disk) LastShare() time.Duration { return d.lastShare }

// SlowBy makes the syncs that begin from now on take factor times as long; 1 is
// the ordinary speed. It panics unless factor is above 0 and at most a million.
func (d *Disk) SlowBy(factor float64) {
	if !(factor > 0 && factor <= 1e6) {
		panic(fmt.Sprintf("station: disk slowed by %v, want above 0 and at most 1e6", factor))
	}
	d.slow = factor
}

// QueueLen returns how many writes wait for a sync to begin.
func (d *Disk) QueueLen() int { return len(d.waiting) }

// Backlog returns how long it takes until the sync in progress is over; 0 when there is none.
func (d *Disk) Backlog() time.Duration {
	if !d.busy {
		return 0
	}
	return d.began.Add(d.length).Sub(d.loop.Now())
}

// Crash forgets the writes that no sync has finished for: their handlers are
// never called. The disk is idle afterwards and can be written to again. Called
// from a write's handler, it also keeps the handlers of later writes of the same
// sync from being called, though their bytes are on disk: who crashed cannot
// hear of them.
func (d *Disk) Crash() {
	d.accrue()
	if d.busy {
		d.stats.Busy += d.loop.Now().Sub(d.busyFrom)
		d.loop.Cancel(d.timer)
		d.busy = false
	}
	d.waiting, d.syncing = d.waiting[:0], d.syncing[:0]
	d.epoch++
}

// ResetStats starts a new window now.
func (d *Disk) ResetStats() {
	now := d.loop.Now()
	d.stats = DiskStats{MaxQueue: len(d.waiting)}
	d.from, d.busyFrom, d.queuedTil = now, now, now
}

// Stats returns the statistics of the window that ends now.
func (d *Disk) Stats() DiskStats {
	d.accrue()
	s := d.stats
	s.Window = d.loop.Now().Sub(d.from)
	if d.busy {
		s.Busy += d.loop.Now().Sub(d.busyFrom)
	}
	return s
}
