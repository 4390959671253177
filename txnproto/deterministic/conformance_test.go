package deterministic

import (
	"testing"

	"interleave/txnproto/conformance"
)

func TestConformance(t *testing.T) { conformance.Run(t, "calvin") }
