// Package state is the replicated state machine: a function from the log to the
// objects, the same on every replica.
//
// It owns the objects (a copy-on-write B-tree), the revision counter, the
// sessions that make retries take effect once, the state hash, the snapshot
// format, and the order in which a command is judged: session, fence,
// preconditions. It knows keys, revisions, uids and fences; values are opaque.
//
// Whoever holds the log calls Apply, Snapshot and Restore; everyone who reads asks Root, RootAt and the
// ring. It may import raftstore/command, raftstore/record, raftstore/watch, raftstore/wire and
// google/btree.
//
// Promises:
//
//   - Apply depends on nothing but the state, the index, the term and the entry: no clock, randomness, map
//     order, I/O or goroutine. A command that makes no sense is Rejected, the same everywhere; a broken
//     invariant panics, because a stopped replica does less harm than one that differs from the others.
//   - A Root never changes. It is published whole, after an entry; then the entry's events appear in the
//     ring, and then watchers wake: a reader that sees an event finds its object in the root.
//   - Restore(snapshot) and the entries after it give what applying all entries
//     gives, and a damaged snapshot is refused without touching the state.
//
// Apply, Snapshot and Restore are called by one goroutine at a time; everything
// else may be called from anywhere, and does not wait for Apply beyond the swap
// of the root.
//
// Tested by tables of every rule, against a model map with random commands, by
// applying one log in different batches, by damaging snapshots byte by byte, and
// by a fuzz target that applies arbitrary entries.
package state
