package replica

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// changeTimeout bounds how long a change of the configuration waits to be taken up.
const changeTimeout = 5 * time.Second

// AddServer makes the server a member that receives the log but has no vote, or
// updates its address. Only the leader can. Errors wrap ErrNotLeader.
func (r *Replica) AddServer(ctx context.Context, s Server) error {
	if r.isVoter(s.ID) {
		return r.PromoteServer(ctx, s)
	}
	return r.changed(ctx, func() raft.Future {
		return r.raft.AddNonvoter(raft.ServerID(s.ID), raftAddress(s), 0, changeTimeout)
	})
}

// PromoteServer gives a member its vote. The caller has seen that it caught up.
func (r *Replica) PromoteServer(ctx context.Context, s Server) error {
	return r.changed(ctx, func() raft.Future {
		return r.raft.AddVoter(raft.ServerID(s.ID), raftAddress(s), 0, changeTimeout)
	})
}

// RemoveServer ends a membership.
func (r *Replica) RemoveServer(ctx context.Context, id string) error {
	return r.changed(ctx, func() raft.Future { return r.raft.RemoveServer(raft.ServerID(id), 0, changeTimeout) })
}

func (r *Replica) changed(ctx context.Context, change func() raft.Future) error {
	if !r.started() {
		return ErrNotLeader
	}
	if err := r.await(ctx, change); err != nil {
		return fmt.Errorf("changing the membership: %w", proposeError(err))
	}
	return nil
}

func (r *Replica) isVoter(id string) bool {
	if !r.started() {
		return false
	}
	for _, s := range r.raft.GetConfiguration().Configuration().Servers {
		if s.ID == raft.ServerID(id) {
			return s.Suffrage == raft.Voter
		}
	}
	return false
}

// isMember reports whether the newest configuration has the member id.
func (r *Replica) isMember(id string) bool {
	instance := r.running.Load()
	return instance != nil && slices.ContainsFunc(instance.GetConfiguration().Configuration().Servers, func(s raft.Server) bool {
		return s.ID == raft.ServerID(id)
	})
}

// TransferLeadership makes the voter given the leader, without the gap of an
// election by timeout. On a follower it fails with ErrNotLeader.
func (r *Replica) TransferLeadership(ctx context.Context, to Server) error {
	err := r.changed(ctx, func() raft.Future {
		return r.raft.LeadershipTransferToServer(raft.ServerID(to.ID), raftAddress(to))
	})
	if err != nil {
		return fmt.Errorf("transferring leadership: %w", err)
	}
	return nil
}

// LeaderSince is when the present leader became known here.
func (r *Replica) LeaderSince() time.Time {
	r.tracker.mu.Lock()
	defer r.tracker.mu.Unlock()
	return r.tracker.since
}

// addresses are where a member may be, the best first: where the operator's list
// has its name, and where the replicated configuration has it.
func (r *Replica) addresses(id string) ([]string, error) {
	var found []string
	if current := r.operatorAddress(MemberName(id)); current != "" {
		found = append(found, current)
	}
	if instance := r.running.Load(); instance != nil {
		for _, s := range instance.GetConfiguration().Configuration().Servers {
			if address := plainAddress(s.Address); string(s.ID) == id && !slices.Contains(found, address) {
				found = append(found, address)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no address of %s is known", id)
	}
	return found, nil
}

// HandleConn serves one raft connection that a peer opened, already authenticated, and
// reports whether raft had it. It returns when the connection is closed. A replica that
// takes no part in raft yet closes it at once.
func (r *Replica) HandleConn(conn net.Conn) bool {
	if !r.started() {
		conn.Close()
		return false
	}
	return r.transport.HandleConn(conn)
}
