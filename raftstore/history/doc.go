// Package history keeps what objects were: every change of at least the last day, on the disk of each server, beside the store.
//
// It owns the folder of history, a follower of applied changes that writes there outside of the write path, and the answers: an object
// or a folder of objects at a past revision, all changes of one key, the change of a revision, the revision of a time. It knows keys,
// records and origins; values stay as they are stored, encrypted ones too. It may import raftstore/{command,record,state,watch,wire},
// internal/aligned, klauspost/compress and the standard library.
//
// What is kept of a change is what was there before it: the present is in the store, so the past is the present with the changes
// since undone, newest first. Whatever is trimmed at the old end, the rest stays whole.
//
// Promises:
//   - Nothing waits for it: writes are applied, answered and snapshotted whatever becomes of history. It gives its room back before
//     writes are refused for want of room.
//   - An answer is right, or an error. A record tells the revision that made it, so what was changed in a hole of history is noticed:
//     ErrHole names it, and what a hole does not touch is answered. Holes come of damage, of a full disk, and of a snapshot that a
//     server got from the leader because it was behind.
//   - What was purged is told to nobody once the store has the purge, and removed from the disk before long. Who must know all that was
//     acknowledged has the store get it (ReadIndex) before he asks.
//   - A time is told, or it is said that it is not known.
//   - A life of the cluster has its own: after a restore or a recovery history begins anew.
//   - After a crash the end that was not yet written is taken from the log again. Bytes that are not what was written are noticed.
//   - Memory is bounded: two blocks, some numbers for each block on the disk, 64 MiB of past lists or one, and three answers at a time.
//   - A disk that hangs holds up no reader for long, and not the status.
//
// Any method may be called from any goroutine; those of a nil *History answer that nothing is kept.
//
// Tested over a state machine in memory with random changes against a model, and with files that were cut, flipped and removed.
package history
