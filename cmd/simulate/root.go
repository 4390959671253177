package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"interleave/internal/names"
	"interleave/reports"
	"interleave/sim"
	"interleave/txnproto/schedule"
)

// Exit codes.
const (
	exitOK        = 0
	exitFailed    = 1   // a check failed, or a run broke down
	exitBadInput  = 2   // what was asked for makes no sense
	exitInterrupt = 130 // stopped by a signal, as shells have it
)

// engine carries out one run: sim.Run, or a substitute in tests. When ctx is
// done it returns what there is so far, with the verdict cut-short.
type engine func(ctx context.Context, r sim.RunSpec, o sim.Options) (*reports.Result, error)

// app is one invocation of the command.
type app struct {
	run      engine
	in       io.Reader
	out, err io.Writer
	code     int // exit code of a command that ended without an error
}

// errBadInput marks errors of the user's.
type errBadInput struct{ error }

// errInterrupted says how far a command was when a signal came.
type errInterrupted struct{ what string }

func (e errInterrupted) Error() string { return e.what }

func bad(err error) error {
	if err == nil {
		return nil
	}
	return errBadInput{err}
}

func badf(format string, args ...any) error { return errBadInput{fmt.Errorf(format, args...)} }

// execute runs the command line args and returns the exit code. An error is
// one line on a.err.
func (a *app) execute(ctx context.Context, args []string) int {
	out := &output{to: a.out}
	a.out = out
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if err == nil && out.err != nil {
		err = fmt.Errorf("write the output: %w", out.err)
	}
	var input errBadInput
	var interrupted errInterrupted
	var syntax *schedule.SyntaxError
	switch {
	case err == nil:
		return a.code
	case errors.As(err, &syntax): // several lines: it points at the token
		fmt.Fprintln(a.err, "simulate: schedule: "+syntax.Error())
		return exitBadInput
	case errors.As(err, &input):
		fmt.Fprintln(a.err, "simulate: "+oneLine(err.Error()))
		return exitBadInput
	case errors.As(err, &interrupted):
		fmt.Fprintln(a.err, "simulate: "+interrupted.what)
		return exitInterrupt
	default:
		fmt.Fprintln(a.err, "simulate: "+err.Error())
		return exitFailed
	}
}

// output is where a command prints. It keeps the first error, which most of them
// do not look at.
type output struct {
	to  io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

const rootHelp = `Interleave simulates distributed concurrency control: clients run transactions on
replicated, sharded storage under the protocols you choose, in virtual time, and every
run is checked for the isolation it promises. Same spec, same seed, same result.

Examples:
  simulate                                        the default comparison: 2pl, to and occ,
                                                  uniform and skewed keys, real Raft
  simulate --protocol 2pl,occ --theta 0.5,0.9,1.2 --distribution zipfian
  simulate --workload bank --keys 20 --clients 50
  simulate --workload two-transfers --protocol 2pl
  simulate --replication quorum --requests 100000 --format csv
  simulate run --print-spec > mine.yaml           then: simulate --spec mine.yaml --seed 2
  simulate verify --runs 20                       the same thing 20 times: one digest

Commands:
  run         compare protocols (the default command)
  list        protocols, workloads, distributions, networks, metrics
  verify      repeat a comparison and compare what happened, event by event
  schedule    classify a textbook schedule, r1(x) w2(x) c1 c2, and run it under each protocol
  check       judge a recorded history (run --history FILE) against an isolation level
  schema      print the JSON Schema of a spec file
  completion  print a completion script for a shell
  version     print the version

Often used flags (all of them: simulate run --help):
  --protocol 2pl,to,occ     --workload ycsb      --distribution uniform,zipfian
  --theta 0.99              --keys 10000         --ops 10          --clients 24
  --replication raft        --network lan        --requests 2000   --seed 1
  --spec FILE               --format table       --history FILE    --print-spec

Exit codes: 0 fine; 1 a check failed; 2 bad input; 130 interrupted.
`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "simulate",
		Short:         "Compare concurrency controls on simulated replicated storage",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	run, schedules := a.runCommand(), a.scheduleCommand()
	commands := []*cobra.Command{run, a.listCommand(), a.verifyCommand(), a.checkCommand(), schedules, a.schemaCommand(), a.versionCommand(), a.workerCommand()}
	root.AddCommand(commands...)
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "print the help of a command",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return badf("help: %q is no command: see simulate help", strings.Join(args, " "))
			}
			return c.Help()
		},
	})
	root.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		if args[0] == "true" || args[0] == "false" {
			return noArgs(nil, args)
		}
		var names []string
		for _, c := range root.Commands() {
			if !c.Hidden {
				names = append(names, c.Name())
			}
		}
		return badf("command: %q is unknown: want one of %s", args[0], strings.Join(names, ", "))
	}
	root.SetOut(a.out) // completion keeps what it is now
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return badf("completion: %q is unknown: want one of bash, fish, powershell, zsh", args[0])
			}
			return c.Help()
		}
		for _, shell := range c.Commands() {
			shell.Args = noArgs
		}
	}
	// Without a subcommand the flags are those of run, which then runs.
	addRunFlags := func() { root.Flags().AddFlagSet(run.Flags()) }
	addRunFlags()
	root.RunE = func(_ *cobra.Command, _ []string) error { return run.RunE(run, nil) }
	root.SetFlagErrorFunc(flagError)
	inherited := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		switch c {
		case root:
			fmt.Fprint(a.out, rootHelp)
		case run:
			writeRunHelp(a.out, run.Flags())
		case schedules:
			writeScheduleHelp(a.out, c)
		default:
			inherited(c, args)
		}
	})
	// The root's own RunE calls run's, which then has no context of its own. It
	// must be the root's: the one that a signal ends.
	root.PersistentPreRun = func(*cobra.Command, []string) { run.SetContext(root.Context()) }
	return root
}

// flagError names the nearest flag to one that does not exist.
func flagError(c *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		hint := "see " + c.CommandPath() + " --help"
		if !c.HasParent() {
			hint = "see simulate run --help"
		}
		if n := names.Nearest(unknown.GetSpecifiedName(), known); n != "" {
			hint = fmt.Sprintf("did you mean --%s?", n)
		}
		return badf("flag --%s is unknown: %s", unknown.GetSpecifiedName(), hint)
	}
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return badf("%s: %q is not allowed: want %s", value.GetFlag().Name, value.GetValue(), allowed(value.GetFlag()))
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		return badf("%s: no value is given: want %s", missing.GetSpecifiedName(), allowed(missing.GetFlag()))
	}
	return bad(err)
}

// allowed says in words what a flag takes.
func allowed(f *pflag.Flag) string {
	if field, ok := f.Value.(*fieldFlag); ok {
		return field.field.Allowed()
	}
	switch t := f.Value.Type(); t {
	case "int":
		return "a whole number"
	case "bool":
		return "true or false"
	case "string":
		return "text"
	default:
		return "a value of type " + t
	}
}

func main() {
	ctx, stop := interruptible(os.Args[1:])
	defer stop()
	a := &app{run: sim.Run, in: os.Stdin, out: os.Stdout, err: os.Stderr}
	os.Exit(a.execute(ctx, os.Args[1:]))
}
