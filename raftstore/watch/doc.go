// Package watch is the history of recent changes, and the way to follow it.
//
// It owns the Ring, a window of the newest events bounded in bytes, and Watcher, a cursor into it.
// raftstore/state appends to the ring; apiserver/storage reads from it to serve watches. It may import
// raftstore/command and raftstore/record.
//
// Promises: a watcher sees every event under its prefix after its start, once and in revision order, or is told
// ErrCompacted; events of one log entry become visible together; Progress never runs ahead of an event not yet
// returned. Writers never wait for a watcher: one that is too slow gets ErrCompacted.
//
// Watchers are grouped by the folder their prefix lies in ("pods/default/" for
// "pods/default/web"). Each group keeps the revisions that concern it and one
// channel to wake its members, so a write to pods neither wakes nor is scanned
// by a watcher of nodes, and a watcher of a quiet folder is not overtaken by
// traffic elsewhere.
//
// Locking: Ring.mu guards everything; a group's own mutex, taken under at least
// a read lock of Ring.mu, guards only its wake channel among its readers.
//
// Tested by tables, by a property test that compares random watchers with a
// filter over the whole history, and in synctest bubbles for blocking.
package watch
