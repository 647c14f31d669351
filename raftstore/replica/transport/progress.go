package transport

import (
	"context"

	"github.com/hashicorp/raft"
)

// progress is what a peer has acknowledged to this server as the leader of a term.
type progress struct {
	term uint64
	// acked is the last index of the log that it has, told the last that it knows to be
	// committed. Both count answers only.
	acked, told uint64
	// sent is the last index of which entries on their way say that it is committed.
	sent uint64
	// had is the last entry that it had on its disk, in whatever term, and that is known
	// to be committed.
	had uint64
	// telling: somebody waits for acked, or sends a message only to raise told.
	telling bool
	// more: somebody wanted to tell more meanwhile.
	more bool
	// awaited is closed at the next change; nil: nobody waits.
	awaited chan struct{}
	// sign is closed when the peer shows that it is there; nil: nobody waits for that.
	sign chan struct{}
}

// acknowledged notes an answer that was a success.
func (p *progress) acknowledged(request *raft.AppendEntriesRequest) {
	if !p.enter(request.Term) {
		return
	}
	last := request.PrevLogEntry
	if n := len(request.Entries); n > 0 {
		last = request.Entries[n-1].Index
	}
	p.acked, p.told = max(p.acked, last), max(p.told, request.LeaderCommitIndex)
	p.had = max(p.had, min(p.acked, p.told))
	if p.awaited != nil {
		close(p.awaited)
		p.awaited = nil
	}
}

// enter begins a term that is later than what is known, and reports whether the term is that one then.
func (p *progress) enter(term uint64) bool {
	if term > p.term {
		*p = progress{term: term, had: p.had, telling: p.telling, more: p.more, awaited: p.awaited, sign: p.sign}
	}
	return term == p.term
}

// mayLack reports whether the peer follows the term and may not know of the commit.
func (p *progress) mayLack(term, commit uint64) bool { return p.term == term && p.told < commit }

// BeginTelling reports whether a peer, which has acknowledged something in the term, may
// not know that the log is committed up to commit, and nobody else is telling it.
// Then TellCommit has to follow, and endTelling.
func (t *Transport) BeginTelling(id raft.ServerID, term, commit uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peer(id)
	if !p.mayLack(term, commit) {
		return false
	}
	begins := !p.telling
	p.telling, p.more = true, !begins
	return begins
}

// mayNotLearn reports whether the peer may lack that commit, and no entries on their way to it say so.
func (t *Transport) mayNotLearn(id raft.ServerID, term, commit uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peer(id)
	return p.mayLack(term, commit) && p.sent < commit
}

// sends notes entries on their way to a peer. A pipeline that breaks loses them; raft's timer is for that.
func (t *Transport) sends(id raft.ServerID, request *raft.AppendEntriesRequest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.peer(id); p.term == request.Term {
		p.sent = max(p.sent, request.LeaderCommitIndex)
	}
}

// TellCommit sends the request, which BeginTelling allowed, as soon as the peer has
// the log up to there, unless it learns of the commit by itself or ctx ends before.
func (t *Transport) TellCommit(ctx context.Context, id raft.ServerID, request *raft.AppendEntriesRequest) error {
	for {
		ready, changed := t.mayTell(id, request)
		switch {
		case ready:
			return t.appendEntries(id, "", request, &raft.AppendEntriesResponse{}) // the address is found by the id
		case changed == nil:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// mayTell reports whether the time has come; if not, when to ask again, nil: never.
func (t *Transport) mayTell(id raft.ServerID, request *raft.AppendEntriesRequest) (ready bool, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peer(id)
	if !p.mayLack(request.Term, request.LeaderCommitIndex) {
		return false, nil
	}
	if p.acked >= request.PrevLogEntry {
		return true, nil
	}
	if p.awaited == nil {
		p.awaited = make(chan struct{})
	}
	return false, p.awaited
}

// endTelling ends what BeginTelling began, and reports whether somebody wanted to tell more meanwhile.
func (t *Transport) endTelling(id raft.ServerID) (more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peer(id)
	more = p.more
	p.telling, p.more = false, false
	return more
}

// peer is called under t.mu.
func (t *Transport) peer(id raft.ServerID) *progress {
	p, known := t.peers[id]
	if !known {
		p = &progress{}
		t.peers[id] = p
	}
	return p
}
