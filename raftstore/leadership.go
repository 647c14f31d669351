package raftstore

import (
	"context"
	"errors"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

// Leadership is what this replica knows of who leads.
type Leadership = replica.Leadership

// Leadership returns what is known now.
func (s *Store) Leadership() Leadership {
	l, _ := s.replica.Leadership()
	return l
}

// LeadershipChanges returns a channel that gets the present leadership and then every change. A slow reader
// gets only the latest change; compare Term to notice that leadership was lost and won in between. The channel
// is closed when ctx or the store ends.
func (s *Store) LeadershipChanges(ctx context.Context) <-chan Leadership {
	out := make(chan Leadership, 1)
	go func() {
		defer close(out)
		for {
			l, changed := s.replica.Leadership()
			select {
			case <-out:
			default:
			}
			// There is room: nobody else sends.
			out <- l
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-s.ctx.Done():
				return
			}
		}
	}()
	return out
}

// whileLed derives a context that ends when l is no longer what is known: a
// request to a leader that was replaced would wait for an answer in vain.
func (s *Store) whileLed(ctx context.Context, l Leadership) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			now, changed := s.replica.Leadership()
			if now.LeaderID != l.LeaderID || now.Term != l.Term {
				cancel(ErrNotLeader)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// nameCluster gives a new cluster its identity, on whichever replica leads.
func (s *Store) nameCluster() {
	if s.cfg.ClusterID == "" {
		return
	}
	for {
		l, changed := s.replica.Leadership()
		if l.Leader && s.Root().ClusterID == "" {
			s.proposeSystem(command.Op{Kind: command.SetClusterID, Value: []byte(s.cfg.ClusterID)})
		}
		select {
		case <-changed:
		case <-s.ctx.Done():
			return
		}
	}
}

// proposeSystem sends an operation that may be repeated, or be lost with the
// leadership, without harm.
func (s *Store) proposeSystem(op command.Op) {
	_, err := s.local.submit(s.ctx, command.Command{
		Actor: command.Actor{User: "system:raftstore"}, Ops: []command.Op{op},
	})
	if err != nil && !errors.Is(err, ErrStopped) && !errors.Is(err, context.Canceled) {
		s.cfg.Logger.Debug("system operation not committed", "kind", op.Kind, "err", err)
	}
}
