// Package raftdir opens the directory in which a replica keeps its log, term and vote.
//
// The log is in segments (raftstore/replica/segments). Term, vote and what else is kept beside the log are in a bbolt
// database, whose lock is that of the whole directory. A directory of a release without segments has its log in the
// database too; it is moved by the first Open after LetMove.
//
// Promises: Open checks the structure of both before it uses them (raftstore/replica/boltfile), and its errors tell damage
// (ErrDamaged) from a directory in use (ErrInUse). A move that was interrupted begins again, and until it is complete the log is
// where it was. Nothing here has a time limit: a damaged database may be read without end, so the caller sets one.
//
// Tested here with interrupted moves, and through raftstore/replica with damaged files.
package raftdir
