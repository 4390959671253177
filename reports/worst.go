package reports

import (
	"cmp"
	"time"

	"interleave/txnproto"
)

// worstShown is how many starved requests are listed.
const worstShown = 5

// sufferer is a starved request.
type sufferer struct {
	request  txnproto.RequestID
	client   txnproto.ClientID
	class    txnproto.ClassID
	attempts int
	age      time.Duration
	ended    string
	reason   txnproto.AbortReason
}

// compareSufferers puts the one that fared worse first: who needed more
// attempts, then who took longer.
func compareSufferers(a, b *sufferer) int {
	return cmp.Or(
		cmp.Compare(b.attempts, a.attempts),
		cmp.Compare(b.age, a.age),
		cmp.Compare(a.request, b.request),
	)
}

// worstList holds the worst sufferers offered, worst first.
type worstList struct {
	n    int
	list [worstShown]sufferer
}

func (w *worstList) offer(s sufferer) {
	i := w.n
	for i > 0 && compareSufferers(&s, &w.list[i-1]) < 0 {
		i--
	}
	if i == worstShown {
		return
	}
	w.n = min(w.n+1, worstShown)
	copy(w.list[i+1:w.n], w.list[i:w.n-1])
	w.list[i] = s
}
