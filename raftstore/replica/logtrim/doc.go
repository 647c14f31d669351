// Package logtrim deletes the beginning of the log as the log grows.
//
// It owns how much goes when; the caller deletes. It imports nothing of ours.
//
// Promises: entries go in order, each once, and what could not be deleted is tried again; any goroutine may call it. Tested here and with
// the log of raftstore/replica.
package logtrim
