package schedule

// The classes of recovery, after Bernstein, Hadzilacos and Goodman, section 2.4, and
// for rigorous Breitbart, Georgakopoulos, Rusinkiewicz and Silberschatz, "On rigorous
// transaction scheduling", IEEE TSE 17(9), 1991. Ours differ in one thing: a write
// that a rollback to a savepoint has undone ceases to matter there, as at an abort.

// serial: all operations of one transaction before all of another. A written begin
// counts for nothing: it touches no data.
func (a *analysis) serial() Verdict {
	current := -1
	ended := make([]int, len(a.members)) // step after which another took over
	for i, op := range a.s.Ops {
		t := a.index(op.Txn)
		if op.Kind == Begin || t == current {
			continue
		}
		if ended[t] > 0 {
			return no(Serial, "%s stands between operations of %v, which goes on with %s", a.op(ended[t]), op.Txn, a.op(i))
		}
		if current >= 0 {
			ended[current] = i
		}
		current = t
	}
	if len(a.members) < 2 {
		return yes(Serial, "there is nothing to interleave with")
	}
	return yes(Serial, "each transaction's operations stand together")
}

// recoverable: who reads from another commits after it.
func (a *analysis) recoverable() Verdict {
	commits, reads := 0, 0
	for _, m := range a.members {
		if m.fate == Commit {
			commits++
		}
	}
	for i, r := range a.acc {
		w, ok := a.readsFromOther(i)
		if !ok {
			continue
		}
		reads++
		reader, writer := a.members[r.txn], a.members[w.txn]
		switch {
		case reader.fate != Commit:
		case w.undone != never:
			return no(Recoverable, "%s reads from %s, which is undone at step %d (%s), and %v commits at step %d",
				a.at(i), a.op(w.step), w.undone+1, a.s.Ops[w.undone].name(), reader.txn, reader.end+1)
		case writer.end == never:
			return no(Recoverable, "%s reads from %s, and %v commits at step %d although %v has not committed",
				a.at(i), a.op(w.step), reader.txn, reader.end+1, writer.txn)
		case writer.end > reader.end:
			return no(Recoverable, "%s reads from %s, and %v commits at step %d, before %v at step %d",
				a.at(i), a.op(w.step), reader.txn, reader.end+1, writer.txn, writer.end+1)
		}
	}
	switch {
	case reads == 0:
		return yes(Recoverable, "no transaction reads from another")
	case commits == 0:
		return yes(Recoverable, "no transaction commits, so none commits too early")
	default:
		return yes(Recoverable, "every transaction that commits does so after those it has read from")
	}
}

// readsFromOther returns the write that access i read, when it is another transaction's.
func (a *analysis) readsFromOther(i int) (w access, ok bool) {
	r := a.acc[i]
	if r.write || r.source == initial || a.acc[r.source].txn == r.txn {
		return access{}, false
	}
	return a.acc[r.source], true
}

// cascadeless: only committed writes are read.
func (a *analysis) cascadeless() Verdict {
	for i, r := range a.acc {
		if w, ok := a.readsFromOther(i); ok && a.open(w, r.step) {
			return no(Cascadeless, "%s reads from %s before %v has committed: if %v aborts, %v must too",
				a.at(i), a.op(w.step), a.txn(w.txn), a.txn(w.txn), a.txn(r.txn))
		}
	}
	return yes(Cascadeless, "every read is of a committed write, of the reader's own or of the initial state")
}

// strict: nothing that an open transaction has written is read or written.
func (a *analysis) strict() Verdict {
	if x, y, ok := a.conflictWithOpen(false); ok {
		return no(Strict, "%s touches what %s wrote before %v has ended", a.at(y), a.at(x), a.txn(a.acc[x].txn))
	}
	return yes(Strict, "no item is read or overwritten before the transaction that wrote it has ended")
}

// rigorous: strict, and nothing that an open transaction has read is written.
func (a *analysis) rigorous() Verdict {
	if x, y, ok := a.conflictWithOpen(true); ok {
		return no(Rigorous, "%s conflicts with %s before %v has ended", a.at(y), a.at(x), a.txn(a.acc[x].txn))
	}
	return yes(Rigorous, "no two operations conflict before the transaction of the first has ended")
}

// conflictWithOpen returns the first access that conflicts with an earlier one of a
// transaction not yet ended, and that one.
func (a *analysis) conflictWithOpen(reads bool) (x, y int, ok bool) {
	for y := range a.acc {
		for x := range y {
			if conflicting(a.acc[x], a.acc[y]) && (reads || a.acc[x].write) && a.open(a.acc[x], a.acc[y].step) {
				return x, y, true
			}
		}
	}
	return 0, 0, false
}

// commitOrdered: committed transactions commit in the order of their conflicts
// (Weikum and Vossen, Transactional Information Systems, 2002, section 3.8: COCSR).
func (a *analysis) commitOrdered() Verdict {
	for j, kj := range a.kept {
		for _, ki := range a.kept[:j] {
			x, y := a.acc[ki], a.acc[kj]
			if !conflicting(x, y) {
				continue
			}
			ex, ey := a.members[x.txn].end, a.members[y.txn].end
			if ex != never && ey != never && ex > ey {
				return no(CommitOrdered, "%s comes before %s, yet %v commits at step %d, before %v at step %d",
					a.at(ki), a.at(kj), a.txn(y.txn), ey+1, a.txn(x.txn), ex+1)
			}
		}
	}
	committed := 0
	for _, m := range a.members {
		if m.fate == Commit {
			committed++
		}
	}
	if committed < 2 {
		return yes(CommitOrdered, "fewer than two transactions commit")
	}
	return yes(CommitOrdered, "no two committed transactions commit against the order of their conflicts")
}
