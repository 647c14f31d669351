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
	// had is the last entry that it had on its disk, in whatever term, and that is known
	// to be committed.
	had uint64
	// telling: somebody waits for acked, or sends a message only to raise told.
	telling bool
	// awaited is closed at the next change; nil: nobody waits.
	awaited chan struct{}
	// sign is closed when the peer shows that it is there; nil: nobody waits for that.
	sign chan struct{}
}

// acknowledged notes an answer that was a success.
func (p *progress) acknowledged(request *raft.AppendEntriesRequest) {
	if request.Term > p.term {
		*p = progress{term: request.Term, had: p.had, telling: p.telling, awaited: p.awaited, sign: p.sign}
	}
	if request.Term < p.term {
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

// mayLack reports whether the peer follows the term and may not know of the commit.
func (p *progress) mayLack(term, commit uint64) bool { return p.term == term && p.told < commit }

// BeginTelling reports whether a peer, which has acknowledged something in the term, may
// not know that the log is committed up to commit, and nobody else is telling it.
// Then TellCommit has to follow.
func (t *Transport) BeginTelling(id raft.ServerID, term, commit uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peer(id)
	if !p.mayLack(term, commit) || p.telling {
		return false
	}
	p.telling = true
	return true
}

// TellCommit sends the request, which BeginTelling allowed, as soon as the peer has
// the log up to there, unless it learns of the commit by itself or ctx ends before.
func (t *Transport) TellCommit(ctx context.Context, id raft.ServerID, request *raft.AppendEntriesRequest) error {
	defer t.endTelling(id)
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

func (t *Transport) endTelling(id raft.ServerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.peer(id).telling = false
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
