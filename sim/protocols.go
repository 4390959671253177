package sim

// The protocols register themselves.
import (
	_ "interleave/txnproto/deterministic"
	_ "interleave/txnproto/locking"
	_ "interleave/txnproto/optimistic"
	_ "interleave/txnproto/snapshot"
	_ "interleave/txnproto/timestamp"
)
