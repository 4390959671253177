package optimistic

import (
	"interleave/txnproto"
	"interleave/txnproto/keymap"
)

// index lists, for each key, records that touched it, the newest first.
type index struct {
	heads keymap.Map // key -> nodeID
	nodes []node
	free  []nodeID
}

type nodeID int32

// node is one record's touch of one key.
type node struct {
	key        txnproto.Key
	record     number
	next, prev nodeID // of the same key: older, newer
	own        nodeID // the record's previous one
}

func newIndex() index { return index{nodes: make([]node, 1)} }

// newest returns the newest touch of k; follow next from there.
func (x *index) newest(k txnproto.Key) nodeID { return nodeID(x.heads.Get(k)) }

// add lists record n under k and returns the touch, which links to own.
func (x *index) add(k txnproto.Key, n number, own nodeID) nodeID {
	var id nodeID
	if m := len(x.free); m > 0 {
		id = x.free[m-1]
		x.free = x.free[:m-1]
	} else {
		id = nodeID(len(x.nodes))
		x.nodes = append(x.nodes, node{})
	}
	head := x.heads.Ref(k)
	old := nodeID(*head)
	x.nodes[id] = node{key: k, record: n, next: old, own: own}
	if old != 0 {
		x.nodes[old].prev = id
	}
	*head = int32(id)
	return id
}

// removeAll takes a record's touches off the lists, from the last added on.
func (x *index) removeAll(last nodeID) {
	for id := last; id != 0; {
		n := x.nodes[id]
		switch {
		case n.prev != 0:
			x.nodes[n.prev].next = n.next
		case n.next != 0:
			*x.heads.Ref(n.key) = int32(n.next)
		default:
			x.heads.Delete(n.key)
		}
		if n.next != 0 {
			x.nodes[n.next].prev = n.prev
		}
		x.free = append(x.free, id)
		id = n.own
	}
}
