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
func (b backend) ReadIndex(ctx context.Context) (uint64, error) {
	if err := b.store.check(); err != nil {
		return 0, err
	}
	return b.store.confirm.get(ctx)
}

// Status implements forward.Backend.
func (b backend) Status() forward.Status {
	s := b.store.Status()
	return forward.Status{
		Name: b.store.cfg.Name, Leader: s.LeaderID, Term: s.Term, Revision: s.Revision,
		AppliedIndex: s.AppliedIndex, LastIndex: s.LastIndex, SnapshotIndex: s.SnapshotIndex,
		LogBytes: s.LogBytes, SyncP99: s.SyncP99, Space: forward.Space(s.Space),
	}
}

// AddServer implements forward.Backend.
func (b backend) AddServer(ctx context.Context, name, address string) error {
	return b.store.addServer(ctx, Server{ID: name, Address: address})
}

// RemoveServer implements forward.Backend.
func (b backend) RemoveServer(ctx context.Context, name string) error {
	return b.store.removeServer(ctx, name)
}

// toLeader runs a change of membership here if this replica leads, else there.
func (s *Store) toLeader(here func() error, there func(forward.Peer) error) error {
	l := s.Leadership()
	switch {
	case l.Leader:
		return here()
	case l.Ready:
		return there(forward.Peer{ID: l.LeaderID, Address: l.LeaderAddress})
	}
	return ErrNoLeader
}

// AddServer makes a new server a member, from any replica: first without a vote,
// so that catching up hinders nobody, then with one once it has caught up. For a
// member it records the new address. It returns when the server votes, or with
// ctx's error; then the server stays a member without a vote, and AddServer may
// be called again.
func (s *Store) AddServer(ctx context.Context, server Server) error {
	return s.toLeader(
		func() error { return s.addServer(ctx, server) },
		func(leader forward.Peer) error { return s.peers.AddServer(ctx, leader, server.ID, server.Address) })
}

// RemoveServer ends a membership, from any replica. It refuses to leave fewer
// live voters than a quorum of those that remain.
func (s *Store) RemoveServer(ctx context.Context, name string) error {
	return s.toLeader(
		func() error { return s.removeServer(ctx, name) },
		func(leader forward.Peer) error { return s.peers.RemoveServer(ctx, leader, name) })
}

func (s *Store) addServer(ctx context.Context, server Server) error {
	if server.ID == "" || server.Address == "" {
		return errors.New("a server needs a name and an address")
	}
	if err := s.replica.AddServer(ctx, server); err != nil {
		return err
	}
	// What the leader has now is enough: what comes later replicates as it comes.
	if err := s.waitCaughtUp(ctx, server, s.Root().Index); err != nil {
		return fmt.Errorf("server %s has not caught up: %w", server.ID, err)
	}
	return s.replica.PromoteServer(ctx, server)
}
