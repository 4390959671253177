package snapshot

import (
	"testing"

	"pgregory.net/rapid"

	"interleave/txnproto"
)

// Votes come to the same in any order, and find a pivot exactly when one of those it
// missed may commit before one of those who missed it needs, on whatever shards.
func TestVotesFindPivots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "branches")
		var votes []txnproto.Vote
		out, in, wrote, fragile := never, txnproto.Timestamp(0), false, false
		for range n {
			v := txnproto.Vote{voteFlags: flagKnown}
			if rapid.Bool().Draw(t, "has out") {
				o := txnproto.Timestamp(rapid.IntRange(1, 9).Draw(t, "out"))
				v[voteOut], out = ^uint64(o), min(out, o)
			}
			if rapid.Bool().Draw(t, "has in") {
				i := txnproto.Timestamp(rapid.IntRange(1, 9).Draw(t, "in"))
				if rapid.Bool().Draw(t, "runs") {
					i = never
				}
				v[voteIn], in = uint64(i), max(in, i)
			}
			if rapid.Bool().Draw(t, "wrote") {
				v[voteFlags] |= flagWrote
				wrote = true
			}
			if rapid.Bool().Draw(t, "fragile") {
				v[voteFlags] |= flagFragile
				fragile = true
			}
			votes = append(votes, v)
		}
		want := txnproto.NoReason
		if out != never && out <= in || wrote && fragile {
			want = txnproto.SSIPivot
		}
		for _, order := range [][]txnproto.Vote{votes, rapid.Permutation(votes).Draw(t, "order")} {
			var sum txnproto.Vote
			got := txnproto.NoReason
			for _, v := range order {
				var r txnproto.AbortReason
				if sum, r = agree(sum, v); r != txnproto.NoReason {
					got = r
				}
			}
			if got != want {
				t.Fatalf("votes %v end in %v, want %v", order, got, want)
			}
			if txnproto.Timestamp(^sum[voteOut]) != out {
				t.Fatalf("least out is agreed as %d, want %d", ^sum[voteOut], out)
			}
		}
	})
}
