// Package backups makes the backups of one server by a schedule, and says what a folder of them holds.
//
// It owns the names of the files, when one is made, and which ones go. What is in a file is of raftstore/backup.
//
// Promises:
//   - A file appears under its name when it is whole, on the disk, and was read back: loaded into a state of its own whose objects
//     and hash are compared with what the file says. So a folder never has one that could not be restored on that day.
//   - Of this server's files the newest Keep stay, and nothing else in the folder is touched, so servers can share one.
//   - What fails is told in the log and in the metrics, and is tried again every RetryAfter; no older backup goes before a newer
//     one is whole.
//   - A time that passed while the server was off is made up for.
//
// Making and naming a file is raftstore/backup's (ToFile), as for setpoint backup create. A backup needs memory for the objects while it
// is read back. The folder has to exist: one that is not mounted is not made anew.
//
// Tested in a bubble with a real state, and by a script with the real binary (backup_schedule.txtar).
package backups
