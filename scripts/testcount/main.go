// Command testcount reads the output of `go test -json` and prints what a
// person wants of it: one line a package, the full output of what failed, and
// at the end how many tests passed, failed and were skipped.
//
//	go test -json ./... | go run ./scripts/testcount [-totals FILE]
//
// A test with subtests is not counted itself, they are; it counts when it fails
// although none of them did. A package that fails without a failed test (it
// does not build, or its process died) counts as one failure. With -totals,
// `passed failed skipped` is appended to FILE, for a caller that adds up several
// runs. Exit status: 0 all passed, 1 something failed, 2 no test ran or the
// input cannot be read.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	totals := flag.String("totals", "", "append the three counts to this `file`")
	flag.Parse()
	c, err := count(os.Stdin, os.Stdout)
	if err == nil && *totals != "" {
		err = appendLine(*totals, fmt.Sprintln(c.passed, c.failed, c.skipped))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
		os.Exit(2)
	}
	fmt.Println(c)
	switch {
	case c.failed > 0:
		os.Exit(1)
	case c.passed == 0:
		fmt.Fprintln(os.Stderr, "testcount: no test ran")
		os.Exit(2)
	}
}

func appendLine(name, line string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
