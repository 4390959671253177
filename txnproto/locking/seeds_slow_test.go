//go:build slow

package locking

const (
	seedsPerMember = 50
	basicSeeds     = 1000
	basicThree     = 100
)
