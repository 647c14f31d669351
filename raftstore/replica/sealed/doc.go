// Package sealed keeps snapshots in files, under checksums.
//
// It owns the seal, which puts a snapshot's description under a checksum too, and the room that a snapshot leaves on
// the disk.
//
// Promises: a snapshot that is not what was written is never read as if it were, and hides no older one; one that
// fails leaves no file behind.
//
// Tested here, and through raftstore/replica with files that are damaged byte by byte.
package sealed
