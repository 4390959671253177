// Command digestdiff compares two outputs of `simulate run --format json` row
// by row and prints the rows whose digest or verdict differ.
//
//	go run ./scripts/digestdiff A.json B.json
//
// Exit status: 0 every row is equal, 1 some row differs, 2 the files cannot be
// compared.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: digestdiff A.json B.json")
		os.Exit(2)
	}
	a, err := load(os.Args[1])
	if err != nil {
		fail(err)
	}
	b, err := load(os.Args[2])
	if err != nil {
		fail(err)
	}
	differing := differ(a, b, label(os.Args[1]), label(os.Args[2]), os.Stdout)
	if differing > 0 {
		fmt.Printf("%d of %d rows differ\n", differing, max(len(a), len(b)))
		os.Exit(1)
	}
	fmt.Printf("%d rows, equal digests and verdicts\n", len(a))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "digestdiff:", err)
	os.Exit(2)
}

func label(name string) string { return strings.TrimSuffix(filepath.Base(name), ".json") }
