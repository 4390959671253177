package reports

import "time"

// edgeAttempts is how many attempts' mean work a client may have under way at
// an edge of the window: attempts differ, and long ones are many times the mean.
const edgeAttempts = 10

// lateShare is the share of processor time that messages about ended attempts may take.
const lateShare = 0.02

// UtilisationLaw returns the law that processors are busy with what attempts
// demand: utilisation = rate of attempts × demand of one. busy is the processors'
// busy time in the window, work what the finished attempts were charged. They
// differ by the work of attempts that the window's edges cut, at most one a
// client at each, and by messages about attempts that have ended already.
func UtilisationLaw(busy, work time.Duration, attempts uint64, clients int) Law {
	const name = "processor time = attempts × demand, in ns"
	each := ratio(max(busy, work), max(attempts, 1))
	edges := float64(2 * edgeAttempts * float64(clients) * each)
	return NewLaw(name, float64(work), float64(busy), edges+float64(lateShare*float64(busy)))
}

// FinishedAttempts returns how many attempts ended in the window.
func (r *Result) FinishedAttempts() uint64 {
	var n uint64
	for i := range r.Classes {
		n += r.Classes[i].AttemptsDone
	}
	return n
}
