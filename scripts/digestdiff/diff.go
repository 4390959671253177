package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// row is what two machines must agree on of one run. Its spec only names it.
type row struct {
	Spec    json.RawMessage `json:"spec"`
	Digest  string          `json:"digest"`
	Verdict string          `json:"verdict"`
}

func load(name string) ([]row, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	rows, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return rows, nil
}

func parse(data []byte) ([]row, error) {
	var doc struct {
		Runs []row `json:"runs"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if len(doc.Runs) == 0 {
		return nil, fmt.Errorf("no runs in it")
	}
	for i, r := range doc.Runs {
		if r.Digest == "" {
			return nil, fmt.Errorf("run %d has no digest", i+1)
		}
	}
	return doc.Runs, nil
}

// differ writes the rows in which a and b differ and returns their number.
func differ(a, b []row, nameA, nameB string, w io.Writer) int {
	n := 0
	for i := range max(len(a), len(b)) {
		var ra, rb row
		if i < len(a) {
			ra = a[i]
		}
		if i < len(b) {
			rb = b[i]
		}
		if ra.Digest == rb.Digest && ra.Verdict == rb.Verdict {
			continue
		}
		n++
		fmt.Fprintf(w, "row %d: %s\n", i+1, name(ra, rb))
		fmt.Fprintf(w, "  %-12s %s\n  %-12s %s\n", nameA, outcome(ra), nameB, outcome(rb))
	}
	return n
}

func outcome(r row) string {
	if r.Digest == "" {
		return "no such row"
	}
	return r.Digest + " " + r.Verdict
}

func name(a, b row) string {
	spec := a.Spec
	if len(spec) == 0 {
		spec = b.Spec
	}
	var line bytes.Buffer
	if json.Compact(&line, spec) != nil {
		return "(no spec)"
	}
	return line.String()
}
