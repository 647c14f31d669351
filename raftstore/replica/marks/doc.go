// Package marks keeps two records of a server outside its log: its identity, and up to where its log was
// committed. A log that was emptied or put back to an earlier state shows no damage, so it can only be detected
// by a record in another place.
//
// It owns the two small files of state-marker/ and their checksums. The replica decides what they mean. It
// imports nothing of ours.
//
// Promises: a file is replaced whole or not at all, and survives a power cut once saved;
// a changed one is ErrCorrupt. Fields may be added, under checksums of their own.
//
// Tested here and with the files of raftstore/replica.
package marks
