// Package heldstate lets a state in memory pass through raft where it expects the bytes of a snapshot.
//
// A replica without peers, in memory, takes snapshots often and nobody reads them: it keeps the state itself. Source is what raft
// hands to Restore, and Of finds the state behind it; whoever reads from it gets an error.
package heldstate
