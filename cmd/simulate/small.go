package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"interleave/sim"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Args: noArgs,
		Short: "Print the JSON Schema of a spec file",
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(sim.Schema())
			return err
		},
	}
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Args: noArgs,
		Short: "Print the version",
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.out, "simulate "+version())
			return err
		},
	}
}

// version is what the build recorded: the module's version, or the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && (v == "" || v == "(devel)"):
			v = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			v += ", modified"
		}
	}
	return v + ", " + info.GoVersion
}
