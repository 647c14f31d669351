// Package gossip owns membership in the pool of servers and nodes that watch
// each other: who is in it, and whom it holds for dead.
//
// It is called by the wiring only, on agents and servers, and is the only
// importer of hashicorp/memberlist. It may import nothing of ours.
//
// Promises: without a key of 32 bytes nothing is sent or received, and members
// with another key or label are strangers. A verdict is a hint, never a proof:
// who holds the key can forge one. A pool that fell apart finds together again:
// the seeds are resolved and joined every 30 s, every 5 s while no server is seen.
// A member that left is no dead one. The dead are remembered for an hour.
//
// Tests: pools of several members over an in-memory network that loses and
// separates, in synctest bubbles; one over loopback sockets.
package gossip
