package raftstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/forward"
)

const (
	// orderLimit bounds one order whose context has no deadline.
	orderLimit = 5 * time.Minute
	// orderPause is the least time between two tries.
	orderPause = 100 * time.Millisecond
	// askLimit bounds asking one server for its status.
	askLimit = time.Second
)

// AddMember makes a new server a member with a vote, from any replica. The server
// must run and wait to be added. It may be repeated after an error. Errors wrap
// ErrBadChange, ErrNameTaken, ErrUnsafe or the context's error.
func (s *Store) AddMember(ctx context.Context, name, address string) error {
	return s.order(ctx, forward.Change{Kind: forward.Add, Name: name, Address: address})
}

// RemoveMember ends a membership, from any replica; a leader hands over first. It
// refuses with ErrUnsafe to leave fewer live voters than a quorum of those that
// remain. Other errors wrap ErrUnknownServer or the context's error.
func (s *Store) RemoveMember(ctx context.Context, name string) error {
	return s.order(ctx, forward.Change{Kind: forward.Remove, Name: name})
}

// ReplaceMember puts a server of the same name, which runs elsewhere and waits, in
// the place of a member: first without a vote, then the old one goes. Errors are
// those of AddMember and RemoveMember.
func (s *Store) ReplaceMember(ctx context.Context, name, address string) error {
	return s.order(ctx, forward.Change{Kind: forward.Replace, Name: name, Address: address})
}

// MoveLeadership makes the named server the leader, from any replica; without a
// name, another one. It returns when the new one is known here. Errors are those of
// RemoveMember.
func (s *Store) MoveLeadership(ctx context.Context, name string) error {
	before := s.Leadership()
	if err := s.order(ctx, forward.Change{Kind: forward.Transfer, Name: name}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, transferLimit)
	defer cancel()
	for {
		l, changed := s.replica.Leadership()
		if l.Ready && (l.LeaderID != before.LeaderID || MemberName(l.LeaderID) == name) {
			return nil
		}
		select {
		case <-changed:
		case <-s.stopping:
			return ErrStopped
		case <-ctx.Done():
			return ErrNoLeader
		}
	}
}

// order asks one leader after the other until one has carried the change out.
func (s *Store) order(ctx context.Context, c forward.Change) error {
	ctx, cancel := context.WithTimeout(ctx, orderLimit)
	defer cancel()
	for tried := false; ; tried = true {
		l, changed := s.replica.Leadership()
		if tried && !l.Ready {
			// A server that is no member any more hears of no leader.
			l = s.leaderByPeers()
		}
		err := s.toLeader(ctx, l, c)
		switch {
		case err == nil:
			return nil
		case tried && c.Kind == forward.Remove && errors.Is(err, ErrUnknownServer):
			return nil // the try before was not in vain
		case errors.Is(err, ErrUnsafe), errors.Is(err, ErrUnknownServer), errors.Is(err, ErrBadChange), errors.Is(err, ErrNameTaken):
			return err
		}
		select {
		case <-time.After(orderPause):
		case <-changed:
		case <-s.stopping:
			return ErrStopped
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// toLeader has a change carried out here if this replica leads, else there.
func (s *Store) toLeader(ctx context.Context, l Leadership, c forward.Change) error {
	switch {
	case l.Leader:
		return s.change(ctx, c)
	case l.Ready:
		return s.peers.ChangeMembers(ctx, forward.Peer{ID: l.LeaderID, Address: l.LeaderAddress}, c)
	}
	return ErrNoLeader
}

// Member is one member of the cluster, as it says itself where it answers.
type Member struct {
	Name, ID, Address string
	// Leader and Voter are its role; neither is a learner.
	Leader, Voter bool
	// Reachable: it answered this replica just now.
	Reachable bool
	// Applied is the last log entry in its state, Lag how many the most advanced
	// member has more.
	Applied, Lag uint64
	// Since is when its present leader became known to it; of a member that does not
	// answer, when the leader heard of it last, zero if unknown.
	Since time.Time
}

// Members asks every member of the replicated configuration how it is.
func (s *Store) Members(ctx context.Context) []Member {
	local := s.Status()
	members := make([]Member, len(local.Servers))
	var asking sync.WaitGroup
	for i, server := range local.Servers {
		members[i] = Member{
			Name: MemberName(server.ID), ID: server.ID, Address: server.Address,
			Voter: server.Voter, Leader: server.ID == local.LeaderID, Since: server.LastContact,
		}
		asking.Go(func() { s.askMember(ctx, &members[i]) })
	}
	asking.Wait()
	newest := local.AppliedIndex
	for _, m := range members {
		newest = max(newest, m.Applied)
	}
	for i := range members {
		if members[i].Reachable {
			members[i].Lag = newest - members[i].Applied
		}
	}
	return members
}

func (s *Store) askMember(ctx context.Context, m *Member) {
	status := backend{s}.Status()
	if m.ID != s.id() {
		var err error
		if status, err = s.status(ctx, Server{ID: m.ID, Address: m.Address}); err != nil {
			return
		}
	}
	m.Reachable, m.Applied, m.Since = true, status.AppliedIndex, status.Since
}

// id is this replica's member id.
func (s *Store) id() string { return s.replica.Beginning().ID }
