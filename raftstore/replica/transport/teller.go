package transport

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// Teller tells the other members how far the log is committed, while this server leads.
//
// Raft tells a follower with the next entries, and where none follow when a timer ends that runs for each follower all
// the time. That timer is long here, for it was most of what idle servers did. So a Teller tells who has not learned of a
// commit by entries that followed soon, once. While nothing is committed it sleeps without a timer.
type Teller struct {
	TellerConfig
	transport *Transport
	// news has a value when more may be committed than was told.
	news chan struct{}
}

// TellerConfig is what a Teller needs; all fields are required.
type TellerConfig struct {
	// Pause is how long entries may follow that tell of a commit, too.
	Pause time.Duration
	// Patience bounds how long the Teller waits for one member to have the log up to a commit. Raft's own timer ends later.
	Patience time.Duration
	// Committed returns the term and how far the log is committed, if this server leads in the term and the last entry
	// that is committed is of that term.
	Committed func() (term, commit uint64, leads bool)
	// Go runs what may wait on a goroutine of its own.
	Go func(func())
	// Members are the ids of all members, this one among them.
	Members func() []raft.ServerID
}

// NewTeller returns a Teller that has nothing to tell.
func (t *Transport) NewTeller(cfg TellerConfig) *Teller {
	return &Teller{TellerConfig: cfg, transport: t, news: make(chan struct{}, 1)}
}

// Notify says that more may be committed. It does not wait.
func (w *Teller) Notify() {
	select {
	case w.news <- struct{}{}:
	default: // a look is due already
	}
}

// Run tells until ctx ends.
func (w *Teller) Run(ctx context.Context) {
	for {
		select {
		case <-w.news:
		case <-ctx.Done():
			return
		}
		term, commit, leads := w.Committed()
		if !leads {
			continue
		}
		select {
		case <-time.After(w.Pause):
		case <-ctx.Done():
			return
		}
		for _, id := range w.Members() {
			if w.transport.mayNotLearn(id, term, commit) {
				w.Tell(ctx, id, term, commit)
			}
		}
	}
}

// Tell tells a member, as soon as it has the log up to commit, that it is committed up to there, if it does not know. It does
// not wait. Term and commit are those that Committed returned once. Somebody who is being told something is told this afterwards.
func (w *Teller) Tell(ctx context.Context, id raft.ServerID, term, commit uint64) {
	if w.transport.BeginTelling(id, term, commit) {
		w.Go(func() { w.tell(ctx, id, term, commit) })
	}
}

// tell sends a message that raft's leader of the term may send at any time: no entries, behind one that the member has
// acknowledged.
func (w *Teller) tell(ctx context.Context, id raft.ServerID, term, commit uint64) {
	ctx, cancel := context.WithTimeout(ctx, w.Patience)
	defer cancel()
	own := w.transport.stream.cfg
	_ = w.transport.TellCommit(ctx, id, &raft.AppendEntriesRequest{ // raft itself tells it again, later
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(own.ID), Addr: []byte(own.Address)},
		Term:      term, Leader: []byte(own.Address),
		PrevLogEntry: commit, PrevLogTerm: term, LeaderCommitIndex: commit,
	})
	if w.transport.endTelling(id) {
		w.Notify()
	}
}
