// Package entrysum puts a checksum behind the extensions of a log entry, takes it off again,
// and tells whether two entries say the same.
//
// It imports nothing of ours. Promises: an entry of which index, term, type, data or extensions have
// changed since Seal is found by Unseal, but for one in 2^32. Any goroutine may call it. Tested as it
// is, and by damaged files with raftstore/replica.
package entrysum
