// Package controltest runs controllers in tests, without nodes and networks. A
// Driver has shards with stores and stands in for their hosts; it keeps the host's
// side of the Controller contract and panics when a controller breaks its own.
// On it stand three ways of running transactions:
//
//   - Explore runs small programs in every interleaving,
//   - World runs random clients with random delays and changes of leader,
//   - Script runs the commands of a datadriven file.
//
// The driver records what committed transactions read and wrote; Serializable
// checks it with the direct serialization graph of Adya, Liskov and O'Neil (2000):
// versions of a key are numbered in order of install, every row of a scan's
// range counts as read, absent ones too, so a phantom is an edge like any other.
package controltest
