package txnproto

import (
	"fmt"
	"strconv"
)

// Describer is implemented by controllers that can show what they keep, to people
// who want to see why they decide as they do: the lock table, timestamps, validation
// numbers.
type Describer interface {
	// Describe returns the state in lines that end in newlines, the same for the same
	// state; "" when there is nothing to show.
	Describe(n *Names) string
}

// Names call keys and attempts as the reader of a description knows them. A nil
// *Names calls them by their numbers.
type Names struct {
	Keys func(Key) string
	Txns func(TxnID) string
}

// Key returns the name of k.
func (n *Names) Key(k Key) string {
	if n == nil || n.Keys == nil {
		return strconv.FormatUint(uint64(k), 10)
	}
	return n.Keys(k)
}

// Txn returns the name of t.
func (n *Names) Txn(t TxnID) string {
	if n == nil || n.Txns == nil {
		return t.String()
	}
	return n.Txns(t)
}

// Range returns the name of the keys from lo up to but not including hi.
func (n *Names) Range(lo, hi Key) string {
	if n == nil || n.Keys == nil {
		return fmt.Sprintf("[%d,%d)", lo, hi)
	}
	if lo+1 >= hi {
		return "[" + n.Key(lo) + "]"
	}
	return "[" + n.Key(lo) + ".." + n.Key(hi-1) + "]"
}
