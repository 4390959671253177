// Package conformance is what every protocol is held to, whoever writes it:
//
//	conformance.go   Run: the suite; a protocol's own tests call it
//	anomalies.go     which anomalies each protocol prevents, and schedules that show the others
//
// A protocol's test is
//
//	func TestConformance(t *testing.T) { conformance.Run(t, "my-protocol") }
//
// Transactions run on controltest: the protocol's controllers with stand-ins for
// their hosts, one shard and three, messages delayed at random, leaders changed at
// random. What is asked:
//
//   - every transaction ends, in a bounded number of attempts, under each mix of programs;
//   - the history keeps the promised level, by the project's checker, and does so whatever
//     order timestamps come in, where the protocol does not rely on any;
//   - prepared transactions survive a change of leader, and nothing that conflicts with
//     them goes on meanwhile;
//   - when all have ended nothing is left: no branch, timer or message, nothing a
//     Leaker admits, and a transaction that touches everything meets no obstacle;
//   - a transaction without competition neither waits nor aborts, and is not in its
//     own way, whatever it does to a row twice.
package conformance

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/txnproto/controltest"
	"interleave/txnproto/history"
)

// Leaker is implemented by controllers that can tell what they keep.
type Leaker interface {
	// Leftover describes what is kept although no transaction is open; "" for nothing.
	Leftover() string
}

// keys is how many rows there are; those divisible by 3 do not exist at first.
const keys = 12

func present() []txnproto.Key {
	var ks []txnproto.Key
	for k := range txnproto.Key(keys) {
		if k%3 != 0 {
			ks = append(ks, k)
		}
	}
	return ks
}

// mixes are the kinds of programs, each with something that protocols stumble over.
var mixes = []struct {
	name    string
	clients int
	program func(r *rng.Stream, client int) []txnproto.Op
}{
	{"short, two hot rows", 8, func(r *rng.Stream, _ int) []txnproto.Op {
		return draw(r, 2, 2, txnproto.Read, txnproto.Modify, txnproto.Write)
	}},
	{"one long among short", 6, func(r *rng.Stream, client int) []txnproto.Op {
		n := 2
		if client == 0 {
			n = 9
		}
		return draw(r, n, keys, txnproto.Read, txnproto.Modify, txnproto.ReadForUpdate)
	}},
	{"scans, inserts, deletes", 6, func(r *rng.Stream, _ int) []txnproto.Op {
		return draw(r, 3, keys, txnproto.Scan, txnproto.Insert, txnproto.Delete, txnproto.Write, txnproto.Read)
	}},
	{"readers beside writers", 6, func(r *rng.Stream, client int) []txnproto.Op {
		if client%2 == 0 {
			return draw(r, 4, keys, txnproto.Read, txnproto.Scan)
		}
		return draw(r, 3, keys, txnproto.Modify, txnproto.Write)
	}},
	{"savepoints", 6, func(r *rng.Stream, _ int) []txnproto.Op {
		ops := draw(r, 3, 6, txnproto.Modify, txnproto.Read, txnproto.Write, txnproto.Scan)
		ops = append(ops, txnproto.Op{Kind: txnproto.RollbackTo, Value: txnproto.Value(1 + r.Uint64n(2))})
		return append(ops, draw(r, 2, 6, txnproto.Modify, txnproto.Read)...)
	}},
	{"rollbacks", 6, func(r *rng.Stream, _ int) []txnproto.Op {
		ops := draw(r, 3, 4, txnproto.Modify, txnproto.Read, txnproto.Write, txnproto.Insert, txnproto.Delete)
		if r.Uint64n(3) == 0 {
			ops = append(ops, controltest.RollBack)
		}
		return ops
	}},
	{"everything", 8, func(r *rng.Stream, _ int) []txnproto.Op {
		var ops []txnproto.Op
		for range 1 + r.Uint64n(5) {
			ops = append(ops, controltest.RandomOp(r, keys))
		}
		return ops
	}},
}

// draw returns n operations of the given kinds on the first rows.
func draw(r *rng.Stream, n int, rows txnproto.Key, kinds ...txnproto.OpKind) []txnproto.Op {
	ops := make([]txnproto.Op, n)
	for i := range ops {
		op := txnproto.Op{
			Kind: kinds[r.Uint64n(uint64(len(kinds)))], Key: txnproto.Key(r.Uint64n(uint64(rows))),
			Value: txnproto.Value(1 + r.Uint64n(9)),
		}
		if op.Kind == txnproto.Scan {
			op.End = op.Key + 1 + txnproto.Key(r.Uint64n(5))
		}
		ops[i] = op
	}
	return ops
}

// Run holds the protocol of that name to all of it.
func Run(t *testing.T, name string) {
	p, ok := txnproto.ProtocolNamed(name)
	if !ok {
		t.Fatalf("protocol %s is not registered", name)
	}
	level, err := history.ParseLevel(p.Promise)
	if err != nil {
		t.Fatal(err)
	}
	for _, shards := range []int{1, 3} {
		for i, m := range mixes {
			t.Run(fmt.Sprintf("%s, %d shards", m.name, shards), func(t *testing.T) {
				for seed := range rng.Seed(4) {
					if err := mixed(p, level, shards, i, seed, 0); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
				}
			})
		}
		if p.Draws != 0 && !p.Draws.InOrder() {
			for i, m := range mixes {
				t.Run(fmt.Sprintf("%s, %d shards, timestamps in no order", m.name, shards), func(t *testing.T) {
					for seed := range rng.Seed(4) {
						if err := mixed(p, level, shards, i, seed, 3*time.Millisecond); err != nil {
							t.Fatalf("seed %d: %v", seed, err)
						}
					}
				})
			}
		}
		t.Run(fmt.Sprintf("no competition, %d shards", shards), func(t *testing.T) { mustPass(t, undisturbed(p, shards)) })
		t.Run(fmt.Sprintf("own writes, %d shards", shards), func(t *testing.T) { mustPass(t, ownWrites(p, shards)) })
	}
}

func mustPass(t *testing.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// mixed runs one mix at random, with timestamps that are off by as much as skew, and then
// looks at what is left.
func mixed(p *txnproto.Protocol, level history.Level, shards, mix int, seed rng.Seed, skew time.Duration) error {
	m := mixes[mix]
	programs := rng.Seed(uint64(seed)<<8 | uint64(mix)).Stream("programs")
	r, err := controltest.RunWorld(controltest.WorldConfig{
		Config: controltest.Config{
			Protocol: p, Shards: shards, Keys: keys, Present: present(), Seed: seed, Early: seed%2 == 1, Skew: skew,
		},
		Clients: m.clients, Requests: 8, LeaderChanges: int(seed), MaxAttempts: 500,
		Programs: func(client, _ int) []txnproto.Op { return m.program(programs, client) },
	})
	if err != nil {
		return err
	}
	if r.Commits == 0 {
		return errors.New("nothing was committed")
	}
	if res := controltest.CheckLevel(r.History, level); !res.OK {
		return fmt.Errorf("promise not kept: %v", res)
	}
	r.Driver.SettleClocks()
	return noneLeft(r.Driver, seed > 0)
}

// noneLeft looks for what ended transactions have left in d.
func noneLeft(d *controltest.Driver, newLeaders bool) error {
	for i, s := range d.Shards {
		if l, ok := s.Controller().(Leaker); ok && l.Leftover() != "" {
			return fmt.Errorf("shard %d has kept: %s", i, l.Leftover())
		}
	}
	// One transaction for each row, as a single one might be excused by what it has done before.
	for k := range d.Keys {
		if err := afterAll(d, newLeaders, txnproto.Op{Kind: txnproto.Modify, Key: k, Value: 1}); err != nil {
			return err
		}
	}
	if err := afterAll(d, newLeaders, txnproto.Op{Kind: txnproto.Scan, Key: 0, End: d.Keys}); err != nil {
		return err
	}
	if d.Open() > 0 || len(d.Stuck()) > 0 || d.Loop.Len() > 0 {
		return fmt.Errorf("%d branches are open, %v wait, %d events are due", d.Open(), d.Stuck(), d.Loop.Len())
	}
	return nil
}

// afterAll runs one operation by itself. A leader that is new may refuse the first that
// comes, if it does not know enough to serve it, and not the next.
func afterAll(d *controltest.Driver, newLeaders bool, op txnproto.Op) error {
	a, err := d.Alone(1_000_000, []txnproto.Op{op})
	if err != nil && newLeaders && a.Reason == txnproto.LeaderChange {
		_, err = d.Alone(1_000_000, []txnproto.Op{op})
	}
	if err != nil {
		return fmt.Errorf("all have ended, and yet %w", err)
	}
	return nil
}

// undisturbed runs clients that keep to rows of their own.
func undisturbed(p *txnproto.Protocol, shards int) error {
	const each = 5
	programs := rng.Seed(7).Stream("programs")
	c := controltest.WorldConfig{
		Config:  controltest.Config{Protocol: p, Shards: shards, Keys: 6 * each, Seed: 7},
		Clients: 6, Requests: 30, Settled: true,
		Programs: func(client, _ int) []txnproto.Op {
			ops := draw(programs, 4, each, txnproto.Read, txnproto.ReadForUpdate, txnproto.Write, txnproto.Modify)
			for i := range ops {
				ops[i].Key += txnproto.Key(each * client)
			}
			return ops
		},
	}
	for k := range c.Keys {
		c.Present = append(c.Present, k)
	}
	r, err := controltest.RunWorld(c)
	if err != nil {
		return err
	}
	if len(r.Aborts) > 0 || r.Stats().QueueCount > 0 {
		return fmt.Errorf("nobody is in anybody's way: aborts %v, %d waits", r.Aborts, r.Stats().QueueCount)
	}
	return nil
}

// ownWrites runs single transactions that come back to what they have done.
func ownWrites(p *txnproto.Protocol, shards int) error {
	d := controltest.NewDriver(controltest.Config{Protocol: p, Shards: shards, Keys: keys, Present: present()})
	op := func(k txnproto.OpKind, key txnproto.Key, v txnproto.Value) txnproto.Op {
		return txnproto.Op{Kind: k, Key: key, Value: v, End: key + 4*txnproto.Key(b2i(k == txnproto.Scan))}
	}
	programs := []struct {
		ops   []txnproto.Op
		key   txnproto.Key
		value txnproto.Value
		gone  bool
	}{
		{ops: []txnproto.Op{op(txnproto.Read, 1, 0), op(txnproto.Write, 1, 5), op(txnproto.Read, 1, 0), op(txnproto.Modify, 1, 2)}, key: 1, value: 7},
		{ops: []txnproto.Op{op(txnproto.Write, 2, 5), op(txnproto.Scan, 0, 0), op(txnproto.Modify, 2, 1)}, key: 2, value: 6},
		{ops: []txnproto.Op{op(txnproto.Scan, 2, 0), op(txnproto.Insert, 3, 4), op(txnproto.Scan, 2, 0), op(txnproto.Modify, 3, 1)}, key: 3, value: 5},
		{ops: []txnproto.Op{op(txnproto.Delete, 4, 0), op(txnproto.Insert, 4, 8), op(txnproto.ReadForUpdate, 4, 0)}, key: 4, value: 8},
		{ops: []txnproto.Op{op(txnproto.Insert, 6, 1), op(txnproto.Delete, 6, 0), op(txnproto.Scan, 5, 0)}, key: 6, gone: true},
		{ops: []txnproto.Op{op(txnproto.ReadForUpdate, 7, 0), op(txnproto.Modify, 7, 3), op(txnproto.Modify, 7, 3), op(txnproto.Read, 7, 0)}, key: 7, value: 6},
		{ops: []txnproto.Op{op(txnproto.Scan, 0, 0), op(txnproto.Modify, 1, 1), op(txnproto.Modify, 2, 1), op(txnproto.Read, 3, 0)}, key: 1, value: 8},
	}
	for i, x := range programs {
		if _, err := d.Alone(txnproto.RequestID(i+1), x.ops); err != nil {
			return fmt.Errorf("program %d, alone: %w", i, err)
		}
		if r := d.Row(x.key); r.Exists == x.gone || r.Exists && r.Value != x.value {
			return fmt.Errorf("program %d leaves %+v, want value %d, deleted %v", i, r, x.value, x.gone)
		}
	}
	return noneLeft(d, false)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
