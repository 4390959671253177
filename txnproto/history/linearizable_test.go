package history

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// Transactions of one operation are strictly serializable exactly when the operations
// are linearizable (Herlihy and Wing, "Linearizability: A Correctness Condition for
// Concurrent Objects", TOPLAS 1990). So porcupine, which searches for a linearization
// and knows no graph, must agree with the checker on histories of these.

// operation is a transaction of one operation. Its interval is closed for both checkers:
// what begins when another ends is concurrent with it.
type operation struct {
	key        Key
	write      bool
	version    Version // written or read; names the write where the order is not known
	begin, end Time
}

func (o operation) String() string {
	return fmt.Sprintf("%c(%d)=%d [%d,%d]", "rw"[b2i(o.write)], o.key, o.version, o.begin, o.end)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// operations draws n operations that took effect one after another, each somewhere in its
// interval, and then spoils some of them. Versions of a key need not be dense.
func (g generator) operations(n, keys int) []operation {
	state := make([]Version, keys)
	stride := Version(1 + 4*g.IntN(2))
	reach := 1 + g.IntN(60)
	out := make([]operation, n)
	for i := range out {
		k := g.IntN(keys)
		a := operation{key: Key(k), write: g.IntN(2) == 0}
		if a.write {
			state[k] += stride
		}
		a.version = state[k]
		at := 100 + 10*i
		a.begin, a.end = Time(at-g.IntN(reach)), Time(at+g.IntN(reach))
		out[i] = a
	}
	for range g.IntN(4) {
		g.spoil(out, stride)
	}
	return out
}

// spoil has a read see another version, two writes of a key change places in its
// order, or two operations run in each other's time.
func (g generator) spoil(h []operation, stride Version) {
	a, b := &h[g.IntN(len(h))], &h[g.IntN(len(h))]
	switch {
	case !a.write:
		a.version = stride * Version(g.IntN(1+len(h)/2)) // perhaps one that nobody wrote
	case b.write && a.key == b.key:
		a.version, b.version = b.version, a.version
	default:
		a.begin, a.end, b.begin, b.end = b.begin, b.end, a.begin, a.end
	}
}

// strictlySerializable asks the checker.
func (g generator) strictlySerializable(h []operation) bool {
	r := NewRecorder(Options{Promised: StrictSerializable})
	for i, a := range h {
		id := TxnID(i + 1)
		c := Commit{Txn: id, Request: RequestID(id), Begin: a.begin, End: a.end}
		install := func() { r.Install(id, AllShards, []Write{{Key: a.key, Version: a.version}}) }
		late := g.IntN(2) == 0
		if a.write {
			c.Writes = 1
		} else {
			c.Reads = []Read{{a.key, a.version}}
		}
		if a.write && !late {
			install()
		}
		r.Commit(&c)
		if a.write && late {
			install()
		}
	}
	res := r.Check()
	if res.OK != res.Keeps(StrictSerializable) {
		panic(fmt.Sprintf("history: OK %v, but keeps strict serializability: %v", res.OK, res.Keeps(StrictSerializable)))
	}
	return res.OK
}

// linearizable asks porcupine. The state of a key is its version; where the order of
// versions is known, a write may only raise it.
func linearizable(h []operation, ordered bool) bool {
	m := porcupine.Model{
		Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
			byKey := map[Key][]porcupine.Operation{}
			for _, o := range ops {
				k := o.Input.(operation).key
				byKey[k] = append(byKey[k], o)
			}
			parts := make([][]porcupine.Operation, 0, len(byKey))
			for _, p := range byKey {
				parts = append(parts, p)
			}
			return parts
		},
		Init: func() any { return Version(0) },
		Step: func(state, input, _ any) (bool, any) {
			now, a := state.(Version), input.(operation)
			if !a.write {
				return a.version == now, now
			}
			return !ordered || a.version > now, a.version
		},
	}
	ops := make([]porcupine.Operation, len(h))
	for i, a := range h {
		ops[i] = porcupine.Operation{ClientId: i, Input: a, Call: int64(a.begin), Return: int64(a.end)}
	}
	return porcupine.CheckOperations(m, ops)
}

// someOrder reports whether the checker accepts the history of one key under some
// order of its versions, which is what a register without versions asks.
func (g generator) someOrder(h []operation) bool {
	var writes []Version
	for _, a := range h {
		if a.write {
			writes = append(writes, a.version)
		}
	}
	var try func(n int) bool
	try = func(n int) bool {
		if n == len(writes) {
			return g.strictlySerializable(renumbered(h, writes))
		}
		for i := n; i < len(writes); i++ {
			writes[n], writes[i] = writes[i], writes[n]
			ok := try(n + 1)
			writes[n], writes[i] = writes[i], writes[n]
			if ok {
				return true
			}
		}
		return false
	}
	return try(0)
}

// renumbered returns the history with its versions numbered by their places in order.
// One that nobody wrote stays one that nobody wrote.
func renumbered(h []operation, order []Version) []operation {
	out := slices.Clone(h)
	for i := range out {
		if v := out[i].version; v != 0 {
			out[i].version = Version(1 + slices.Index(order, v))
			if out[i].version == 0 {
				out[i].version = Version(1 + len(order))
			}
		}
	}
	return out
}

func disagree(t *testing.T, h []operation, checker, other bool) {
	t.Helper()
	slices.SortStableFunc(h, func(a, b operation) int { return cmp.Compare(a.begin, b.begin) })
	lines := make([]string, len(h))
	for i, a := range h {
		lines[i] = a.String()
	}
	t.Fatalf("strictly serializable by the checker: %v, linearizable by porcupine: %v\n%s",
		checker, other, strings.Join(lines, "\n"))
}

// compareWithPorcupine draws n histories and compares the verdicts: with the order of
// versions known, and for small histories of one key also without.
func compareWithPorcupine(t *testing.T, seed uint64, n int) {
	t.Helper()
	kept, keptByValue, byValue := 0, 0, 0
	for i := range n {
		g := generator{rand.New(rand.NewPCG(seed, uint64(i)))}
		keys := 1 + g.IntN(3)
		size := 2 + g.IntN(7)
		if i%10 == 0 {
			size = 30
		}
		h := g.operations(size, keys)
		got, want := g.strictlySerializable(h), linearizable(h, true)
		if got != want {
			disagree(t, h, got, want)
		}
		kept += b2i(got)
		if keys > 1 || size > 6 {
			continue
		}
		got, want = g.someOrder(h), linearizable(h, false)
		if got != want {
			disagree(t, h, got, want)
		}
		byValue++
		keptByValue += b2i(got)
	}
	t.Logf("linearizable: %d of %d with versions, %d of %d without", kept, n, keptByValue, byValue)
	if min(kept, n-kept) < n/10 || min(keptByValue, byValue-keptByValue) < byValue/10 {
		t.Fatalf("lopsided: %d of %d with versions, %d of %d without", kept, n, keptByValue, byValue)
	}
}

func TestAgainstPorcupine(t *testing.T) {
	compareWithPorcupine(t, 1, 5000)
}
