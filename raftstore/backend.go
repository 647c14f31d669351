package raftstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/forward"
)

// backend is what a Store does for its peers. It never forwards: the peer sees to
// it that the leader is asked.
type backend struct{ store *Store }

var _ forward.Backend = backend{}

// Propose implements forward.Backend. The commands share the log entries of the
// leader's own.
func (b backend) Propose(ctx context.Context, commands []command.Command) []forward.Outcome {
	outcomes := make([]forward.Outcome, len(commands))
	waiting := make([]*pending, len(commands))
	for i, c := range commands {
		if outcomes[i].Err = b.store.admit(&c); outcomes[i].Err == nil {
			waiting[i], outcomes[i].Err = b.store.local.enqueue(ctx, c)
		}
	}
	for i, p := range waiting {
		if p != nil {
			outcomes[i].Result, outcomes[i].Err = b.store.local.wait(p)
		}
	}
	return outcomes
}

// ReadIndex implements forward.Backend.
func (b backend) ReadIndex(ctx context.Context, word forward.Word) (forward.Answer, error) {
	if err := b.store.check(); err != nil {
		return forward.Answer{}, err
	}
	if l := b.store.Leadership(); l.Leader {
		b.store.replica.TellCommit(l.Term, word.ID) // it applies while this server does
	}
	answer, proved := b.store.vouchedRevision(ctx, word)
	if !proved {
		var err error
		if answer.Revision, err = b.store.confirm.get(ctx); err != nil {
			return forward.Answer{}, err
		}
	}
	return answer, nil
}

// Status implements forward.Backend.
func (b backend) Status() forward.Status {
	s, beginning := b.store.Status(), b.store.replica.Beginning()
	return forward.Status{
		Name: s.Name, ID: beginning.ID, Phase: string(beginning.Phase), Nonce: beginning.Nonce, Founders: beginning.Founders,
		Leader: s.LeaderID, LeaderAddress: s.LeaderAddress, Since: b.store.replica.LeaderSince(),
		Term: s.Term, Revision: s.Revision,
		AppliedIndex: s.AppliedIndex, LastIndex: s.LastIndex, SnapshotIndex: s.SnapshotIndex,
		LogBytes: s.LogBytes, SyncP99: s.SyncP99, SyncSlowest: s.SyncSlowest, Space: forward.Space{FreeBytes: s.Space.FreeBytes,
			HeadroomBytes: s.Space.HeadroomBytes, Low: s.Space.Low},
		FeatureLevel: b.store.cfg.FeatureLevel, HeldLevel: b.store.cfg.HoldFeatureLevel, Life: beginning.Life, Backup: beginning.Backup,
	}
}

// ChangeMembers implements forward.Backend.
func (b backend) ChangeMembers(ctx context.Context, c forward.Change) error {
	err := b.store.change(ctx, c)
	if errors.Is(err, ErrNotLeader) {
		return fmt.Errorf("%w: %w", forward.ErrNotLeading, err)
	}
	return err
}

// LeaderGone implements forward.Backend.
func (b backend) LeaderGone(ctx context.Context, led forward.Led) forward.Vacancy {
	return b.store.judgeLeader(ctx, led)
}

// CompareState implements forward.Backend.
func (b backend) CompareState(claim forward.Claim) (hash [command.HashBytes]byte, known bool) {
	return b.store.hearClaim(claim)
}
