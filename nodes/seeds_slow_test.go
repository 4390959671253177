//go:build slow

package nodes

// crashSeeds is how many random runs with crashes the slow tests make.
const crashSeeds = 600
