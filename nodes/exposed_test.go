package nodes

import (
	"bytes"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// TestInstallsInOrderOfExposure feeds machines a log whose writes were numbered in another
// order than that in which they commit: each row ends as its highest version, on a replica
// that was restored from a snapshot in the middle as well.
func TestInstallsInOrderOfExposure(t *testing.T) {
	place, err := NewPlacement("range", 1, 4)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range rng.Seed(60) {
		s := seed.Stream("exposed")
		newest := map[txnproto.Key]txnproto.Put{}
		var log []Entry
		for i := range 40 {
			p := txnproto.Put{Key: txnproto.Key(s.Uint64n(6)), Value: txnproto.Value(i), Deleted: s.Uint64n(4) == 0, Version: txnproto.Version(1 + s.Uint64n(1_000_000))}
			id := txnproto.TxnID(i + 1)
			if s.Uint64n(3) == 0 {
				log = append(log, Entry{Kind: EntryCommit, Txn: id, Puts: []txnproto.Put{p}, Versioned: true})
			} else {
				o := txnproto.Committed + txnproto.Outcome(s.Uint64n(2))
				log = append(log, Entry{Kind: EntryPrepare, Txn: id, Puts: []txnproto.Put{p}, Versioned: true}, Entry{Kind: EntryFinish, Txn: id, Outcome: o, Versioned: true})
				if o == txnproto.Aborted {
					continue
				}
			}
			if p.Version > newest[p.Key].Version {
				newest[p.Key] = p
			}
		}
		fresh := func() *machine { return newMachine(NewStore(0, place, flat{4}, txnproto.VersionByExposure)) }
		whole, half, restored := fresh(), fresh(), fresh()
		apply(t, whole, log, 0)
		cut := int(s.Uint64n(uint64(len(log))))
		apply(t, half, log[:cut], 0)
		var b bytes.Buffer
		if err := half.Snapshot(&b); err != nil {
			t.Fatal(err)
		}
		if err := restored.Restore(&b); err != nil {
			t.Fatal(err)
		}
		apply(t, restored, log[cut:], cut)
		if d := restored.differs(whole); d != "" {
			t.Fatalf("seed %d: restored at %d: %s", seed, cut, d)
		}
		for k, p := range newest {
			if r := whole.store.Get(k); r.Version != p.Version || r.Value != p.Value || r.Exists == p.Deleted {
				t.Errorf("seed %d: key %d is %+v, want %+v", seed, k, r, p)
			}
			if whole.store.Present(k) == p.Deleted {
				t.Errorf("seed %d: key %d is present: %v", seed, k, p.Deleted)
			}
		}
	}
}
