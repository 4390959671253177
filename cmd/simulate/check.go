package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"interleave/nodes"
	"interleave/sim"
	"interleave/txnproto"
	"interleave/txnproto/history"
)

func (a *app) checkCommand() *cobra.Command {
	var level string
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Judge a recorded history against an isolation level",
		Long: `Judge a recorded history (simulate run --history FILE), - for standard input, against
the level that its protocol promised, or another one. Every kind of anomaly is shown with
its smallest cycle. The exit code is 1 when the level was not kept.`,
		Example: "  simulate run --protocol 2pl --distribution uniform --history h.jsonl\n  simulate check h.jsonl --level strict-serializable",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return badf("file: %d given: want one history file, or - for standard input", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.check(args[0], level) },
	}
	c.Flags().StringVar(&level, "level", "", "level to judge against instead of the promised one: "+levelNames())
	_ = c.RegisterFlagCompletionFunc("level", cobra.FixedCompletions(strings.Split(levelNames(), ", "), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func levelNames() string {
	var names []string
	for _, l := range history.Levels() {
		names = append(names, l.String())
	}
	return strings.Join(names, ", ")
}

func (a *app) check(file, level string) error {
	in := a.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return badf("file: %w", err)
		}
		defer f.Close()
		in = f
	}
	res, h, err := judge(in, level)
	if err != nil {
		return badf("%s: %w", file, err)
	}
	if h.Protocol != "" {
		fmt.Fprintf(a.out, "%s, seed %d: ", h.Protocol, h.Seed)
	}
	text := res.String()
	if res.Promised != h.Level {
		text = res.Against(h.Level)
	}
	fmt.Fprintln(a.out, strings.TrimRight(text, "\n"))
	if !res.OK {
		a.code = exitFailed
	}
	return nil
}

// judge reads a history and checks it. Its errors are the file's or the level's.
func judge(in io.Reader, level string) (*history.Result, *history.Header, error) {
	r, err := history.NewReader(in)
	if err != nil {
		return nil, nil, err
	}
	promised := r.Header.Level
	if level != "" {
		if promised, err = history.ParseLevel(level); err != nil {
			return nil, nil, fmt.Errorf("level: %w", err)
		}
	}
	shardOf, err := shardOf(&r.Header)
	if err != nil {
		return nil, nil, err
	}
	rec := history.NewRecorder(history.Options{
		Promised: promised, RealTime: promised == history.StrictSerializable,
		ShardOf: shardOf, Present: r.Header.Present(),
	})
	if err := r.ReadAll(rec); err != nil {
		return nil, nil, err
	}
	return rec.Check(), &r.Header, nil
}

// shardOf returns the placement of keys in the run that a history is of, nil
// when the header does not tell: then no scan may have come in pieces.
func shardOf(h *history.Header) (func(history.Key) history.ShardID, error) {
	if h.Spec == "" {
		return nil, nil
	}
	spec := sim.NewSpec()
	if err := spec.Load("field spec", []byte(h.Spec)); err != nil {
		return nil, fmt.Errorf("history file: line 1: header: %w", err)
	}
	runs, err := spec.Expand()
	if err != nil {
		return nil, fmt.Errorf("history file: line 1: header: field spec: %w", err)
	}
	p, err := nodes.NewPlacement(runs[0].Placement, runs[0].Shards, h.BaseKeys)
	if err != nil {
		return nil, fmt.Errorf("history file: line 1: header: field spec: %w", err)
	}
	return func(k history.Key) history.ShardID { return history.ShardID(p.ShardOf(txnproto.Key(k))) }, nil
}
