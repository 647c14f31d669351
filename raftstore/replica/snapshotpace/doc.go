// Package snapshotpace limits the rate at which a snapshot is written, so that commits to the log on the same disk
// stay fast.
//
// It owns the rate, and the flushing on the way. It imports nothing of ours.
//
// Promises: bytes arrive in order and unchanged, at no more than BytesPerSecond; a
// writer whose context ends fails at once. Durability is the caller's sync.
//
// Tested in bubbles of fake time.
package snapshotpace
