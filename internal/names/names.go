// Package names finds what somebody meant who wrote a name that does not exist.
package names

import "strings"

// Nearest returns the known name that name was most likely meant to be, whatever
// its case, or "" when none is near: at most a third of its letters differ, or two
// where it has more than three, and some letter is the same.
func Nearest(name string, known []string) string {
	most := max(2, len(name)/3)
	if len(name) <= 3 {
		most = 1
	}
	best, bestAt := "", most+1
	for _, k := range known {
		d := distance(strings.ToLower(name), strings.ToLower(k))
		if d < bestAt && d < max(len(name), len(k)) {
			best, bestAt = k, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour to get from a to b (the restricted Damerau–Levenshtein distance).
func distance(a, b string) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
