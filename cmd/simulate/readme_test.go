package main

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"interleave/sim"
)

// readmeBlock is a fenced block of the README: lines[from:to] lie between fences,
// indented by indent.
type readmeBlock struct {
	console  bool
	from, to int
	indent   string
}

var fence = regexp.MustCompile("^( *)```([a-z]*)$")

func blocksOf(t *testing.T, lines []string) []readmeBlock {
	t.Helper()
	var blocks []readmeBlock
	for i := 0; i < len(lines); i++ {
		m := fence.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		b := readmeBlock{console: m[2] == "console", from: i + 1, indent: m[1]}
		for i++; i < len(lines) && lines[i] != b.indent+"```"; i++ {
		}
		if i == len(lines) {
			t.Fatalf("README.md:%d: the block has no end", b.from)
		}
		b.to = i
		blocks = append(blocks, b)
	}
	return blocks
}

// TestReadmeShowsWhatIsPrinted runs each command of the README that an output
// follows, and wants each paragraph of that output letter by letter. With -rewrite
// it puts in what is printed from the same first line on, or from one that begins
// like it, as many lines.
func TestReadmeShowsWhatIsPrinted(t *testing.T) {
	const path = "../../README.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rewrite := flag.Lookup("rewrite").Value.String() == "true"
	lines := strings.Split(string(text), "\n")
	blocks := blocksOf(t, lines)
	shown := 0
	for i, b := range blocks[:len(blocks)-1] {
		out := blocks[i+1]
		if !b.console || out.console || strings.TrimSpace(strings.Join(lines[b.to+1:out.from-1], "")) != "" {
			continue
		}
		commands := strings.ReplaceAll(strings.Join(lines[b.from:b.to], "\n"), "\\\n", " ")
		all := strings.Split(strings.TrimSpace(commands), "\n")
		args, ok := strings.CutPrefix(strings.TrimSpace(all[len(all)-1]), "$ go run ./cmd/simulate")
		if !ok {
			continue
		}
		shown++
		line := words(t, args)
		if len(line) == 0 {
			line = []string{"run"} // the same, and not the arguments of this process
		}
		printed, errs, _ := command(sim.Run, "", line...)
		for _, p := range paragraphs(lines, out) {
			want := excerpt(lines[p.from:p.to], out.indent)
			switch {
			case strings.Contains(printed, want):
			case !rewrite:
				t.Errorf("README.md:%d: simulate%s does not print this (-rewrite puts in what it prints):\n%s\nprinted:\n%s%s", p.from+1, args, want, printed, errs)
			case !replace(lines[p.from:p.to], out.indent, printed):
				t.Errorf("README.md:%d: simulate%s prints no line that begins like this:\n%s\nprinted:\n%s%s", p.from+1, args, want, printed, errs)
			}
		}
	}
	if shown < 5 {
		t.Errorf("the README shows the output of %d commands, want at least 5", shown)
	}
	if rewrite {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// paragraphs returns the parts of b between empty lines.
func paragraphs(lines []string, b readmeBlock) []readmeBlock {
	var out []readmeBlock
	from := b.from
	for i := b.from; i <= b.to; i++ {
		if i < b.to && strings.TrimSpace(lines[i]) != "" {
			continue
		}
		if i > from {
			out = append(out, readmeBlock{from: from, to: i, indent: b.indent})
		}
		from = i + 1
	}
	return out
}

// replace puts as many printed lines in the place of lines, from the first on that
// is theirs or, if none is, begins like it. It reports whether there is one.
func replace(lines []string, indent, printed string) bool {
	const alike = 20
	first := strings.TrimPrefix(lines[0], indent)
	all := strings.Split(printed, "\n")
	at := slices.Index(all, first)
	if at < 0 {
		at = slices.IndexFunc(all, func(l string) bool { return strings.HasPrefix(l, first[:min(alike, len(first))]) })
	}
	if at < 0 || at+len(lines) > len(all) {
		return false
	}
	for i := range lines {
		lines[i] = indent + all[at+i]
	}
	return true
}

// excerpt returns the lines as they were printed, without the README's indentation.
func excerpt(lines []string, indent string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimPrefix(l, indent) + "\n")
	}
	return b.String()
}
