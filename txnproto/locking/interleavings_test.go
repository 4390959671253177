package locking

import (
	"errors"
	"testing"

	"interleave/txnproto"
	"interleave/txnproto/controltest"
)

// conflicts are small programs in which something can go wrong. Rows 0, 2 and 5 of 0
// to 6 exist at the start.
var conflicts = [][][]txnproto.Op{
	{{op(txnproto.Read, 0), op(txnproto.Write, 0)}, {op(txnproto.Read, 0), op(txnproto.Write, 0)}, {op(txnproto.Modify, 0)}},
	{{op(txnproto.Read, 0), op(txnproto.Write, 5)}, {op(txnproto.Read, 5), op(txnproto.Write, 0)}},
	{{op(txnproto.ReadForUpdate, 0), op(txnproto.Modify, 0)}, {op(txnproto.Read, 0), op(txnproto.Modify, 0)}, {op(txnproto.Read, 0)}},
	{{op(txnproto.Scan, 0, 7), op(txnproto.Insert, 3)}, {op(txnproto.Scan, 0, 7), op(txnproto.Insert, 4)}},
	{{op(txnproto.Scan, 0, 7), op(txnproto.Write, 5)}, {op(txnproto.Delete, 2), op(txnproto.Read, 5)}},
	{{op(txnproto.Delete, 5)}, {op(txnproto.Scan, 3, 5), op(txnproto.Read, 0)}, {op(txnproto.Insert, 4), op(txnproto.Write, 0)}},
	{{op(txnproto.Read, 0), op(txnproto.Write, 2)}, {op(txnproto.Read, 2), op(txnproto.Write, 5)}, {op(txnproto.Read, 5), op(txnproto.Write, 0)}},
	{{op(txnproto.Read, 0), op(txnproto.Read, 2), op(txnproto.Write, 5)}, {op(txnproto.Modify, 5), op(txnproto.Modify, 0)}},
}

func op(kind txnproto.OpKind, k ...txnproto.Key) txnproto.Op {
	o := txnproto.Op{Kind: kind, Key: k[0], Value: 1}
	if len(k) > 1 {
		o.End = k[1]
	}
	return o
}

// Every interleaving of small programs is serializable, by dependencies and by brute
// force, and nobody waits for ever.
func TestEveryInterleaving(t *testing.T) {
	for _, m := range members {
		p, _ := txnproto.ProtocolNamed(m.protocol)
		if p.Declares || m.protocol == "2pl-timeout" {
			continue // programs here do not begin with locks, and no time passes between steps
		}
		for i, programs := range conflicts {
			for shards := 1; shards <= 2; shards++ {
				if len(programs) > 2 && (shards > 1 || len(m.params) > 1) {
					continue // too many interleavings
				}
				c := controltest.Config{Protocol: p, Params: m.params, Shards: shards, Keys: 7, Present: []txnproto.Key{0, 2, 5}}
				commits := 0
				_, err := controltest.Explore(c, programs, func(r controltest.Run) error {
					commits += len(r.History)
					return errors.Join(controltest.Serializable(r.History), r.SerialOrder(programs))
				})
				if err != nil || commits == 0 {
					t.Errorf("%v, programs %d, %d shards: %d commits: %v", m, i, shards, commits, err)
				}
			}
		}
	}
}
