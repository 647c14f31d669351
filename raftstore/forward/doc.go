// Package forward carries commands and reads from a follower to the leader, and what
// replicas ask each other beside raft (status, membership, whether the leader is gone),
// as a Connect service that every replica offers to the others.
//
// It owns the service's wire format (forwardpb) and its translation to commands,
// results and errors. The caller implements Backend, and decides whom to ask and when
// to ask again. It may import raftstore/command.
//
// Promises: one request carries many commands and answers each by itself. It
// tells a command that entered no log (ErrNotProposed) from one that may have
// (ErrOutcomeUnknown), and never repeats a request. A request from anyone but a
// server of the cluster is refused before it is read.
//
// Tested over HTTP with a backend that answers every way there is.
package forward
