package txnproto

import (
	"fmt"
	"strings"
	"time"

	"interleave/sim/rng"
)

// RetryPolicy says how long a client waits before it tries an aborted request again.
type RetryPolicy uint8

// The policies.
const (
	RetryImmediate   RetryPolicy = iota // at once
	RetryFixed                          // after Base
	RetryExponential                    // after Base, twice that, … up to Max
	RetryAdaptive                       // after an exponential time whose mean is the mean latency so far (Agrawal, Carey, Livny 1987), at most Max
)

// RetryPolicyNames are the policies' names in a spec, indexed by RetryPolicy.
var RetryPolicyNames = []string{"immediate", "fixed", "exponential", "adaptive"}

// ParseRetryPolicy reads a policy's name.
func ParseRetryPolicy(s string) (RetryPolicy, error) {
	for i, n := range RetryPolicyNames {
		if n == s {
			return RetryPolicy(i), nil
		}
	}
	return 0, fmt.Errorf("retry: unknown policy %q: want one of %s", s, strings.Join(RetryPolicyNames, ", "))
}

// Retry is a client's way with aborted attempts.
type Retry struct {
	Policy      RetryPolicy
	Base        time.Duration // fixed, exponential: the first wait
	Max         time.Duration // exponential, adaptive: the longest wait
	Jitter      float64       // fixed, exponential: share of the wait that is random, 0 to 1
	MaxAttempts int           // 0: no bound
	FreshKeys   bool          // a retry draws new keys instead of repeating its own
}

// Delay returns the wait before attempt number next (2 for the first retry),
// from the 64 random bits u; mean is the mean latency of committed requests so far.
func (r Retry) Delay(next int, mean time.Duration, u uint64) time.Duration {
	var d time.Duration
	switch r.Policy {
	case RetryImmediate:
		return 0
	case RetryFixed:
		d = r.Base
	case RetryExponential:
		d = r.Base
		for i := 2; i < next && d < r.Max; i++ {
			d *= 2
		}
		d = min(d, r.Max)
	case RetryAdaptive:
		if mean <= 0 {
			mean = r.Base
		}
		// Unbounded, the wait would feed on the latency that it makes longer itself.
		d := rng.Exponential(mean)
		return min(d.At(u), r.Max)
	default:
		panic("txnproto: unknown retry policy")
	}
	// The random part is d × jitter × [0, 1), computed in integers so that every
	// processor gets the same: jitter in millionths, the random in 2^-32.
	random := int64(d) / 1000 * int64(r.Jitter*1e6) / 1000
	hi := int64(u >> 33)
	return d - time.Duration(random) + time.Duration(float64(random)*float64(float64(hi)/(1<<31)))
}
