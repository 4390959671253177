//go:build slow

package rng

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// TestNoFusedInstructions compiles the package for a processor whose compiler
// fuses a product with a sum wherever it may, and looks for such instructions.
// The golden values would differ there; this finds the line.
func TestNoFusedInstructions(t *testing.T) {
	cmd := exec.Command("go", "build", "-gcflags=interleave/sim/rng=-S", "interleave/sim/rng")
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	listing, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, listing)
	}
	if !regexp.MustCompile(`\bFMULD\b`).Match(listing) {
		t.Fatal("the listing holds no product at all: was nothing compiled?")
	}
	for _, line := range regexp.MustCompile(`(?m)^.*\bFN?M(ADD|SUB)D\b.*$`).FindAll(listing, -1) {
		t.Errorf("%s", line)
	}
}
