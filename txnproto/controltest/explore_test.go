package controltest_test

import (
	"errors"
	"testing"

	"interleave/txnproto"
	_ "interleave/txnproto/broken"
	"interleave/txnproto/controltest"
)

func op(kind txnproto.OpKind, k ...txnproto.Key) txnproto.Op {
	o := txnproto.Op{Kind: kind, Key: k[0], Value: 1}
	if len(k) > 1 {
		o.End = k[1]
	}
	return o
}

const (
	rd   = txnproto.Read
	rfu  = txnproto.ReadForUpdate
	wr   = txnproto.Write
	rmw  = txnproto.Modify
	ins  = txnproto.Insert
	del  = txnproto.Delete
	scan = txnproto.Scan
)

// small are programs in which something can go wrong. Keys 0, 2 and 5 of 0 to 6
// exist at the start.
var small = []struct {
	name     string
	programs [][]txnproto.Op
}{
	{"lost update", [][]txnproto.Op{{op(rd, 0), op(wr, 0)}, {op(rd, 0), op(wr, 0)}, {op(rmw, 0)}}},
	{"write skew", [][]txnproto.Op{{op(rd, 0), op(wr, 5)}, {op(rd, 5), op(wr, 0)}}},
	{"write skew over absent rows", [][]txnproto.Op{{op(rd, 1), op(ins, 3)}, {op(rd, 3), op(ins, 1)}}},
	{"opposite transfers", [][]txnproto.Op{{op(rmw, 0), op(rmw, 5)}, {op(rmw, 5), op(rmw, 0)}}},
	{"upgrades", [][]txnproto.Op{{op(rd, 0), op(rmw, 0)}, {op(rfu, 0), op(rmw, 0)}, {op(rd, 0)}}},
	{"phantoms", [][]txnproto.Op{{op(scan, 0, 7), op(ins, 3)}, {op(scan, 0, 7), op(ins, 4)}}},
	{"phantoms apart", [][]txnproto.Op{{op(scan, 0, 3), op(ins, 4)}, {op(scan, 3, 7), op(ins, 1)}}},
	{"phantom by delete", [][]txnproto.Op{{op(scan, 0, 7), op(wr, 5)}, {op(del, 2), op(rd, 5)}}},
	{"insert beside a scan", [][]txnproto.Op{{op(scan, 1, 4), op(rd, 6)}, {op(wr, 3), op(wr, 6)}, {op(wr, 1)}}},
	{"gap merged by an abort", [][]txnproto.Op{{op(ins, 3), op(ins, 0)}, {op(scan, 3, 4), op(scan, 3, 4)}, {op(ins, 4)}}},
	{"gap merged by a delete", [][]txnproto.Op{{op(del, 5)}, {op(scan, 3, 5), op(rd, 0)}, {op(ins, 4), op(wr, 0)}}},
	{"insert into one's own gap", [][]txnproto.Op{{op(scan, 3, 5), op(ins, 4), op(rd, 0)}, {op(ins, 3), op(wr, 0)}}},
	{"delete of an absent row", [][]txnproto.Op{{op(scan, 3, 5), op(wr, 0)}, {op(del, 4), op(rd, 0)}}},
	{"insert, delete, insert", [][]txnproto.Op{{op(ins, 3), op(del, 3)}, {op(scan, 3, 4), op(wr, 2)}, {op(ins, 3), op(rd, 2)}}},
	{"three in a circle", [][]txnproto.Op{{op(rd, 0), op(wr, 2)}, {op(rd, 2), op(wr, 5)}, {op(rd, 5), op(wr, 0)}}},
}

func explore(t *testing.T, protocol string, shards int, programs [][]txnproto.Op) (runs, commits int, err error) {
	p, ok := txnproto.ProtocolNamed(protocol)
	if !ok {
		t.Fatalf("no protocol %s", protocol)
	}
	c := controltest.Config{Protocol: p, Shards: shards, Keys: 7, Present: []txnproto.Key{0, 2, 5}}
	runs, err = controltest.Explore(c, programs, func(r controltest.Run) error {
		commits += len(r.History)
		return errors.Join(controltest.Serializable(r.History), r.SerialOrder(programs))
	})
	return runs, commits, err
}

// Every interleaving of small programs is serializable, by dependencies and by
// brute force, and no program waits for ever.
func TestEveryInterleavingIsSerializable(t *testing.T) {
	exploreAll(t, "2pl", "to", "occ")
}

func exploreAll(t *testing.T, protocols ...string) {
	for _, protocol := range protocols {
		for _, s := range small {
			for _, shards := range []int{1, 2} {
				if shards > 1 && len(s.programs) > 2 {
					continue // too many interleavings
				}
				runs, commits, err := explore(t, protocol, shards, s.programs)
				if err != nil {
					t.Errorf("%s, %s, %d shards: %v", protocol, s.name, shards, err)
				}
				if commits == 0 {
					t.Errorf("%s, %s, %d shards: nothing commits in %d runs", protocol, s.name, shards, runs)
				}
			}
		}
	}
}

// The same exploration finds what is wrong with each broken protocol.
func TestInterleavingsCatchBrokenProtocols(t *testing.T) {
	for _, b := range []struct{ protocol, programs string }{
		{"broken-2pl-early-release", "lost update"},
		{"broken-2pl-no-read-locks", "write skew"},
		{"broken-2pl-no-range-locks", "phantoms"},
		{"broken-2pl-no-range-locks", "gap merged by a delete"},
		{"broken-to-no-check", "write skew"},
		{"broken-to-no-range-reads", "phantoms apart"},
		{"broken-occ-skips-read-set", "lost update"},
		{"broken-occ-no-pending-check", "write skew"},
		{"broken-occ-drops-readers", "write skew"},
	} {
		for _, s := range small {
			if s.name != b.programs {
				continue
			}
			shards := 2
			if _, _, err := explore(t, b.protocol, shards, s.programs); err == nil {
				t.Errorf("%s passes %s", b.protocol, s.name)
			}
		}
	}
}
