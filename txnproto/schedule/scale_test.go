//go:build !slow

package schedule

// effort multiplies the number of random schedules.
const effort = 1
