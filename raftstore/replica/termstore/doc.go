// Package termstore keeps raft's term and vote on disk.
//
// It owns the checksum behind each value, and what raft may store in which order. It is part of the one place
// that imports hashicorp/raft.
//
// Promises: a changed value is noticed when it is read. A term, and the term of a vote, never become lower. A
// vote that was only partly stored because of a power cut does not count. Get and Set may be called from any
// goroutine.
//
// Tested by itself, and through raftstore/replica with files.
package termstore
