package controltest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"interleave/txnproto"
)

// Script runs a datadriven file. Its directives are
//
//	new protocol=NAME present=(K,…) [shards=N] [keys=N] [params=(NAME=VALUE,…)]
//	run
//	state
//
// run has commands as input, one a line, and answers with what each and what
// followed from it came to:
//
//	t1 begin [hits=N] [age=tN] [read-only]
//	                             t1 takes the next timestamp; other commands begin
//	                             a transaction themselves; age is that of an earlier
//	                             one; read-only says that the program has declared it
//	t1 read K, t1 read-for-update K, t1 update K, t1 rmw K, t1 insert K, t1 delete K
//	t1 scan K END                keys K to END-1
//	t1 OPERATION … nowait        abort, or
//	t1 OPERATION … skip-locked   leave the row out, or
//	t1 OPERATION … timeout=D     abort after D, instead of waiting
//	t1 declare KEY KEY LO-HI …   locks beforehand, as a session does: keys to write, keys
//	                             LO to HI-1 to scan
//	t1 shrink KEY …              t1 is past its lock point, and will touch these keys only
//	t1 savepoint                 the next savepoint, from 1
//	t1 rollback-to N             undo what was done since savepoint N
//	t1 prepare [N], t1 finish    validation, on shard N or all; install and release
//	t1 install                   the first half of finish
//	t1 commit                    both, when the first succeeds
//	t1 abort
//	wait DURATION                let virtual time pass
//	lead N                       shard N (from 1) gets a new leader
//
// Transactions are named in the order in which they begin: t1 has timestamp 1. Where
// versions are numbered by commit, commits draw from the same counter.
// state shows what the controllers hold and the counters of deadlocks and of commits that
// turned out to be unrecoverable.
func Script(t *testing.T, path string) {
	s := &script{t: t}
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		s.out.Reset()
		var err error
		switch d.Cmd {
		case "new":
			err = s.start(d)
		case "run":
			for line := range strings.Lines(d.Input) {
				if err = s.command(strings.Fields(line)); err != nil {
					err = fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
					break
				}
			}
		case "state":
			s.state()
		default:
			err = fmt.Errorf("unknown directive %q", d.Cmd)
		}
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		if s.out.Len() == 0 {
			return "ok\n"
		}
		return s.out.String()
	})
}

type script struct {
	t    *testing.T
	d    *Driver
	out  strings.Builder
	txns []*scripted
}

type scripted struct {
	a    *Attempt
	name string
	due  int
	done bool
	then func()
}

func (s *script) start(d *datadriven.TestData) error {
	c := Config{Shards: 1, Keys: 10, Params: map[string]string{}}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "protocol":
			p, ok := txnproto.ProtocolNamed(arg.Vals[0])
			if !ok {
				return fmt.Errorf("no protocol %s", arg.Vals[0])
			}
			c.Protocol = p
		case "present":
			for _, v := range arg.Vals {
				k, err := strconv.ParseUint(v, 10, 64)
				if err != nil {
					return err
				}
				c.Present = append(c.Present, txnproto.Key(k))
			}
		case "shards":
			n, err := strconv.Atoi(arg.Vals[0])
			if err != nil {
				return err
			}
			c.Shards = n
		case "keys":
			n, err := strconv.Atoi(arg.Vals[0])
			if err != nil {
				return err
			}
			c.Keys = txnproto.Key(n)
		case "params":
			for _, v := range arg.Vals {
				name, value, ok := strings.Cut(v, "=")
				if !ok {
					return fmt.Errorf("parameter %q has no value", v)
				}
				c.Params[name] = value
			}
		default:
			return fmt.Errorf("unknown argument %q", arg.Key)
		}
	}
	s.d, s.txns = NewDriver(c), nil
	for _, sh := range s.d.Shards {
		sh.blocked = func(tx *txnproto.Txn, k txnproto.Key, on []txnproto.TxnID) {
			fmt.Fprintf(&s.out, "  %s waits for %v\n", tx.ID, names(on))
		}
	}
	return nil
}

func names(ids []txnproto.TxnID) string {
	var names []string
	for _, id := range ids {
		names = append(names, id.String())
	}
	return strings.Join(names, ", ")
}

func (s *script) state() {
	for _, sh := range s.d.Shards {
		if len(s.d.Shards) > 1 {
			fmt.Fprintf(&s.out, "%v\n", sh.id)
		}
		fmt.Fprint(&s.out, sh.control)
	}
	if st := s.d.Stats(); st.Deadlocks > 0 {
		fmt.Fprintf(&s.out, "deadlocks: %d, false: %d\n", st.Deadlocks, st.FalseDeadlocks)
	}
	if n := s.d.Stats().Extra["unrecoverable"]; n > 0 {
		fmt.Fprintf(&s.out, "unrecoverable: %d\n", n)
	}
}

func (s *script) command(f []string) error {
	if len(f) == 0 {
		return nil
	}
	fmt.Fprintln(&s.out, strings.Join(f, " "))
	switch {
	case f[0] == "wait" && len(f) == 2:
		d, err := time.ParseDuration(f[1])
		if err != nil {
			return err
		}
		s.d.Loop.RunUntil(s.d.Loop.Now().Add(d))
		return nil
	case f[0] == "lead" && len(f) == 2:
		n, err := strconv.Atoi(f[1])
		if err != nil || n < 1 || n > len(s.d.Shards) {
			return fmt.Errorf("no shard %s", f[1])
		}
		s.d.Shards[n-1].ChangeLeader()
		return nil
	case len(f) < 2:
		return fmt.Errorf("unknown command")
	}
	x, err := s.txn(f[0], f[1:])
	if err != nil || f[1] == "begin" {
		return err
	}
	if x.done || x.due > 0 && f[1] != "abort" {
		return fmt.Errorf("%s has ended or waits", x.name)
	}
	if err := s.act(x, f[1], f[2:]); err != nil {
		return err
	}
	s.d.Loop.RunUntil(s.d.Loop.Now())
	return nil
}

// txn returns the transaction of that name; it begins when it is new.
func (s *script) txn(name string, args []string) (*scripted, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "t"))
	if err != nil || name[0] != 't' || n < 1 || n > len(s.txns)+1 {
		return nil, fmt.Errorf("%s is not among t1 to t%d", name, len(s.txns)+1)
	}
	if n <= len(s.txns) {
		return s.txns[n-1], nil
	}
	x := &scripted{a: s.d.Begin(txnproto.RequestID(n), nil), name: name}
	s.txns = append(s.txns, x)
	if args[0] != "begin" {
		return x, nil
	}
	for _, arg := range args[1:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "read-only":
			x.a.ReadOnly = true
		case "hits":
			if x.a.Hits, err = strconv.Atoi(value); err != nil {
				return nil, err
			}
		case "age":
			i, err := strconv.Atoi(strings.TrimPrefix(value, "t"))
			if err != nil || i < 1 || i >= n {
				return nil, fmt.Errorf("no earlier transaction %s", value)
			}
			x.a.First = s.txns[i-1].a.First
		default:
			return nil, fmt.Errorf("unknown argument %q", arg)
		}
	}
	return x, nil
}

var scriptOps = []txnproto.OpKind{
	txnproto.Read, txnproto.ReadForUpdate, txnproto.Write, txnproto.Modify, txnproto.Insert,
	txnproto.Delete, txnproto.Scan,
}

func (s *script) act(x *scripted, verb string, args []string) error {
	switch verb {
	case "prepare", "commit":
		x.then = func() {
			// Who is alone on its shard is decided by its own vote.
			if len(x.a.participants()) == 1 && s.d.judge(x.a) == txnproto.NoReason {
				s.d.decide(x.a)
			}
		}
		if verb == "commit" {
			x.then = func() { s.finish(x) }
		}
		ids := x.a.participants()
		if len(args) == 1 {
			n, err := strconv.Atoi(args[0])
			if err != nil || !slices.Contains(ids, txnproto.ShardID(n-1)) {
				return fmt.Errorf("%s is not on shard %s", x.name, args[0])
			}
			ids = []txnproto.ShardID{txnproto.ShardID(n - 1)}
		}
		s.each(x, ids, strings.Join(append([]string{verb}, args...), " "), func(sh *Shard, heard func(txnproto.Verdict)) { sh.Prepare(x.a, heard) })
		return nil
	case "install":
		for _, id := range x.a.participants() {
			s.d.Shards[id].Install(x.a)
		}
		return nil
	case "finish":
		s.finish(x)
		return nil
	case "savepoint":
		x.a.Savepoint()
		return nil
	case "rollback-to":
		return s.rollbackTo(x, args)
	case "declare":
		return s.declare(x, args)
	case "shrink":
		return s.shrink(x, args)
	case "abort":
		s.abort(x)
		return nil
	}
	i := slices.IndexFunc(scriptOps, func(k txnproto.OpKind) bool { return k.String() == verb })
	if i < 0 {
		return fmt.Errorf("unknown operation %q", verb)
	}
	op := txnproto.Op{Kind: scriptOps[i], Value: 1}
	what := verb + " " + strings.Join(args, " ")
	args, err := waitOptions(&op, args)
	if err != nil {
		return err
	}
	want := 1
	if op.Kind == txnproto.Scan {
		want = 2
	}
	if len(args) != want {
		return fmt.Errorf("want %d keys", want)
	}
	keys := make([]txnproto.Key, want)
	for i, arg := range args {
		k, err := strconv.ParseUint(arg, 10, 64)
		if err != nil {
			return err
		}
		keys[i] = txnproto.Key(k)
	}
	op.Key = keys[0]
	ids := []txnproto.ShardID{s.d.ShardOf(op.Key).id}
	if op.Kind == txnproto.Scan {
		op.End, ids = keys[1], nil
		for _, sh := range s.d.Shards {
			ids = append(ids, sh.id)
		}
	}
	x.then = nil
	s.each(x, ids, what, func(sh *Shard, heard func(txnproto.Verdict)) {
		sh.Access(x.a, op, heard, func(r txnproto.AbortReason) { heard(txnproto.Abort(r)) })
	})
	return nil
}

// each asks some shards for x and says what all of them together answer.
func (s *script) each(x *scripted, ids []txnproto.ShardID, what string, ask func(*Shard, func(txnproto.Verdict))) {
	x.due = len(ids)
	for _, id := range ids {
		ask(s.d.Shards[id], func(v txnproto.Verdict) {
			if x.done {
				return
			}
			if _, aborted := v.Aborted(); aborted {
				fmt.Fprintf(&s.out, "  %v %s: %v\n", x.a.ID, what, v)
				s.abort(x)
				return
			}
			if x.due--; x.due == 0 {
				fmt.Fprintf(&s.out, "  %v %s: %s\n", x.a.ID, what, s.granted(x, ids))
				if x.then != nil {
					x.then()
				}
			}
		})
		if x.done {
			return
		}
	}
}

func (s *script) finish(x *scripted) {
	if r := s.d.judge(x.a); r != txnproto.NoReason {
		fmt.Fprintf(&s.out, "  %v commit: %v\n", x.a.ID, txnproto.Abort(r))
		x.a.Reason = r
		s.abort(x)
		return
	}
	x.done = true
	s.d.decide(x.a)
	for _, id := range x.a.participants() {
		s.d.Shards[id].Finish(x.a, txnproto.Committed)
	}
	s.d.forgo(x.a)
}

func (s *script) abort(x *scripted) {
	x.done, x.due = true, 0
	if x.a.Outcome == txnproto.Undecided {
		x.a.Outcome = txnproto.Aborted
	}
	for _, id := range x.a.participants() {
		s.d.Shards[id].Finish(x.a, txnproto.Aborted)
	}
	s.d.forgo(x.a)
}
