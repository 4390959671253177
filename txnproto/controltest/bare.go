package controltest

import (
	"testing"
	"time"

	"interleave/sim/event"
	"interleave/sim/rng"
	"interleave/txnproto"
)

// Bare is a host that does as little as possible: one shard whose rows 0 to
// Keys-1 exist and never change, no timers, no messages. It serves to measure a
// controller by itself.
type Bare struct {
	Keys     txnproto.Key
	Resolved int // answers given after a wait
	newest   txnproto.Timestamp
	exposed  txnproto.Version
	stats    txnproto.ControlStats
	control  txnproto.Controller
}

// NewBare makes a host and p's controller on it, with default parameters.
func NewBare(p *txnproto.Protocol, keys txnproto.Key) *Bare {
	params, err := txnproto.NewParams(p.Name, p.Params, nil)
	if err != nil {
		panic(err)
	}
	h := &Bare{Keys: keys, stats: txnproto.ControlStats{Extra: map[string]uint64{}}}
	h.control = p.New(h, params)
	return h
}

// Controller returns the controller under test.
func (h *Bare) Controller() txnproto.Controller { return h.control }

// Shard returns 0.
func (h *Bare) Shard() txnproto.ShardID { return 0 }

// Shards returns 1.
func (h *Bare) Shards() int { return 1 }

// Now returns 0.
func (h *Bare) Now() event.Time { return 0 }

// Store returns the host itself.
func (h *Bare) Store() txnproto.Store { return h }

// NewestTS returns the newest timestamp drawn.
func (h *Bare) NewestTS() txnproto.Timestamp { return h.newest }

// NewVersion returns a version above all before.
func (h *Bare) NewVersion() txnproto.Version {
	h.exposed++
	return h.exposed
}

// PrepareTS returns the newest timestamp drawn.
func (h *Bare) PrepareTS(*txnproto.Txn) txnproto.Timestamp { return h.newest }

// OldestTS returns the newest timestamp drawn: one transaction runs at a time.
func (h *Bare) OldestTS() txnproto.Timestamp { return h.newest }

// Resolve counts.
func (h *Bare) Resolve(*txnproto.Txn, txnproto.Verdict) { h.Resolved++ }

// Kill must not be called.
func (h *Bare) Kill(*txnproto.Txn, txnproto.AbortReason) bool {
	panic("controltest: not in a bare host")
}

// Blocked ignores.
func (h *Bare) Blocked(*txnproto.Txn, txnproto.Key, []txnproto.TxnID) {}

// After must not be called.
func (h *Bare) After(time.Duration, uint64) event.Timer { panic("controltest: not in a bare host") }

// Cancel finds nothing.
func (h *Bare) Cancel(event.Timer) bool { return false }

// Send must not be called.
func (h *Bare) Send(txnproto.ShardID, *txnproto.Message) { panic("controltest: not in a bare host") }

// Log must not be called.
func (h *Bare) Log(*txnproto.Batch) { panic("controltest: not in a bare host") }

// Rand must not be called.
func (h *Bare) Rand() *rng.Stream { panic("controltest: not in a bare host") }

// Stats returns the counters.
func (h *Bare) Stats() *txnproto.ControlStats { return &h.stats }

// Get returns row k.
func (h *Bare) Get(k txnproto.Key) txnproto.Row { return txnproto.Row{Key: k, Exists: k < h.Keys} }

// At returns row k.
func (h *Bare) At(k txnproto.Key, _ txnproto.Version) txnproto.Row { return h.Get(k) }

// Present reports whether row k exists.
func (h *Bare) Present(k txnproto.Key) bool { return k < h.Keys }

// NextKey returns k while it exists.
func (h *Bare) NextKey(k txnproto.Key) (txnproto.Key, bool) { return k, k < h.Keys }

// BareTxns runs transactions on a bare host, one after another.
type BareTxns struct {
	*Bare
	tx   txnproto.Txn
	ops  []txnproto.Op
	next txnproto.Key
}

// NewBareTxns makes transactions of reads rows read, writes rows modified, and, when
// scan > 0, a scan of so many rows, wherever they fall.
func NewBareTxns(h *Bare, reads, writes, scan int) *BareTxns {
	b := &BareTxns{Bare: h}
	for range reads {
		b.ops = append(b.ops, txnproto.Op{Kind: txnproto.Read})
	}
	for range writes {
		b.ops = append(b.ops, txnproto.Op{Kind: txnproto.Modify})
	}
	if scan > 0 {
		b.ops = append(b.ops, txnproto.Op{Kind: txnproto.Scan, Value: txnproto.Value(scan)})
	}
	return b
}

// Run runs one transaction to its commit and panics if it meets an obstacle.
func (b *BareTxns) Run() {
	b.tx.Reset()
	b.next++
	id := txnproto.TxnID(b.next)
	b.newest++
	b.tx.ID, b.tx.TS, b.tx.FirstTS = id, b.newest, b.newest
	for i := range b.ops {
		op := &b.ops[i]
		op.Key = (b.next*2654435761 + txnproto.Key(i)*40503) % b.Keys
		op.End = min(op.Key+txnproto.Key(op.Value), b.Keys)
		if !b.control.Access(&b.tx, op).IsGranted() {
			panic("controltest: an operation was not granted")
		}
		if op.Kind == txnproto.Modify {
			b.tx.SetPut(txnproto.Put{Key: op.Key})
		}
	}
	if !b.control.Prepare(&b.tx).IsGranted() {
		panic("controltest: a commit was not granted")
	}
	b.newest++
	b.tx.CommitTS = b.newest
	b.control.Finish(&b.tx, txnproto.Committed)
}

// Ops is the number of operations in each transaction.
func (b *BareTxns) Ops() int { return len(b.ops) }

// NoAllocations fails when transactions allocate in steady state.
func NoAllocations(t *testing.T, p *txnproto.Protocol) {
	for _, scan := range []int{0, 100} {
		b := NewBareTxns(NewBare(p, 2000), 5, 5, scan)
		for range 3000 {
			b.Run()
		}
		if n := testing.AllocsPerRun(1000, b.Run); n != 0 {
			t.Errorf("%s: %v allocations a transaction with a scan of %d rows", p.Name, n, scan)
		}
	}
}

// Benchmark measures p on transactions without conflicts.
func Benchmark(b *testing.B, p *txnproto.Protocol) {
	for _, kind := range []struct {
		name                string
		reads, writes, scan int
	}{{"5reads5writes", 5, 5, 0}, {"scan100", 0, 0, 100}} {
		b.Run(kind.name, func(b *testing.B) {
			txns := NewBareTxns(NewBare(p, 1_000_000), kind.reads, kind.writes, kind.scan)
			b.ReportAllocs()
			for b.Loop() {
				txns.Run()
			}
			per := float64(txns.Ops())
			if kind.scan > 0 {
				per = float64(kind.scan)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/per, "ns/row")
		})
	}
}
