// Package units writes values for reading.
package units

import (
	"strings"
	"time"
)

// Duration writes d as time.ParseDuration reads it, and as short as it can be without
// another unit: 3m and 1h30m where d.String has 3m0s and 1h30m0s.
func Duration(d time.Duration) string {
	s := d.String()
	if t, ok := strings.CutSuffix(s, "m0s"); ok {
		s = t + "m"
	}
	if t, ok := strings.CutSuffix(s, "h0m"); ok {
		s = t + "h"
	}
	return s
}
