// Package boltfile checks the structure of the file of a bbolt database that holds a raft
// log. The database trusts what it reads: where a number was changed it shows fewer
// entries, or an earlier write, or searches without end. Here each page must belong to
// somebody, each key lie in its place, and each index follow the last.
//
// raftstore/replica calls Check before it opens the database; its seeded test damages the
// file at every kind of place. Nothing here writes.
package boltfile
