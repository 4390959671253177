//go:build slow

package locking

const seedsPerMember = 50
