// Package memorylog holds the entries of a log in memory: for tests in fake time, and for clusters that end with their process.
//
// It imports nothing of ours. Promises: First and Last bound what is there, without gaps if Put made none; an entry that was
// put is never changed, so clones share them. Callers lock. Tested as it is, and with raftstore/replica as the log of its disk in memory.
package memorylog
