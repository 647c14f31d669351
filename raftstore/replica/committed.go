package replica

import (
	"errors"

	"github.com/hashicorp/raft"
)

// CommittedCommand is the last entry that the state must have to have everything which any
// member had applied before the call, if this replica leads; 0 if it has all of it.
//
// The leader's raft knows first what is committed, but its own state need not be the first
// to have it: while it is busy, another member may have applied an entry, and shown it to
// readers and watchers. Whoever has seen it there may not be shown less here, so a read
// goes by what is committed, not by what is applied (Ongaro's thesis, 6.4).
func (r *Replica) CommittedCommand() (index uint64, err error) {
	if !r.started() {
		return 0, ErrNotLeader
	}
	return r.lastCommand(r.raft.CommitIndex())
}

// lastCommand is the last entry up to commit that is still to be applied, 0 if there is
// none. Raft's own entries, of elections and members, never reach the state.
func (r *Replica) lastCommand(commit uint64) (uint64, error) {
	applied := r.state.Root().Index
	for index := commit; index > applied; index-- {
		var entry raft.Log
		err := r.log.GetLog(index, &entry)
		if errors.Is(err, raft.ErrLogNotFound) {
			return 0, nil // it is behind a snapshot, which the state has
		}
		if err != nil || entry.Type == raft.LogCommand {
			return index, err
		}
	}
	return 0, nil
}
