package workloads

import (
	"math"
	"reflect"
	"strconv"
	"testing"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// within fails the test when the share of hits among n is further from p than
// five standard deviations of that many independent draws.
func within(t *testing.T, what string, hits, n int, p float64) {
	t.Helper()
	got := float64(hits) / float64(n)
	if bound := 5 * math.Sqrt(p*(1-p)/float64(n)); math.Abs(got-p) > bound {
		t.Errorf("share of %s is %.4f, want %.4f within %.4f", what, got, p, bound)
	}
}

func TestShares(t *testing.T) {
	for _, c := range []struct {
		given map[string]string
		want  map[txnproto.OpKind]float64
	}{
		{nil, map[txnproto.OpKind]float64{txnproto.Read: 0.5, txnproto.Write: 0.5}},
		{map[string]string{"mix": "a"}, map[txnproto.OpKind]float64{txnproto.Read: 0.5, txnproto.Write: 0.5}},
		{map[string]string{"mix": "b"}, map[txnproto.OpKind]float64{txnproto.Read: 0.95, txnproto.Write: 0.05}},
		{map[string]string{"mix": "c"}, map[txnproto.OpKind]float64{txnproto.Read: 1}},
		{map[string]string{"mix": "d"}, map[txnproto.OpKind]float64{txnproto.Read: 0.95, txnproto.Insert: 0.05}},
		{map[string]string{"mix": "e"}, map[txnproto.OpKind]float64{txnproto.Scan: 0.95, txnproto.Insert: 0.05}},
		{map[string]string{"mix": "f"}, map[txnproto.OpKind]float64{txnproto.Read: 0.5, txnproto.Modify: 0.5}},
		{map[string]string{"update": "0.2"}, map[txnproto.OpKind]float64{txnproto.Read: 0.8, txnproto.Write: 0.2}},
		{
			map[string]string{"read": "0.1", "read-for-update": "0.2", "update": "0.3", "rmw": "0.1", "insert": "0.1", "delete": "0.1", "scan": "0.1"},
			map[txnproto.OpKind]float64{
				txnproto.Read: 0.1, txnproto.ReadForUpdate: 0.2, txnproto.Write: 0.3, txnproto.Modify: 0.1,
				txnproto.Insert: 0.1, txnproto.Delete: 0.1, txnproto.Scan: 0.1,
			},
		},
	} {
		counts := map[txnproto.OpKind]int{}
		const n, ops = 2000, 10
		for _, p := range programs(t, mustNew(t, "ycsb", c.given, 1), 3, "c", 0, n) {
			if len(p) != ops {
				t.Fatalf("%v: %d operations", c.given, len(p))
			}
			for _, op := range p {
				counts[op.Kind]++
			}
		}
		for k := range txnproto.NumOpKinds {
			within(t, k.String(), counts[k], n*ops, c.want[k])
		}
	}
}

// TestOrderIsMixed: each place of a transaction has each kind as often.
func TestOrderIsMixed(t *testing.T) {
	const n = 5000
	var reads [10]int
	for _, p := range programs(t, mustNew(t, "ycsb", nil, 1), 4, "c", 0, n) {
		for i, op := range p {
			if op.Kind == txnproto.Read {
				reads[i]++
			}
		}
	}
	for _, r := range reads {
		within(t, "reads at one place", r, n, 0.5)
	}
}

func TestClasses(t *testing.T) {
	w := mustNew(t, "ycsb", map[string]string{
		"ops": "6", "update": "0.5", "keys": "500",
		"classes": "short:8; long:1:ops=40-44,read=1;scan : 1 : ops=1, scan=0.5",
	}, 1)
	if want := []string{"short", "long", "scan"}; !reflect.DeepEqual(w.Classes(), want) {
		t.Fatalf("classes are %q, want %q", w.Classes(), want)
	}
	g := w.Generator(1, "c", 0)
	d := newDatabase(w)
	var perClass [3]int
	lengths := map[int]int{}
	const n = 5000
	for range n {
		p := g.Next(nil)
		ops, _, _ := run(t, p, d, 1, false)
		perClass[p.Class()]++
		switch p.Class() {
		case 0:
			if len(ops) != 6 {
				t.Fatalf("a short one has %d operations", len(ops))
			}
		case 1:
			lengths[len(ops)]++
			for _, op := range ops {
				if op.Kind != txnproto.Read {
					t.Fatalf("a long one has %v", op)
				}
			}
		case 2:
			if len(ops) != 1 || ops[0].Kind != txnproto.Read && ops[0].Kind != txnproto.Scan {
				t.Fatalf("a scan is %v", ops)
			}
		}
	}
	for i, p := range []float64{0.8, 0.1, 0.1} {
		within(t, w.Classes()[i], perClass[i], n, p)
	}
	for l := 40; l <= 44; l++ {
		within(t, "one length", lengths[l], perClass[1], 0.2)
		delete(lengths, l)
	}
	if len(lengths) != 0 {
		t.Errorf("lengths %v beside 40 to 44", lengths)
	}
}

// TestKeysAreDistinct: under extreme skew over few keys a transaction keeps its
// length, and no key comes twice.
func TestKeysAreDistinct(t *testing.T) {
	for _, theta := range []string{"0", "1.2", "5", "50"} {
		for _, keys := range []string{"10", "20", "1000"} {
			w := mustNew(t, "ycsb", map[string]string{"distribution": "zipfian", "theta": theta, "keys": keys}, 1)
			for _, p := range programs(t, w, 1, "c", 0, 300) {
				seen := map[txnproto.Key]bool{}
				for _, op := range p {
					seen[op.Key] = true
				}
				if len(p) != 10 || len(seen) != 10 {
					t.Fatalf("theta %s, %s keys: %d operations on %d keys", theta, keys, len(p), len(seen))
				}
			}
		}
	}
}

func TestScanLengths(t *testing.T) {
	for dist, short := range map[string]float64{"uniform": 0.1, "zipfian": 0.55} {
		w := mustNew(t, "ycsb", map[string]string{"scan": "1", "scan-length-min": "5", "scan-length-max": "54", "scan-lengths": dist}, 1)
		atMost9, n := 0, 0
		for _, p := range programs(t, w, 1, "c", 0, 1000) {
			for _, op := range p {
				length := op.End - op.Key
				if length < 5 || length > 54 || uint64(op.Key) >= w.InitialKeys() {
					t.Fatalf("a scan of %d keys from %d", length, op.Key)
				}
				n++
				if length <= 9 {
					atMost9++
				}
			}
		}
		if dist == "zipfian" { // five of fifty ranks, the first ones
			sum := func(m int) (s float64) {
				for k := 1; k <= m; k++ {
					s += math.Pow(float64(k), -0.99)
				}
				return s
			}
			short = sum(5) / sum(50)
		}
		within(t, dist+" scans of 5 to 9 keys", atMost9, n, short)
	}
}

// TestInsertsNeverMeet: no two clients insert one key, and inserted keys are dense.
func TestInsertsNeverMeet(t *testing.T) {
	const clients, n = 3, 200
	w := mustNew(t, "ycsb", map[string]string{"mix": "d", "distribution": "latest", "keys": "1000"}, clients)
	seen := map[txnproto.Key]bool{}
	newest := 0
	for c := range txnproto.ClientID(clients) {
		inserted := txnproto.Key(0)
		for _, p := range programs(t, w, 1, "client", c, n) {
			bound := 1000 + inserted*clients
			for _, op := range p {
				if op.Kind != txnproto.Insert {
					if op.Key >= bound {
						t.Fatalf("read of key %d, the newest is %d", op.Key, bound-1)
					}
					if op.Key+20 >= bound {
						newest++
					}
					continue
				}
				if want := 1000 + inserted*clients + txnproto.Key(c); op.Key != want || seen[op.Key] {
					t.Fatalf("insert of key %d, want %d", op.Key, want)
				}
				seen[op.Key] = true
				inserted++
			}
		}
	}
	if newest < clients*n*10/4 {
		t.Errorf("only %d of %d reads are of the twenty newest keys", newest, clients*n*10)
	}
}

func TestOpThink(t *testing.T) {
	w := mustNew(t, "ycsb", map[string]string{"op-think": "exp:1ms"}, 1)
	p := w.Generator(1, "c", 0).Next(nil)
	for attempt := range 3 {
		if ops, _, pauses := run(t, p, newDatabase(w), attempt+1, false); len(ops) != 10 || pauses != 9 {
			t.Errorf("%d operations with %d pauses between", len(ops), pauses)
		}
	}
}

func TestYCSBCheck(t *testing.T) {
	w := mustNew(t, "ycsb", nil, 1)
	d := newDatabase(w)
	d.put(7, 0, false)
	if err := w.Check(d); err == nil {
		t.Error("a missing row passes the check")
	}
	d = newDatabase(w)
	d.put(txnproto.Key(w.InitialKeys()), 0, true)
	if err := w.Check(d); err == nil {
		t.Error("a row that nobody inserts passes the check")
	}
	w = mustNew(t, "ycsb", map[string]string{"insert": "0.5", "delete": "0.5"}, 1)
	d = newDatabase(w)
	d.put(7, 0, false)
	d.put(txnproto.Key(w.InitialKeys()), 0, true)
	if err := w.Check(d); err != nil {
		t.Errorf("what the mix does fails the check: %v", err)
	}
}

// TestLatestWithNoRoomToGrow: the largest database takes inserts, and the newest of its
// rows that can be drawn stays the last.
func TestLatestWithNoRoomToGrow(t *testing.T) {
	keys := strconv.FormatUint(rng.MaxKeys, 10)
	w := mustNew(t, "ycsb", map[string]string{"insert": "0.5", "distribution": "latest", "keys": keys}, 2)
	g := w.Generator(1, "client/0", 0)
	var p txnproto.Program
	for range 20 {
		p = g.Next(p)
		for _, op := range p.(*ycsbProgram).ops {
			if op.Kind != txnproto.Insert && uint64(op.Key) >= rng.MaxKeys {
				t.Fatalf("%v of key %d", op.Kind, op.Key)
			}
		}
	}
}
