// Package memorylog is what the disks of tests keep a log in: in memory, or in segments on files that a test loses parts of.
//
// It owns the log in memory with the ways to damage it, the order of those who write to segments in fake time, and what tests
// look at of a disk. The replica's Memory is made of it; it may import what keeps the log in production.
//
// Promises: entries are never changed in place. Who waits for a disk in fake time waits at a channel, so that time goes on.
//
// Tested through raftstore, and by the log's own tests in raftstore/replica.
package memorylog
