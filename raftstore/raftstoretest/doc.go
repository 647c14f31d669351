// Package raftstoretest helps to test what is built on the replicated store.
//
// It owns Local, a store of one replica in memory with the face of raftstore,
// for tests of upper layers that need the store's rules but not its replication;
// and, beside it, a cluster of real replicas over a network that can fail.
//
// It may import raftstore and the packages below it.
//
// Promises: Local applies a command before Propose returns, and every answer
// follows the same state machine as in production.
package raftstoretest
