package replica

import (
	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/transport"
)

// TellCommit tells a member how far the log is committed, as soon as it has that much
// of it, if it does not know. This replica led in the given term, and had applied an entry of
// it, at some time before the call. It does not wait for the answer.
//
// A read there would wait for what was just written until the Teller tells of it by itself.
func (r *Replica) TellCommit(term uint64, member string) {
	if !r.started() {
		return
	}
	id := raft.ServerID(member)
	r.transport.HeardOf(id)
	if commit, ours := r.commitOf(term); ours {
		r.teller.Tell(r.ctx, id, term, commit)
	}
}

// commitOf is how far the log is committed, while the term, of which an entry is, is still ours. The order matters: what
// a later leader committed may not be what a member has at this index.
func (r *Replica) commitOf(term uint64) (commit uint64, ours bool) {
	commit = r.raft.CommitIndex()
	return commit, r.raft.CurrentTerm() == term
}

func (r *Replica) newTeller() *transport.Teller {
	return r.transport.NewTeller(transport.TellerConfig{
		Pause: r.cfg.Timing.CommitTimeout, Patience: r.cfg.Timing.idleTimeout(), Go: r.children.Go,
		Committed: func() (term, commit uint64, leads bool) {
			l, _ := r.Leadership()
			commit, ours := r.commitOf(l.Term)
			return l.Term, commit, l.Leader && ours
		},
		Members: func() (ids []raft.ServerID) {
			for _, server := range r.raft.GetConfiguration().Configuration().Servers {
				ids = append(ids, server.ID)
			}
			return ids
		},
	})
}
