package keymap

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"interleave/txnproto"
)

// Both tables agree with a Go map and a sorted slice over random changes.
func TestMapAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Map
		model := map[txnproto.Key]int32{}
		keys := rapid.OneOf(rapid.Uint64Range(0, 300), rapid.Uint64())
		for range rapid.IntRange(0, 400).Draw(t, "steps") {
			k := txnproto.Key(keys.Draw(t, "key"))
			if rapid.Bool().Draw(t, "put") {
				v := rapid.Int32Range(1, 1000).Draw(t, "value")
				*m.Ref(k) = v
				model[k] = v
			} else {
				m.Delete(k)
				delete(model, k)
			}
			if m.Len() != len(model) {
				t.Fatalf("Len %d, want %d", m.Len(), len(model))
			}
		}
		for k, v := range model {
			if m.Get(k) != v {
				t.Fatalf("Get(%d) = %d, want %d", k, m.Get(k), v)
			}
		}
		for k := txnproto.Key(0); k < 300; k++ {
			if m.Get(k) != model[k] {
				t.Fatalf("Get(%d) = %d, want %d", k, m.Get(k), model[k])
			}
		}
	})
}

func TestOrderedAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o Ordered[int]
		var model []txnproto.Key
		vals := map[txnproto.Key]int{}
		rising := rapid.Bool().Draw(t, "rising")
		for step := range rapid.IntRange(0, 1500).Draw(t, "steps") {
			k := txnproto.Key(rapid.Uint64Range(0, 2000).Draw(t, "key"))
			if rising {
				k = txnproto.Key(step)
			}
			i, found := slices.BinarySearch(model, k)
			if rapid.IntRange(0, 2).Draw(t, "op") > 0 {
				o.Set(k, step)
				vals[k] = step
				if !found {
					model = slices.Insert(model, i, k)
				}
			} else {
				if o.Delete(k) != found {
					t.Fatalf("Delete(%d) disagrees", k)
				}
				if found {
					model = slices.Delete(model, i, i+1)
				}
			}
		}
		if o.Len() != len(model) {
			t.Fatalf("Len %d, want %d", o.Len(), len(model))
		}
		for k := txnproto.Key(0); k <= 2001; k++ {
			i, found := slices.BinarySearch(model, k)
			if v, ok := o.Get(k); ok != found || ok && v != vals[k] {
				t.Fatalf("Get(%d) = %d %v", k, v, ok)
			}
			key, v, ok := o.Ceil(k)
			if ok != (i < len(model)) || ok && (key != model[i] || v != vals[key]) {
				t.Fatalf("Ceil(%d) = %d %d %v", k, key, v, ok)
			}
			if found {
				i++
			}
			key, v, ok = o.Floor(k)
			if ok != (i > 0) || ok && (key != model[i-1] || v != vals[key]) {
				t.Fatalf("Floor(%d) = %d %d %v", k, key, v, ok)
			}
		}
	})
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	var m Map
	var o Ordered[int]
	for k := range txnproto.Key(1000) {
		*m.Ref(k) = 1
		o.Set(k, 1)
	}
	k := txnproto.Key(0)
	allocs := testing.AllocsPerRun(2000, func() {
		m.Delete(k)
		*m.Ref(k + 1000) = 1
		o.Delete(k)
		o.Set(k+1000, 1)
		k++
	})
	if allocs != 0 {
		t.Fatalf("%v allocations a change", allocs)
	}
}

func BenchmarkMapAddDelete(b *testing.B) {
	var m Map
	for k := range txnproto.Key(1000) {
		*m.Ref(k * 7919) = 1
	}
	k := txnproto.Key(0)
	for b.Loop() {
		*m.Ref(k) = 1
		m.Delete(k)
		k += 3
	}
}
