package workloads

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"go.uber.org/goleak"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// sellSeat sells one of the seats in row 0 and counts the sale in another row.
func sellSeat(tx *Tx) error {
	seats := tx.ReadForUpdate(0)
	tx.Think(time.Millisecond)
	if seats.Value == 0 {
		return fmt.Errorf("sold out: %w", ErrRollback)
	}
	tx.Write(0, seats.Value-1)
	tx.Add(1+txnproto.Key(tx.Rand().Uint64n(9)), 1)
	return nil
}

func TestFuncProgram(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := &FuncWorkload{
		Keys: 10, Bytes: 10, Body: sellSeat,
		Value: func(k txnproto.Key) txnproto.Value { return map[txnproto.Key]txnproto.Value{0: 3}[k] },
		Holds: func(v txnproto.View) error {
			sum := v.Get(0).Value
			for k := range txnproto.Key(9) {
				sum += v.Get(k + 1).Value
			}
			if sum != 3 {
				return errors.New("a seat was lost")
			}
			return nil
		},
	}
	defer w.Close()
	d := newDatabase(w)
	g := w.Generator(1, "c", 0)
	var ends []txnproto.Step
	var p txnproto.Program
	for range 5 {
		p = g.Next(p)
		_, end, pauses := run(t, p, d, 1, false)
		if pauses != 1 {
			t.Errorf("%d pauses", pauses)
		}
		ends = append(ends, end)
	}
	const c, r = txnproto.StepCommit, txnproto.StepRollback
	if want := []txnproto.Step{c, c, c, r, r}; !reflect.DeepEqual(ends, want) {
		t.Errorf("the sales ended %v, want %v", ends, want)
	}
	if err := w.Check(d); err != nil {
		t.Error(err)
	}
}

// TestFuncProgramRepeatsItsDraws: a retry draws what the first attempt drew, and
// with fresh keys something else.
func TestFuncProgramRepeatsItsDraws(t *testing.T) {
	w := &FuncWorkload{
		Keys: 1 << 40, Names: []string{"a", "b"},
		Class: func(_ txnproto.ClientID, n uint64, _ *rng.Stream) txnproto.ClassID { return txnproto.ClassID(n % 2) },
		Body: func(tx *Tx) error {
			for range 5 {
				tx.Read(txnproto.Key(tx.Rand().Uint64n(1 << 40)))
			}
			return nil
		},
	}
	defer w.Close()
	d := newDatabase(w)
	p := w.Generator(1, "c", 0).Next(nil)
	first, _, _ := run(t, p, d, 1, false)
	again, _, _ := run(t, p, d, 2, false)
	fresh, _, _ := run(t, p, d, 3, true)
	if !reflect.DeepEqual(first, again) || reflect.DeepEqual(first, fresh) || len(fresh) != 5 {
		t.Errorf("attempts read %v, %v and with fresh keys %v", first, again, fresh)
	}
}

// TestFuncProgramAbandoned: an attempt cut off in its middle is unwound, its
// defers run, and no coroutine stays.
func TestFuncProgramAbandoned(t *testing.T) {
	defer goleak.VerifyNone(t)
	unwound, finished := 0, 0
	w := &FuncWorkload{Keys: 10, Body: func(tx *Tx) error {
		defer func() { unwound++ }()
		tx.Scan(0, 5)
		tx.Delete(3)
		tx.Insert(3, 1)
		finished++
		return nil
	}}
	g := w.Generator(1, "c", 0)
	var a txnproto.Action
	p := g.Next(nil)
	for attempt := range 3 { // aborted after one operation, each time
		p.Start(attempt+1, false)
		p.Next(nil, &a)
		p.Next(&txnproto.Result{}, &a)
	}
	if unwound != 2 || finished != 0 {
		t.Errorf("%d unwound, %d finished, want 2 and 0", unwound, finished)
	}
	p = g.Next(p) // given up
	p.Start(1, false)
	p.Next(nil, &a)
	w.Generator(1, "d", 1).Next(nil).Start(1, false) // never driven
	w.Close()
	if unwound != 4 || finished != 0 || len(w.open) != 0 {
		t.Errorf("%d unwound, %d finished, %d open, want 4, 0 and 0", unwound, finished, len(w.open))
	}
	p.Start(1, false)
	for p.Next(&txnproto.Result{}, &a) != txnproto.StepCommit {
	}
	if finished != 1 {
		t.Error("after Close the program does not run again")
	}
}

func TestFuncProgramPanicPasses(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := &FuncWorkload{Keys: 1, Body: func(*Tx) error { panic("its own") }}
	p := w.Generator(1, "c", 0).Next(nil)
	p.Start(1, false)
	defer w.Close()
	defer func() {
		if r := recover(); r != "its own" {
			t.Errorf("recovered %v", r)
		}
	}()
	var a txnproto.Action
	p.Next(nil, &a)
}

func BenchmarkFuncProgram(b *testing.B) {
	w := &FuncWorkload{Keys: 10, Body: func(tx *Tx) error {
		for k := range txnproto.Key(10) {
			tx.Read(k)
		}
		return nil
	}}
	defer w.Close()
	g := w.Generator(1, "c", 0)
	var p txnproto.Program
	var a txnproto.Action
	result := &txnproto.Result{}
	b.ReportAllocs()
	for b.Loop() {
		p = g.Next(p)
		p.Start(1, false)
		for p.Next(result, &a) == txnproto.StepOp {
		}
	}
}
