// Package logtail keeps the newest entries of the log in memory.
//
// The replica tells it what was appended and deleted. It imports nothing of ours.
// Promises: it holds at most 32 MiB, or the newest entry alone, without gaps, and may be
// called from any goroutine. Tested as it is, and with the log of raftstore/replica.
package logtail
