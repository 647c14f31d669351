package raftstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/forward"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

const (
	// catchUpPoll is how often a joining server is asked how far it is.
	catchUpPoll = 50 * time.Millisecond
	// callLimit bounds asking a server where it may be for one who wants to join.
	callLimit = 10 * time.Second
)

// change carries out a change of the membership, one at a time. Only the leader
// can. Each step is one entry in the log; whoever asks again, of whichever leader,
// goes on where the last one stopped.
func (s *Store) change(ctx context.Context, c forward.Change) error {
	select {
	case s.changing <- struct{}{}:
		defer func() { <-s.changing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if !s.Leadership().Leader {
		return ErrNotLeader
	}
	switch c.Kind {
	case forward.Add:
		return s.addMember(ctx, c)
	case forward.Remove:
		return s.removeMember(ctx, c.Name)
	case forward.Replace:
		return s.replaceMember(ctx, c)
	case forward.Transfer:
		return s.transferTo(ctx, c.Name)
	case forward.Admit:
		return s.admitServer(ctx, c)
	}
	return fmt.Errorf("%w: kind %d", ErrBadChange, c.Kind)
}

// lives are the members that bear the name: one, or two while one takes the
// other's place.
func (s *Store) lives(name string) []ServerStatus {
	var lives []ServerStatus
	for _, server := range s.replica.Status().Servers {
		if MemberName(server.ID) == name {
			lives = append(lives, server)
		}
	}
	return lives
}

func (s *Store) addMember(ctx context.Context, c forward.Change) error {
	lives := s.lives(c.Name)
	if len(lives) == 1 && lives[0].Voter && lives[0].Address == c.Address {
		return nil
	}
	if at := slices.IndexFunc(lives, func(l ServerStatus) bool { return l.Voter }); at >= 0 {
		return fmt.Errorf("%w: %s is a member at %s already: replace it to move it", ErrNameTaken, c.Name, lives[at].Address)
	}
	server, err := s.call(ctx, c)
	if err != nil {
		return err
	}
	if err := s.noneJoins(ctx, lives, server); err != nil {
		return err
	}
	return s.takeIn(ctx, server)
}

// noneJoins refuses to add a server under the name of another one that is being added and lives. One that has gone, or that has lost its
// data meanwhile, has no place to lose.
func (s *Store) noneJoins(ctx context.Context, lives []ServerStatus, server Server) error {
	for _, learner := range lives {
		if learner.ID == server.ID {
			continue
		}
		if _, err := s.status(ctx, learner.Server); err == nil {
			return fmt.Errorf("%w: %s is being added at %s: remove that one first, or choose another name",
				ErrNameTaken, MemberName(learner.ID), learner.Address)
		}
	}
	return nil
}

func (s *Store) replaceMember(ctx context.Context, c forward.Change) error {
	if len(s.lives(c.Name)) == 0 {
		return fmt.Errorf("%w: %s: add it instead", ErrUnknownServer, c.Name)
	}
	server, err := s.call(ctx, c)
	if err != nil {
		return err
	}
	return s.takeIn(ctx, server)
}

// call asks who is at an address, until a server of the name answers that takes
// part or wants to.
func (s *Store) call(ctx context.Context, c forward.Change) (Server, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var last error // the last answer: that the time is over says nothing
	for {
		status, err := s.peers.Status(ctx, forward.Peer{ID: c.Name, Address: c.Address})
		if err == nil && status.Name == c.Name && takesPart(status) {
			return Server{ID: status.ID, Address: c.Address}, nil
		}
		if err == nil {
			err = fmt.Errorf("it is server %s, %s", status.Name, status.Phase)
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-time.After(catchUpPoll):
		case <-ctx.Done():
			return Server{}, fmt.Errorf("%w: no server %s waits at %s to be added: %w", ErrBadChange, c.Name, c.Address, last)
		case <-s.stopping:
			return Server{}, ErrStopped
		}
	}
}

func takesPart(status forward.Status) bool {
	return status.Phase == string(replica.Joining) || status.Phase == string(replica.Held)
}

// takeIn makes the server a voter in place of all others of its name: first
// without a vote, so that catching up hinders nobody, then the others go, then it
// gets its vote.
func (s *Store) takeIn(ctx context.Context, server Server) error {
	if err := s.understands(ctx, server); err != nil {
		return err
	}
	if err := s.replica.AddServer(ctx, server); err != nil {
		return err
	}
	// What the leader has now is enough: what comes later replicates as it comes.
	if err := s.waitCaughtUp(ctx, server, s.Root().Index); err != nil {
		return fmt.Errorf("server %s has not caught up: %w", server.ID, err)
	}
	for _, old := range s.lives(MemberName(server.ID)) {
		if old.ID == server.ID {
			continue
		}
		if err := s.removeServer(ctx, old); err != nil {
			return err
		}
	}
	return s.replica.PromoteServer(ctx, server)
}

// waitCaughtUp asks the server until it has applied the log up to index.
func (s *Store) waitCaughtUp(ctx context.Context, server Server, index uint64) error {
	for {
		status, err := s.status(ctx, server)
		if err == nil && status.AppliedIndex >= index {
			return nil
		}
		if !s.Leadership().Leader {
			return ErrNotLeader
		}
		select {
		case <-time.After(catchUpPoll):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-s.stopping:
			return ErrStopped
		}
	}
}

// status asks a member how it is, at its stored address and where the operator's
// list has its name.
func (s *Store) status(ctx context.Context, server Server) (forward.Status, error) {
	status, err := s.statusAt(ctx, server)
	for _, named := range s.cfg.InitialServers {
		if err != nil && named.ID == MemberName(server.ID) && named.Address != server.Address {
			return s.statusAt(ctx, Server{ID: server.ID, Address: named.Address})
		}
	}
	return status, err
}

func (s *Store) statusAt(ctx context.Context, server Server) (forward.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	status, err := s.peers.Status(ctx, forward.Peer{ID: server.ID, Address: server.Address})
	if err == nil && status.ID != server.ID {
		return status, fmt.Errorf("%s answers for %s", status.ID, server.ID)
	}
	return status, err
}

func (s *Store) removeMember(ctx context.Context, name string) error {
	lives := s.lives(name)
	if len(lives) == 0 {
		return fmt.Errorf("%w: %s", ErrUnknownServer, name)
	}
	for _, server := range lives {
		if err := s.removeServer(ctx, server); err != nil {
			return err
		}
	}
	return nil
}

// removeServer ends one membership. A leader hands over first, and whoever asked
// asks the next one.
func (s *Store) removeServer(ctx context.Context, server ServerStatus) error {
	if err := s.quorumWithout(ctx, server); err != nil {
		return err
	}
	if server.ID != s.id() {
		return s.replica.RemoveServer(ctx, server.ID)
	}
	if err := s.handOver(ctx); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s handed leadership over", ErrNotLeader, server.ID)
}

// quorumWithout checks that the voters left make a quorum that answers.
func (s *Store) quorumWithout(ctx context.Context, leaving ServerStatus) error {
	if !leaving.Voter {
		return nil
	}
	voters, live := 0, 0
	for _, server := range s.replica.Status().Servers {
		if server.ID == leaving.ID || !server.Voter {
			continue
		}
		voters++
		if s.isLive(ctx, server) {
			live++
		}
	}
	name := MemberName(leaving.ID)
	switch {
	case voters == 0:
		return fmt.Errorf("%w: %s is the only server with a vote", ErrUnsafe, name)
	case live <= voters/2:
		return fmt.Errorf(
			"%w: without %s only %d of the %d voters left answer, and nothing could be written",
			ErrUnsafe,
			name,
			live,
			voters,
		)
	}
	return nil
}

// isLive asks the server itself: when it was heard of last says little of one that
// was killed a moment ago.
func (s *Store) isLive(ctx context.Context, server ServerStatus) bool {
	if server.ID == s.id() {
		return true
	}
	_, err := s.status(ctx, server.Server)
	return err == nil
}

// transferTo hands leadership to the server of the name, or to the most advanced.
func (s *Store) transferTo(ctx context.Context, name string) error {
	if name == "" {
		return s.handOver(ctx)
	}
	lives := s.lives(name)
	if len(lives) == 0 {
		return fmt.Errorf("%w: %s", ErrUnknownServer, name)
	}
	to := lives[len(lives)-1]
	switch {
	case to.ID == s.id():
		return nil
	case !to.Voter:
		return fmt.Errorf("%w: %s has no vote yet", ErrUnsafe, name)
	case !s.isLive(ctx, to):
		return fmt.Errorf("%w: %s does not answer", ErrUnsafe, name)
	}
	return s.replica.TransferLeadership(ctx, to.Server)
}

// handOver makes the successor lead. Raft itself would choose by the log alone, and may
// wait for one that is down.
func (s *Store) handOver(ctx context.Context) error {
	to, ok := s.successor()
	if !ok {
		return fmt.Errorf("%w: there is no other server with a vote", ErrUnsafe)
	}
	return s.replica.TransferLeadership(ctx, to.Server)
}

// successor is the other voter that was heard of last, if there is one.
func (s *Store) successor() (to ServerStatus, ok bool) {
	for _, server := range s.replica.Status().Servers {
		if server.Voter && server.ID != s.id() && (!ok || server.LastContact.After(to.LastContact)) {
			to, ok = server, true
		}
	}
	return to, ok
}

// admitServer does what a server asks for itself.
func (s *Store) admitServer(ctx context.Context, c forward.Change) error {
	server := Server{ID: c.ID, Address: c.Address}
	var known *ServerStatus
	lives := s.lives(MemberName(c.ID))
	for i := range lives {
		if lives[i].ID == c.ID {
			known = &lives[i]
		}
	}
	if known != nil && known.Voter && known.Address == c.Address {
		return nil
	}
	if known == nil {
		if err := s.notRemoved(ctx, server); err != nil {
			return err
		}
		if err := s.mayTakePlace(ctx, lives, c.ID); err != nil {
			return err
		}
	}
	if err := s.reached(ctx, server, known != nil); err != nil {
		return err
	}
	if known != nil && known.Voter {
		return s.replica.AddServer(ctx, server)
	}
	return s.takeIn(ctx, server)
}

// notRemoved tells a server with data of this cluster that is no member that it was removed, or that another server has taken
// its place. Only a leader whom most voters follow may say that somebody is none.
func (s *Store) notRemoved(ctx context.Context, server Server) error {
	if err := s.replica.ConfirmLeader(ctx, s.Leadership().Term); err != nil {
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	status, err := s.statusAt(ctx, server)
	if err != nil || status.Phase != string(replica.Held) {
		return nil
	}
	return fmt.Errorf("%w: %s was removed from the cluster: empty its data directory to let it come back", ErrUnknownServer, server.ID)
}

// mayTakePlace refuses a newcomer that nobody ordered where a live server has its
// name already.
func (s *Store) mayTakePlace(ctx context.Context, lives []ServerStatus, id string) error {
	if len(lives) == 0 {
		return fmt.Errorf("%w: %s waits to be added", ErrUnknownServer, id)
	}
	for _, old := range lives {
		_, err := s.status(ctx, old.Server)
		if err == nil || old.ID == s.id() {
			return fmt.Errorf("%w: %s is alive at %s under the same name: replace it to move it", ErrUnsafe, old.ID, old.Address)
		}
	}
	return nil
}

// reached asks the server itself, at the address that it gave.
func (s *Store) reached(ctx context.Context, server Server, known bool) error {
	if server.ID == s.id() {
		return nil
	}
	status, err := s.statusAt(ctx, server)
	if err != nil {
		return fmt.Errorf("%w: %s is not reached at %s: %w", ErrBadChange, server.ID, server.Address, err)
	}
	if !known && status.Phase != string(replica.Joining) {
		return fmt.Errorf("%w: %s does not wait to be a member: it is %s", ErrUnsafe, server.ID, status.Phase)
	}
	return nil
}
