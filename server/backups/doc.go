// Package backups makes the backups of one server by a schedule, and says what a folder or bucket of them holds.
//
// It owns the names of the files, when one is made, and which ones go. What is in a file is of raftstore/backup, where files are is of
// backups/place, and their encryption of backups/sealed.
//
// Promises:
//   - A file counts when it was loaded, while it was written, into a state of its own whose objects and hash were compared with what the
//     file says, and when what was read back of it is what was written. So a place never has one that could not be restored on that day.
//   - Of this server's files the newest Keep stay, and nothing else in the place is touched, so servers can share one.
//   - What fails is told in the log and in the metrics, and is tried again every RetryAfter; no older backup goes before a newer
//     one is whole.
//   - A time that passed while the server was off is made up for.
//
// A backup needs memory for the objects while it is made.
//
// Tested in a bubble with a real state, and by scripts with the real binary (backup_schedule.txtar, backup_bucket.txtar).
package backups
