//go:build !slow

package nodes

// crashSeeds is how many random runs with crashes the tests make.
const crashSeeds = 24
