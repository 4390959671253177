package conformance

import (
	"slices"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/txnproto/broken"
	"interleave/txnproto/history"

	_ "interleave/txnproto/deterministic"
	_ "interleave/txnproto/locking"
	_ "interleave/txnproto/optimistic"
	_ "interleave/txnproto/snapshot"
	_ "interleave/txnproto/timestamp"
)

func isBroken(name string) bool { return slices.Contains(broken.Names(), name) }

func TestEveryProtocolConforms(t *testing.T) {
	for _, p := range txnproto.Protocols() {
		if !isBroken(p.Name) {
			t.Run(p.Name, func(t *testing.T) { Run(t, p.Name) })
		}
	}
}

// TestBrokenProtocolsDoNotConform: the suite can fail.
func TestBrokenProtocolsDoNotConform(t *testing.T) {
	for _, name := range broken.Names() {
		t.Run(name, func(t *testing.T) {
			p, _ := txnproto.ProtocolNamed(name)
			level, err := history.ParseLevel(p.Promise)
			if err != nil {
				t.Fatal(err)
			}
			for seed := range rng.Seed(60) {
				for mix := range mixes {
					if err := mixed(p, level, 3, mix, seed*4, 0); err != nil {
						t.Logf("%s, seed %d: %.200v", mixes[mix].name, seed*4, err)
						return
					}
				}
			}
			t.Fatal("it passes")
		})
	}
}
