package replica

import (
	"context"

	"github.com/hashicorp/raft"
)

// TellCommit tells a member how far the log is committed, as soon as it has that much
// of it, if it does not know. This replica led in the given term, and had applied an entry of
// it, at some time before the call. It does not wait for the answer.
//
// Raft tells a follower with the next entries, or after CommitTimeout if there are
// none, and a read there would wait as long for what was just written. The message
// is one that raft's leader of the term may send at any time: no entries, behind one
// that the member has acknowledged.
func (r *Replica) TellCommit(term uint64, member string) {
	if !r.started() {
		return
	}
	id := raft.ServerID(member)
	r.transport.HeardOf(id)
	commit := r.raft.CommitIndex()
	// The order matters: what a later leader committed may not be what the member has
	// at this index. While the term is still ours, so is everything up to commit.
	if r.raft.CurrentTerm() != term {
		return
	}
	if !r.transport.BeginTelling(id, term, commit) {
		return
	}
	self := r.transport.EncodePeer(raft.ServerID(r.id), r.transport.LocalAddr())
	r.children.Go(func() {
		ctx, cancel := context.WithTimeout(r.ctx, r.cfg.Timing.CommitTimeout)
		defer cancel()
		_ = r.transport.TellCommit(ctx, id, &raft.AppendEntriesRequest{ // raft itself tells it again, later
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(r.id), Addr: self},
			Term:      term, Leader: self,
			PrevLogEntry: commit, PrevLogTerm: term, LeaderCommitIndex: commit,
		})
	})
}
