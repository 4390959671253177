package txnproto

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Places compare as numbers in the order of epoch, sequencer and number in the batch.
func TestPlacesCompare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (Place, [3]uint64) {
			e := rapid.Uint64Range(1, 1<<30-1).Draw(t, name+" epoch")
			s := rapid.IntRange(0, 1023).Draw(t, name+" sequencer")
			i := rapid.IntRange(0, 1<<24-1).Draw(t, name+" index")
			p := NewPlace(e, ShardID(s), i)
			if p.Epoch() != e || p.Sequencer() != ShardID(s) || p.Index() != i || p == 0 {
				t.Fatalf("place of %d, %d, %d is %v", e, s, i, p)
			}
			return p, [3]uint64{e, uint64(s), uint64(i)}
		}
		p, x := draw("first")
		q, y := draw("second")
		if got, want := p < q, slices.Compare(x[:], y[:]) < 0; got != want {
			t.Fatalf("%v before %v: %v, want %v", p, q, got, want)
		}
	})
}

func TestNoSuchPlace(t *testing.T) {
	for _, x := range []struct {
		epoch uint64
		shard ShardID
		index int
	}{{0, 0, 0}, {1 << 30, 0, 0}, {1, 1024, 0}, {1, -1, 0}, {1, 0, 1 << 24}, {1, 0, -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v makes a place", x)
				}
			}()
			NewPlace(x.epoch, x.shard, x.index)
		}()
	}
	if got := NewPlace(3, 0, 2).String(); got != "e3.s1.2" {
		t.Errorf("a place prints as %s", got)
	}
}

// twoShards has even keys in shard 0 and odd ones in shard 1.
type twoShards struct{}

func (twoShards) ShardOf(k Key) ShardID { return ShardID(k % 2) }
func (twoShards) Shards() int           { return 2 }
func (twoShards) Covers(s ShardID, lo, hi Key) bool {
	return lo < hi && (ShardID(lo%2) == s || lo+1 < hi)
}

func TestClaims(t *testing.T) {
	claims := Claims(nil, []Op{
		{Kind: Read, Key: 5},
		{Kind: Write, Key: 2},
		{Kind: Modify, Key: 5},
		{Kind: Scan, Key: 2, End: 6},
		{Kind: Scan, Key: 4, End: 5},
		{Kind: Scan, Key: 7, End: 7},
		{Kind: RollbackTo, Value: 1},
		{Kind: Read, Key: 2},
	}, twoShards{})
	if claims[0].Shard != 1 {
		t.Errorf("the first claim is at shard %v, want that of the first operation", claims[0].Shard)
	}
	// The reconnaissance finds row 4, which is claimed by itself.
	claims = append(claims, Claim{Key: 4})
	got := SortClaims(claims)
	want := []Claim{
		{Key: 2, Exclusive: true},
		{Key: 2, End: 6},
		{Key: 4},
		{Key: 4, End: 5},
		{Key: 2, End: 6, Shard: 1},
		{Key: 5, Shard: 1, Exclusive: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("claims\n%+v, want\n%+v", got, want)
	}
}

func TestBatch(t *testing.T) {
	var b, c Batch
	b.Add(BatchTxn{ID: 7, Place: 9, Slot: 1}, []Claim{{Key: 1}, {Key: 2, Exclusive: true}})
	b.Add(BatchTxn{ID: 8, Place: 10}, nil)
	c.Set(&b)
	b.Reset()
	if len(b.Txns)+len(b.Claims) != 0 || len(c.Txns) != 2 || c.Txns[0].Claims != 2 || c.Txns[1].Claims != 0 {
		t.Errorf("reset %+v, copy %+v", b, c)
	}
	if got, want := c.Bytes(), 2*BatchTxnBytes+2*ClaimBytes; got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

// A duration's parameter can have bounds.
func TestDurationBounds(t *testing.T) {
	defs := []Param{{Name: "epoch", Kind: ParamDuration, Default: "10ms", Min: 1e5, Max: 1e10}, {Name: "wait", Kind: ParamDuration, Default: "0s"}}
	for value, ok := range map[string]bool{"100us": true, "10s": true, "99us": false, "11s": false, "-1s": false, "x": false} { // order: independent
		if _, err := NewParams("p", defs, map[string]string{"epoch": value}); (err == nil) != ok {
			t.Errorf("epoch %s: %v", value, err)
		}
	}
	if _, err := NewParams("p", defs, map[string]string{"wait": "1h"}); err != nil {
		t.Error(err)
	}
	if got, want := defs[0].Allowed(), "a duration such as 10ms from 100µs to 10s"; got != want {
		t.Errorf("allowed: %q, want %q", got, want)
	}
}
