package replica

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/quorum"
)

// ConfirmLeader returns nil if this replica led in the given term until some moment during the call, so no
// leader of a later term had acknowledged anything before the call. Errors wrap ErrNotLeader.
//
// The proof: a quorum of voters was in the term, each at some moment after the call began. A leader of a
// later term is elected by a quorum too, so one voter is in both. It entered the later term before it gave
// that leader its vote, and no term ever goes back, so at the moment when it was still in this term, after
// the call began, it had not voted yet, and the later leader had acknowledged nothing. The leader lease has
// no part in this, and no clock but this replica's own, which only orders its own messages.
//
// What the proof needs of raft and of this package:
//   - A term never goes back. In memory raft's main loop alone sets it, and never to a lower
//     one: transport.SetHeartbeatHandler keeps the other writer out. On disk, where a
//     restart finds it, package termstore refuses a lower one.
//   - A voter that accepts a heartbeat was in its term after it arrived (transport.heartbeat).
//   - A voter's term is on disk and in memory before it answers a candidate of that term.
//
// Raft's VerifyLeader alone is no proof: it counts answers that arrive during the call to messages sent
// before it, and those of servers without a vote. A process that was stopped finds such answers in its
// sockets when it wakes up, from before its successor was elected.
func (r *Replica) ConfirmLeader(ctx context.Context, term uint64) error {
	if !r.started() {
		return ErrNotLeader
	}
	start := time.Now()
	for try := 0; ; try++ {
		if err := confirmPause(ctx, try); err != nil {
			return fmt.Errorf("%w: %w", ErrNotLeader, err)
		}
		// Each try sends heartbeats at once, and ends with an answer or the leadership.
		if err := r.transport.InHurry(func() error { return r.await(ctx, r.raft.VerifyLeader) }); err != nil {
			return fmt.Errorf("%w: %w", ErrNotLeader, err)
		}
		// Won again in a later term, the state may lack writes of the term between.
		if now := r.raft.CurrentTerm(); now != term {
			return fmt.Errorf("%w: term %d has become %d", ErrNotLeader, term, now)
		}
		if r.QuorumSince(term, start) {
			return nil
		}
	}
}

// confirmRetry is the pause between two tries. Members without a vote may answer at
// once, again and again, where the voters do not.
const confirmRetry = time.Millisecond

// confirmPause waits before a try. The second follows at once: the first was often
// satisfied by answers already on their way.
func confirmPause(ctx context.Context, try int) error {
	if try < 2 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(confirmRetry):
		return nil
	}
}

// VouchedFor reports whether this replica, whose current term it is, and the member that was in that term too
// are a quorum of voters. It proves a read which began before the member looked at its term, and before this
// call, by the proof of ConfirmLeader: both were in the term after the read began, so neither had voted for a
// leader of a later term yet.
func (r *Replica) VouchedFor(term uint64, member string) bool {
	return r.started() && r.raft.CurrentTerm() == term &&
		r.quorum(func(id raft.ServerID) bool { return id == raft.ServerID(member) })
}

// QuorumSince reports whether most voters took this replica for the leader of the
// term at some time after start.
func (r *Replica) QuorumSince(term uint64, start time.Time) bool {
	return r.quorum(func(id raft.ServerID) bool { return r.transport.AcceptedSince(id, term, start) })
}

// quorum asks the members of the newest configuration.
func (r *Replica) quorum(accepted func(raft.ServerID) bool) bool {
	return quorum.Most(r.raft.GetConfiguration().Configuration().Servers, raft.ServerID(r.id), accepted)
}
