// Package gossip owns membership in the pool of servers and nodes that monitor each other: its members, and
// which of them it considers dead.
//
// It is the only importer of hashicorp/memberlist. It may import nothing of ours.
//
// Promises: without a key of 32 bytes nothing is sent or received, and members without one of the keys, or with another
// label, are ignored. Keys are replaced while it runs (UseKeys): the first encrypts, all decrypt. A verdict is a hint and
// not a proof, because any holder of the key can forge one. A pool that was split joins again: the seeds are
// resolved and joined every 30 s, every 5 s while no server is seen, and at once after Rejoin. A
// member whose port is taken gets another one. A member that left does not count as dead. Dead members are remembered for an hour.
//
// Tests: pools of several members over an in-memory network that loses and
// separates, in synctest bubbles; one over loopback sockets.
package gossip
