package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"interleave/internal/names"
)

// unknownName is the error for a name that no registry has.
func unknownName(field, name string, known []string) error {
	hint := ""
	if n := names.Nearest(name, known); n != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", n)
	}
	return fmt.Errorf("%s: %q is unknown%s: want one of %s", field, name, hint, strings.Join(known, ", "))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
