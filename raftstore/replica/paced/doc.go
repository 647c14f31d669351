// Package paced writes a snapshot slowly enough for the log beside it.
//
// It owns the rate, and the flushing on the way. It is called by raftstore/replica
// and imports nothing of ours.
//
// Promises: bytes arrive in order and unchanged, at no more than BytesPerSecond; a
// writer whose context ends fails at once. Durability is the caller's sync.
//
// Tested in bubbles of fake time.
package paced
