// Package boltlog keeps raft's log, and what raft keeps beside it, in a bbolt
// database.
//
// It owns the form of the log's file: entries in chunks that fill the database's
// pages. It is called by raftstore/replica only, which puts checksums and checks
// around it, and is part of the one place that imports hashicorp/raft and bbolt.
//
// Promises: what StoreLogs, DeleteRange and Set report done is synced to the disk, all
// of it or nothing. A log written by hashicorp/raft-boltdb, as releases before this
// package did, is read as it is. It trusts what it reads: whether the file is whole
// is the business of raftstore/replica and its boltfile.
//
// Any goroutine may call a Store. Tested here against the old form and for how much a
// commit writes, and through raftstore/replica with damaged files.
package boltlog
