package optimistic

import (
	"fmt"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/txnproto/controltest"
)

func protocol(t testing.TB) *txnproto.Protocol {
	p, ok := txnproto.ProtocolNamed("occ")
	if !ok {
		t.Fatal("occ is not registered")
	}
	return p
}

// Random clients on one and on several shards, with changes of leader: every
// history is serializable, everything ends, and no record is kept.
func TestRandomRunsAreSerializableAndEnd(t *testing.T) {
	for _, shards := range []int{1, 3} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			for seed := range rng.Seed(60) {
				runWorld(t, shards, seed)
			}
		})
	}
}

// Records are kept while a branch may have to be validated against them, no longer.
func TestRecordsArePruned(t *testing.T) {
	h := controltest.NewBare(protocol(t), 1000)
	txns := controltest.NewBareTxns(h, 2, 2, 0)
	c := h.Controller().(*serial)
	for range 1000 {
		txns.Run()
	}
	if len(c.records.ring) != 16 || c.records.first != c.records.last+1 {
		t.Fatalf("a ring of %d for records %d to %d", len(c.records.ring), c.records.first, c.records.last)
	}
	long := txnproto.Txn{ID: 1 << 40, Slot: 1}
	c.Access(&long, &txnproto.Op{Kind: txnproto.Read, Key: 1001})
	for range 100 {
		txns.Run()
	}
	if kept := c.records.last + 1 - c.records.first; kept != 100 {
		t.Fatalf("%d records are kept for a branch that began 100 ago", kept)
	}
	if !c.Prepare(&long).IsGranted() {
		t.Fatal("the long transaction is not valid")
	}
	c.Finish(&long, txnproto.Committed)
	if c.records.first != c.records.last+1 || c.writers.heads.Len() != 0 {
		t.Fatalf("records %d to %d are kept for nobody", c.records.first, c.records.last)
	}
}

func runWorld(t *testing.T, shards int, seed rng.Seed) {
	r, err := controltest.RunWorld(controltest.WorldConfig{
		Config: controltest.Config{
			Protocol: protocol(t), Shards: shards, Keys: 9,
			Present: []txnproto.Key{0, 2, 3, 5, 8}, Seed: seed, Early: seed%3 == 0,
		},
		Clients: 8, Requests: 12, Ops: 4, LeaderChanges: int(seed % 4),
	})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if err := controltest.Serializable(r.History); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	for _, s := range r.Driver.Shards {
		c := s.Controller().(*serial)
		if c.records.first != c.records.last+1 || c.writers.heads.Len() != 0 || c.readers.heads.Len() != 0 ||
			c.oldest != 0 || c.scanned != 0 || c.unknown != 0 {
			t.Fatalf("seed %d: something is kept:\n%v", seed, c)
		}
	}
}
