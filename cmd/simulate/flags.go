package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"interleave/sim"
)

// specFlags are the settings given on a command line, with the spec file they
// override.
type specFlags struct {
	flags *pflag.FlagSet
	file  string
	set   []setting
}

type setting struct{ name, value string }

// fieldFlag is the flag of one field. It keeps what it is given for later: the
// spec file comes first.
type fieldFlag struct {
	flags *specFlags
	field sim.Field
}

func (f *fieldFlag) String() string { return f.field.Default }

func (f *fieldFlag) Set(v string) error {
	f.flags.set = append(f.flags.set, setting{f.field.Name, v})
	return nil
}

// Type names the value in help.
func (f *fieldFlag) Type() string {
	switch f.field.Kind {
	case sim.KindWhole, sim.KindNumber:
		return "number"
	case sim.KindBool:
		return "bool"
	case sim.KindChoice:
		return "name"
	case sim.KindText:
		return "text"
	case sim.KindDuration:
		return "duration"
	case sim.KindDist:
		return "dist"
	case sim.KindBytes:
		return "bytes"
	case sim.KindMap:
		return "name=value"
	default:
		panic("simulate: unknown kind of field")
	}
}

func addSpecFlags(c *cobra.Command) *specFlags {
	s := &specFlags{flags: c.Flags()}
	c.Flags().StringVar(&s.file, "spec", "", "read settings from a YAML file, - for standard input; flags override it")
	for _, f := range sim.Fields() {
		flag := c.Flags().VarPF(&fieldFlag{s, f}, f.Name, "", f.Help)
		if f.Kind == sim.KindBool {
			flag.NoOptDefVal = "true"
		}
		// Completion knows what is allowed where a registry has it.
		if f.Choices != nil {
			choices := f.Choices()
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	return s
}

// spec returns the settings of the file and the flags together.
func (s *specFlags) spec(in io.Reader) (*sim.Spec, error) {
	spec := sim.NewSpec()
	if s.flags.Changed("spec") {
		if s.file == "" {
			return nil, badf("spec: %q is not allowed: want a file, or - for standard input", s.file)
		}
		var data []byte
		var err error
		if s.file == "-" {
			data, err = io.ReadAll(in)
		} else {
			data, err = os.ReadFile(s.file)
		}
		if err != nil {
			return nil, badf("spec: %w", err)
		}
		if err := spec.Load(s.file, data); err != nil {
			return nil, bad(err)
		}
	}
	for _, v := range s.set {
		if err := spec.Set(v.name, v.value); err != nil {
			return nil, bad(err)
		}
	}
	return spec, nil
}

// outputFlags are how a comparison is carried out and shown.
type outputFlags struct {
	format string
	jobs   int
	wall   bool
}

var formats = []string{"table", "json", "csv"}

func addOutputFlags(c *cobra.Command) *outputFlags {
	o := &outputFlags{}
	c.Flags().StringVar(&o.format, "format", "table", "output: table, json or csv")
	c.Flags().IntVar(&o.jobs, "jobs", runtime.NumCPU(), "runs at a time, each in a process of its own")
	c.Flags().BoolVar(&o.wall, "wall", false, "add wall-clock figures to JSON, which then differs from run to run")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return o
}

func (o *outputFlags) check() error {
	if _, ok := writers[o.format]; !ok {
		return badf("format: %q is unknown: want one of %s", o.format, strings.Join(formats, ", "))
	}
	if o.jobs < 1 {
		return badf("jobs: %d is not allowed: want a whole number from 1 up", o.jobs)
	}
	return nil
}

// writeRunHelp lists every flag under its heading, with its default.
func writeRunHelp(w io.Writer, flags *pflag.FlagSet) {
	fmt.Fprint(w, `Compare concurrency controls: one run for every combination of the settings that take
several values (marked *, separated by commas), protocols beside each other.

Examples:
  simulate run --protocol all --distribution zipfian --theta 0.9
  simulate run --clients 8,16,32,64 --protocol 2pl --distribution zipfian
  simulate run --param 2pl.victim=oldest --workload-param scan-length-max=10
  simulate run --rate 500 --think 0s --duration 10s --warmup 1s
`)
	group := ""
	for _, f := range sim.Fields() {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(w, "\n%s:\n", group)
		}
		name := f.Name
		if f.Many {
			name += " *"
		}
		help := f.Help
		if f.Default != "" {
			help += " (default " + f.Default + ")"
		}
		fmt.Fprintf(w, "  --%-22s %s\n", name, help)
	}
	fmt.Fprint(w, "\nThis command:\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if _, setting := f.Value.(*fieldFlag); setting || f.Name == "help" {
			return
		}
		help := f.Usage
		if f.DefValue != "" && f.DefValue != "false" {
			help += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(w, "  --%-22s %s\n", f.Name, help)
	})
	fmt.Fprint(w, `
A dist is a distribution of durations: 2ms, exp:2ms, lognormal:2ms,0.5 (median, sigma),
uniform:1ms,3ms or empirical:1ms,2ms*3. What a protocol or a workload takes as a
parameter: simulate list protocols, simulate list workloads.
`)
}
