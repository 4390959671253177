//go:build !slow

package locking

const (
	seedsPerMember = 4
	basicSeeds     = 60
)
