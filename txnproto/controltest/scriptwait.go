package controltest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"interleave/txnproto"
)

// waitOptions takes what an operation shall do instead of waiting off its arguments.
func waitOptions(op *txnproto.Op, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	rest, last := args[:len(args)-1], args[len(args)-1]
	switch {
	case last == "nowait":
		op.Wait = txnproto.WaitNot
	case last == "skip-locked":
		op.Wait = txnproto.WaitSkip
	case strings.HasPrefix(last, "timeout="):
		var err error
		if op.Timeout, err = time.ParseDuration(strings.TrimPrefix(last, "timeout=")); err != nil {
			return nil, err
		}
	default:
		return args, nil
	}
	return rest, nil
}

// granted says how an operation that was not refused went.
func (s *script) granted(x *scripted, ids []txnproto.ShardID) string {
	for _, id := range ids {
		if b := x.a.branches[id]; b != nil && b.stage == running && b.op.Skip {
			return "skipped"
		}
	}
	return "granted"
}

func (s *script) rollbackTo(x *scripted, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the number of a savepoint")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 || n > x.a.save {
		return fmt.Errorf("%s has no savepoint %s", x.name, args[0])
	}
	for _, id := range x.a.participants() {
		s.d.Shards[id].RollbackTo(x.a, n)
	}
	x.a.forgetReads(n)
	return nil
}

// declare takes the locks of a declared set one after the other.
func (s *script) declare(x *scripted, args []string) error {
	var ops []txnproto.Op
	for _, arg := range args {
		op := txnproto.Op{Kind: txnproto.Write}
		lo, hi, ranged := strings.Cut(arg, "-")
		k, err := strconv.ParseUint(lo, 10, 64)
		if err != nil {
			return err
		}
		op.Key = txnproto.Key(k)
		if ranged {
			if k, err = strconv.ParseUint(hi, 10, 64); err != nil {
				return err
			}
			op.Kind, op.End = txnproto.Scan, txnproto.Key(k)
		}
		ops = append(ops, op)
	}
	if s.d.claim(x.a, ops) {
		x.then = func() { fmt.Fprintf(&s.out, "  %v has place %v\n", x.a.ID, x.a.Place) }
		home := s.d.home(x.a, ops)
		s.each(x, []txnproto.ShardID{home.id}, "sequence", func(sh *Shard, heard func(txnproto.Verdict)) {
			sh.Access(x.a, txnproto.Op{Kind: txnproto.Sequence}, heard, func(r txnproto.AbortReason) { heard(txnproto.Abort(r)) })
		})
		return nil
	}
	locks := txnproto.LockSet(nil, ops, s.d.sharding())
	var next func()
	next = func() {
		if len(locks) == 0 {
			return
		}
		l := locks[0]
		locks = locks[1:]
		what := fmt.Sprintf("%v %d", l.Op.Kind, l.Op.Key)
		if l.Op.End != 0 {
			what += fmt.Sprintf("-%d", l.Op.End)
		}
		x.then = next
		s.each(x, []txnproto.ShardID{l.Shard}, what, func(sh *Shard, heard func(txnproto.Verdict)) {
			sh.Access(x.a, l.Op, heard, func(r txnproto.AbortReason) { heard(txnproto.Abort(r)) })
		})
	}
	next()
	return nil
}

// shrink tells the shards that x is past its lock point.
func (s *script) shrink(x *scripted, args []string) error {
	var ahead []txnproto.Op
	for _, arg := range args {
		k, err := strconv.ParseUint(arg, 10, 64)
		if err != nil {
			return err
		}
		ahead = append(ahead, txnproto.Op{Kind: txnproto.Write, Key: txnproto.Key(k)})
	}
	for _, id := range x.a.participants() {
		s.d.Shards[id].Shrink(x.a, ahead)
	}
	return nil
}
