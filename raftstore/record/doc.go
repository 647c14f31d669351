// Package record holds Record, what the store keeps of one object.
//
// It is a package of its own because both raftstore/state, which makes records,
// and raftstore/watch, whose events point at them, need it. It may import only
// the standard library.
//
// A published Record is shared by every reader of the replica and never changes.
// The one exception is its memo: a place where the serving layer leaves the
// decoded object, so that each committed object is decoded once for a replica.
//
// Tested here for the memo's first-wins rule, and through state.
package record
