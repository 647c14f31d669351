package transport

import "github.com/hashicorp/raft"

// Had returns the last entry that is known to have been on the peer's disk and to be
// committed, 0 if nothing is known. No leader has such an entry deleted, and whoever
// acknowledges or commits it has it on its disk first: a peer whose log ends before it was
// put back to an earlier state.
//
// A leader knows it of those who acknowledge its entries, and a follower of the leaders it
// had. It is kept in memory only.
//
// committed is how far the log is committed, if this server is in the term still in which
// it led, else 0. What a peer has acknowledged beyond that, the leader of a later term may
// have deleted. It is asked at each call, so that it is asked in the term.
func (t *Transport) Had(id raft.ServerID, committed func(term uint64) uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peer(id)
	p.had = max(p.had, min(p.acked, committed(p.term)))
	return p.had
}

// ledBy notes how far the sender, a leader, has its log committed. It writes an entry
// before it sends it.
func (t *Transport) ledBy(request *raft.AppendEntriesRequest) {
	if len(request.ID) == 0 || request.LeaderCommitIndex == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peer(raft.ServerID(request.ID))
	p.had = max(p.had, request.LeaderCommitIndex)
}
