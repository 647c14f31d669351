// Package replica runs one member of the replicated log: it joins hashicorp/raft
// to raftstore/state and to the disk.
//
// It owns the raft instance, the log and stable stores with their checksums, the state marker
// and the snapshots. It and its parts are the only packages that import hashicorp/raft. It
// may import raftstore/command and raftstore/state.
//
// Promises:
//   - An entry whose Propose returned without error is on the disks of a quorum
//     and applied here. Errors wrap ErrNotProposed when the entry cannot have
//     entered the log; after any other error it may have.
//   - Leadership says Leader only after an entry of the leader's own term was
//     applied here, and each won election shows as a new Term.
//   - Bytes changed on disk are noticed before they are used, and are never
//     repaired: the replica stops, and at its next start waits to join anew, with its
//     data set aside. So it does when the disk fails or stalls, when
//     it meets an operation it does not know, and when its caller finds that its state
//     differs from the other replicas'. Stopping means one call of Config.Fatal; from then on
//     nothing is applied or answered.
//   - Open walks the structure of the log's files; entries, votes and snapshots are
//     under checksums. An older copy of the log is noticed if it misses what was
//     committed before the last watermark, which follows within a second and at Close.
//     An older copy of the whole directory, or the loss of all of it, is not.
//   - A follower whose disk has next to no room takes no entries, and goes on when it has
//     room again. What it acknowledged is on its disk.
//   - Close returns after every goroutine of the replica ended, or with ErrDiskStalled
//     when the disk hangs.
//
// Tested with files (flipped bits, cut, emptied, lost and older files; the flag
// -damages tries more of them), and through raftstore in bubbles of fake time and
// over real sockets.
package replica
