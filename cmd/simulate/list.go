package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"interleave/internal/names"
	"interleave/reports"
	"interleave/sim/netsim"
	"interleave/sim/rng"
	"interleave/txnproto"
	"interleave/workloads"
)

// listings are what there is to list, in order.
var listings = []struct {
	name  string
	write func(io.Writer)
}{
	{"protocols", listProtocols},
	{"workloads", listWorkloads},
	{"distributions", listDistributions},
	{"networks", listNetworks},
	{"metrics", listMetrics},
}

func listingNames() []string {
	var names []string
	for _, l := range listings {
		names = append(names, l.name)
	}
	return names
}

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "list [" + strings.Join(listingNames(), "|") + "]",
		Short:     "List protocols, workloads, distributions, networks or metrics",
		Long:      "List what a comparison can be made of, with its parameters, their ranges and defaults;\nand the metrics, with what each name in the JSON output means.",
		ValidArgs: listingNames(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return badf("list: %q is one too many: want at most one of %s", args[1], strings.Join(listingNames(), ", "))
			}
			for _, l := range listings {
				if len(args) == 0 || l.name == args[0] {
					return nil
				}
			}
			hint := ""
			if n := names.Nearest(args[0], listingNames()); n != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", n)
			}
			return badf("list: %q is unknown%s: want one of %s", args[0], hint, strings.Join(listingNames(), ", "))
		},
		RunE: func(_ *cobra.Command, args []string) error {
			first := true
			for _, l := range listings {
				if len(args) == 1 && args[0] != l.name {
					continue
				}
				if !first {
					fmt.Fprintln(a.out)
				}
				first = false
				if len(args) == 0 {
					fmt.Fprintln(a.out, strings.ToUpper(l.name))
				}
				l.write(a.out)
			}
			return nil
		},
	}
}

func writeParams(w io.Writer, params []txnproto.Param) {
	for _, p := range params {
		def := p.Default
		if def == "" {
			def = "none"
		}
		fmt.Fprintf(w, "      %-20s %s; %s (default %s)\n", p.Name, p.Help, p.Allowed(), def)
	}
}

func listProtocols(w io.Writer) {
	for _, p := range txnproto.Protocols() {
		fmt.Fprintf(w, "  %-14s %s\n", p.Name, p.Help)
		fmt.Fprintf(w, "      family: %s; promises: %s\n      source: %s\n", p.Family, p.Promise, p.Source)
		if p.Draws != 0 {
			clocks := ""
			if p.OnClocks() {
				clocks = "; they may come from loose clocks"
			}
			fmt.Fprintf(w, "      draws timestamps: %v%s\n", p.Draws, clocks)
		}
		if p.WaitClauses {
			fmt.Fprintln(w, "      wait clauses: an operation that would have to wait may fail, leave the row out, or wait for so long")
		}
		writeParams(w, p.Params)
	}
}

func listWorkloads(w io.Writer) {
	for _, k := range workloads.Workloads() {
		fmt.Fprintf(w, "  %-14s %s\n", k.Name, k.Help)
		writeParams(w, k.Params)
	}
}

func listDistributions(w io.Writer) {
	fmt.Fprintln(w, "  Of keys (--distribution):")
	for _, c := range rng.Choosers() {
		fmt.Fprintf(w, "  %-18s %s\n", c.Name, c.Help)
		for _, p := range c.Params {
			fmt.Fprintf(w, "      %-16s %s; %s (default %g)\n", p.Name, p.Help, p.Range(), p.Default)
		}
	}
	fmt.Fprintln(w, "  Of durations (--think, --cpu-op, --fsync, …):")
	for _, d := range rng.Dists() {
		fmt.Fprintf(w, "  %-36s %s\n", d.Form, d.Help)
	}
}

func listNetworks(w io.Writer) {
	for _, p := range netsim.Presets() {
		fmt.Fprintf(w, "  %-14s %s\n      zones: %s\n", p.Name, p.Help, strings.Join(p.Zones, ", "))
	}
}

func listMetrics(w io.Writer) {
	for _, m := range reports.Metrics() {
		fmt.Fprintf(w, "  %-20s %s\n", m.Name, m.Help)
	}
}
