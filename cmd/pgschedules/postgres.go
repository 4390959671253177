package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"interleave/txnproto/schedule"
)

const (
	// deadlockAfter is the server's deadlock_timeout.
	deadlockAfter = 20 * time.Millisecond
	// settled is how long a session must have been waiting before it is taken to go
	// on waiting: the server looks for deadlocks before.
	settled = 5 * deadlockAfter
	// patience is how long a statement may take that does not wait for another.
	patience = 10 * time.Second
)

// session is one psql, driven over its pipes.
type session struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	pid   string // of the server's process
}

// open starts a session.
func open(host string) (*session, error) {
	s := &session{lines: make(chan string, 1000)}
	s.cmd = exec.Command("psql", "-X", "-q", "-A", "-t", "-F", " ", "-h", host, "-U", "postgres", "-d", "postgres")
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		sc := bufio.NewScanner(out)
		for sc.Scan() {
			s.lines <- sc.Text()
		}
		close(s.lines)
	}()
	// Without sequential scans the serializable level remembers rows and ranges of
	// the index that were read, not the whole of so small a table.
	setup := fmt.Sprintf("SET deadlock_timeout = '%dms'; SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT pg_backend_pid();", deadlockAfter.Milliseconds())
	s.pid, err = s.query(setup)
	return s, err
}

func (s *session) close() {
	s.in.Close()
	_ = s.cmd.Wait()
}

// doneMark ends the output of a statement; after it stands its SQLSTATE.
const doneMark = "@@done "

func (s *session) send(sql string) error {
	_, err := fmt.Fprintf(s.in, "%s\n\\echo %s:SQLSTATE\n", sql, doneMark)
	return err
}

// answer is what came of a statement.
type answer struct {
	rows  []string
	state string // SQLSTATE; 00000: fine
}

// receive takes what has come, and reports whether the statement is over. It waits at
// most for d.
func (s *session) receive(a *answer, d time.Duration) (bool, error) {
	timeout := time.After(d)
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				return false, fmt.Errorf("psql has ended")
			}
			if state, done := strings.CutPrefix(line, doneMark); done {
				a.state = state
				return true, nil
			}
			if line != "" {
				a.rows = append(a.rows, line)
			}
		case <-timeout:
			return false, nil
		}
	}
}

// query runs a statement that waits for nobody, and returns its output.
func (s *session) query(sql string) (string, error) {
	if err := s.send(sql); err != nil {
		return "", err
	}
	var a answer
	done, err := s.receive(&a, patience)
	switch {
	case err != nil:
		return "", err
	case !done:
		return "", fmt.Errorf("no answer to %s", sql)
	case a.state != "00000":
		return "", fmt.Errorf("SQLSTATE %s: %s", a.state, sql)
	}
	return strings.Join(a.rows, "\n"), nil
}

// pgTxn is a transaction of the schedule on the server.
type pgTxn struct {
	txn     schedule.Txn
	s       *session
	begun   bool
	over    bool
	waiting *schedule.Op  // what waits
	since   time.Time     // how long it has been seen to
	queue   []schedule.Op // to be sent when that is over
	partial answer
	seen    map[schedule.Item]int64
}

// pgRun is a schedule under way on the server.
type pgRun struct {
	control *session
	level   string
	items   []schedule.Item
	txns    []*pgTxn
	out     outcome
}

// runPostgres runs a schedule at an isolation level. Operations are sent in their order,
// each when the one before it is over or waits, as sim.RunSchedule submits them.
func runPostgres(host string, control *session, s *schedule.Schedule, level string) (outcome, error) {
	s = s.Completed(schedule.CommitAtEnd)
	r := &pgRun{control: control, level: level, items: s.Items()}
	if err := r.fill(s); err != nil {
		return outcome{}, err
	}
	for _, t := range s.Txns() {
		x, err := open(host)
		if err != nil {
			return outcome{}, err
		}
		defer x.close()
		r.txns = append(r.txns, &pgTxn{txn: t, s: x, seen: map[schedule.Item]int64{}})
	}
	for _, op := range s.Ops {
		t := r.txns[slices.IndexFunc(r.txns, func(t *pgTxn) bool { return t.txn == op.Txn })]
		if t.waiting != nil {
			t.queue = append(t.queue, op)
			continue
		}
		if err := r.do(t, op); err != nil {
			return outcome{}, err
		}
		if err := r.settle(); err != nil {
			return outcome{}, err
		}
	}
	final, err := control.query("SELECT name || '=' || v FROM item ORDER BY k;")
	if err != nil {
		return outcome{}, err
	}
	r.out.final = strings.Fields(final)
	return r.out, nil
}

// fill makes the table and the rows that are there before the schedule.
func (r *pgRun) fill(s *schedule.Schedule) error {
	sql := "DROP TABLE IF EXISTS item; CREATE TABLE item (k int PRIMARY KEY, name text, v bigint);"
	for _, in := range s.Initial {
		sql += fmt.Sprintf(" INSERT INTO item VALUES (%d, '%s', %d);", r.key(in.Item), in.Item, in.Value)
	}
	_, err := r.control.query("SET client_min_messages = error; " + sql)
	return err
}

func (r *pgRun) key(it schedule.Item) int {
	i, _ := slices.BinarySearchFunc(r.items, it, schedule.CompareItems)
	return i
}

// do sends an operation and takes its answer, or finds that it waits.
func (r *pgRun) do(t *pgTxn, op schedule.Op) error {
	if t.over {
		return nil
	}
	sql, err := r.sql(t, op)
	if err != nil || sql == "" {
		return err
	}
	if !t.begun {
		t.begun = true
		sql = "BEGIN ISOLATION LEVEL " + r.level + "; " + sql
	}
	if err := t.s.send(sql); err != nil {
		return err
	}
	t.partial = answer{}
	for begun := time.Now(); time.Since(begun) < patience; {
		done, err := t.s.receive(&t.partial, 2*time.Millisecond)
		if err != nil {
			return err
		}
		if done {
			return r.over(t, op)
		}
		blocked, err := r.blocked(t)
		if err != nil {
			return err
		}
		if blocked {
			t.waiting, t.since = &op, time.Now()
			r.out.waits = append(r.out.waits, t.txn)
			return nil
		}
	}
	return fmt.Errorf("%s neither ends nor waits", op)
}

// blocked reports whether the server lets t wait for another.
func (r *pgRun) blocked(t *pgTxn) (bool, error) {
	out, err := r.control.query("SELECT cardinality(pg_blocking_pids(" + t.s.pid + "));")
	return out != "0", err
}

// settle takes the answers of those that waited, until whoever still waits has done so
// for longer than the search for deadlocks takes.
func (r *pgRun) settle() error {
	for {
		moved, young := false, false
		for _, t := range r.txns {
			if t.waiting == nil {
				continue
			}
			done, err := t.s.receive(&t.partial, time.Millisecond)
			if err != nil {
				return err
			}
			if !done {
				blocked, err := r.blocked(t)
				if err != nil {
					return err
				}
				young = young || !blocked || time.Since(t.since) < settled
				continue
			}
			op := *t.waiting
			t.waiting = nil
			moved = true
			if err := r.over(t, op); err != nil {
				return err
			}
			queue := t.queue
			t.queue = nil
			for i, next := range queue {
				if err := r.do(t, next); err != nil {
					return err
				}
				if t.waiting != nil {
					t.queue = queue[i+1:]
					break
				}
			}
		}
		if !moved && !young {
			return nil
		}
	}
}

// over takes the answer to an operation. After an error the transaction is rolled back.
func (r *pgRun) over(t *pgTxn, op schedule.Op) error {
	if t.partial.state != "00000" {
		t.over = true
		r.out.aborts = append(r.out.aborts, t.txn)
		_, err := t.s.query("ROLLBACK;")
		return err
	}
	t.over = op.Kind.Ends()
	if !op.Kind.Reads() {
		return nil
	}
	var values []string
	for _, row := range t.partial.rows {
		name, v, _ := strings.Cut(row, " ")
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return fmt.Errorf("%s: row %q", op, row)
		}
		t.seen[schedule.Item(name)] = n
		values = append(values, name+"="+v)
	}
	r.out.reads = append(r.out.reads, op.String()+" "+strings.Join(values, ","))
	return nil
}

// sql is an operation in SQL.
func (r *pgRun) sql(t *pgTxn, op schedule.Op) (string, error) {
	clause := ""
	switch op.Lock {
	case schedule.Plain:
	case schedule.ForShare:
		clause = " FOR SHARE"
	case schedule.ForUpdate:
		clause = " FOR UPDATE"
	default:
		panic("pgschedules: unknown lock clause")
	}
	switch {
	case op.Wait == schedule.Wait:
	case op.Wait == schedule.NoWait && clause != "":
		clause += " NOWAIT"
	case op.Wait == schedule.SkipLocked && clause != "":
		clause += " SKIP LOCKED"
	default:
		return "", fmt.Errorf("%s has no counterpart in SQL", op)
	}
	switch op.Kind {
	case schedule.Begin:
		return "", nil // with the first statement, which takes the snapshot
	case schedule.Read:
		return fmt.Sprintf("SELECT name, v FROM item WHERE k = %d%s;", r.key(op.Item), clause), nil
	case schedule.Scan:
		lo := r.key(op.Item)
		hi, in := slices.BinarySearchFunc(r.items, op.End, schedule.CompareItems)
		if in {
			hi++
		}
		return fmt.Sprintf("SELECT name, v FROM item WHERE k >= %d AND k < %d ORDER BY k%s;", lo, hi, clause), nil
	case schedule.Write, schedule.Insert:
		n, err := t.eval(op)
		if err != nil {
			return "", err
		}
		t.seen[op.Item] = n
		if op.Kind == schedule.Insert {
			return fmt.Sprintf("INSERT INTO item VALUES (%d, '%s', %d);", r.key(op.Item), op.Item, n), nil
		}
		return fmt.Sprintf("UPDATE item SET v = %d WHERE k = %d;", n, r.key(op.Item)), nil
	case schedule.Delete:
		return fmt.Sprintf("DELETE FROM item WHERE k = %d;", r.key(op.Item)), nil
	case schedule.Savepoint:
		return "SAVEPOINT " + op.Savepoint + ";", nil
	case schedule.RollbackTo:
		return "ROLLBACK TO SAVEPOINT " + op.Savepoint + ";", nil
	case schedule.Release:
		return "RELEASE SAVEPOINT " + op.Savepoint + ";", nil
	case schedule.Commit:
		return "COMMIT;", nil
	case schedule.Abort:
		return "ROLLBACK;", nil
	default:
		panic("pgschedules: unknown operation " + op.Kind.String())
	}
}

// eval computes what a write writes, from what its transaction last saw.
func (t *pgTxn) eval(op schedule.Op) (int64, error) {
	if op.Value == nil {
		return 0, fmt.Errorf("%s: the schedule does not say what it writes", op)
	}
	sum := int64(0)
	for _, x := range op.Value {
		n := x.Number
		if x.Item != "" {
			var ok bool
			if n, ok = t.seen[x.Item]; !ok {
				return 0, fmt.Errorf("%s uses %s, which %v has not read", op, x.Item, t.txn)
			}
		}
		if x.Minus {
			n = -n
		}
		sum += n
	}
	return sum, nil
}
