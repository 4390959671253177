package optimistic

import "interleave/txnproto"

// number is a transaction number: given at validation, in order, from 1.
type number uint64

// record is a validated transaction, kept while it is pending or a branch may have
// to be validated against it.
type record struct {
	txn      txnproto.TxnID
	client   txnproto.ClientID
	slot     int32
	finished moment // 0: pending
	aborted  bool   // after its validation, elsewhere: its writes never were
	unknown  bool   // recovered: what it read is not known
	ranges   bool   // it scanned
	writes   nodeID // its touches in the index of writers
	reads    nodeID // its touches in the index of readers, while pending
}

// moment counts validations and ends, so that each has its own.
type moment uint64

// records is a queue of records by number: a ring that grows when it must.
type records struct {
	ring    []record // length a power of two; number n is at n & (len-1)
	first   number   // the oldest one kept
	last    number   // the newest one given
	pending number   // the oldest pending one; last+1 when none is
}

func newRecords() records {
	return records{ring: make([]record, 16), first: 1, pending: 1}
}

func (s *records) at(n number) *record { return &s.ring[int(n)&(len(s.ring)-1)] }

// add gives the next number.
func (s *records) add(r record) number {
	if int(s.last+1-s.first) == len(s.ring) {
		old := *s
		s.ring = make([]record, 2*len(old.ring))
		for n := old.first; n <= old.last; n++ {
			*s.at(n) = *old.at(n)
		}
	}
	s.last++
	*s.at(s.last) = r
	return s.last
}

// finish notes the end of n.
func (s *records) finish(n number, at moment, aborted bool) {
	r := s.at(n)
	r.finished, r.aborted = at, aborted
	for s.pending <= s.last && s.at(s.pending).finished != 0 {
		s.pending++
	}
}
