// Package offline works on the data directory of a stopped server: it creates one from a backup
// (RestoreBackup), checks a backup (VerifyBackup), and recovers a cluster from the data of one surviving server
// (OpenRecovery).
//
// cmd/setpoint calls it for `backup verify`, `backup restore` and `cluster recover`. It calls
// raftstore, which knows the files, and asks the other members through server/admin whether
// the quorum is really lost.
//
// Promises: a directory that is in use is refused; nothing is changed before all checks have passed.
//
// Tested by the scripts backup and recover.
package offline
