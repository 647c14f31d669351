// Package backup is the archive of a store: all objects at one revision, in one stream that can be verified
// without the cluster.
//
// It owns the archive's format, its writer and its reader.
// It may import raftstore/command, raftstore/state
// and raftstore/wire.
//
// Promises:
//   - A changed byte, a missing end or bytes too many are an error that wraps
//     ErrDamaged; never a shorter or another archive.
//   - An archive holds one cut: what was committed up to its revision, nothing after. Sessions and watch
//     history are left out, so every client has to list again after a restore.
//   - Writing and reading need memory for one block, whatever the size; Verify and
//     Load need it for the objects.
//   - The format can be extended, never changed: a newer one is refused by name.
//
// An archive holds Secrets as they are stored: protect it like the Secrets themselves.
//
// Tested by round trips, by a flip of every byte and a cut at every length.
package backup
