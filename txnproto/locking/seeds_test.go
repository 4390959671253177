//go:build !slow

package locking

const (
	seedsPerMember = 4
	basicSeeds     = 40
	basicThree     = 1 // of conflicts of three programs, how many are tried
)
