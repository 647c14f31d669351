// Package boltfile checks the structure of the file of a bbolt database that holds a raft log. The database
// does not check what it reads: a changed number makes it return fewer entries or an earlier write, or loop.
// Check verifies that every page is referenced, that keys are in order, and that log indexes are consecutive.
//
// raftstore/replica calls Check before it opens the database; its seeded test damages the
// file at every kind of place. Nothing here writes.
package boltfile
