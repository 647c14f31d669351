package transport

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// MeetAll greets the other members and returns when each has answered, or refused, or after
// the limit. It is called once, when raft has started: until it returns no vote is given or
// asked for. One of the others may know that this server's disk was put back to an earlier
// state, and it must hear that before it helps to elect a leader who lacks what it has
// forgotten.
func (t *Transport) MeetAll(ctx context.Context, limit time.Duration, members []raft.Server) {
	defer close(t.met)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var meeting sync.WaitGroup
	for _, member := range members {
		if id := string(member.ID); id != t.stream.cfg.ID {
			meeting.Go(func() { t.stream.meet(ctx, id) })
		}
	}
	meeting.Wait()
}

// meet greets a member, at the first of its addresses where it is.
func (s *streamLayer) meet(ctx context.Context, id string) {
	addresses, err := s.cfg.Addresses(id)
	for _, address := range addresses {
		conn, failed := s.callAt(ctx, address, id, greetForAnswer)
		if failed == nil {
			conn.Close()
			return
		}
		err = failed
	}
	s.cfg.Logger.Debug("not met", "server", s.cfg.Name(id), "err", err)
}

// awaitMeeting returns when MeetAll has, or an error if this server leaves or has stopped.
func (t *Transport) awaitMeeting() error {
	select {
	case <-t.met:
		return t.stopped()
	case <-t.leaving:
		return errLeaving
	case <-t.stream.closed:
		return errStreamClosed
	}
}

func (t *Transport) hasMet() bool {
	select {
	case <-t.met:
		return true
	default:
		return false
	}
}

// asksForVotes: of this server, or asks this server to ask for them.
func asksForVotes(rpc raft.RPC) bool {
	switch rpc.Command.(type) {
	case *raft.RequestVoteRequest, *raft.RequestPreVoteRequest, *raft.TimeoutNowRequest:
		return true
	}
	return false
}

// deliverMet delivers a message once the others were met.
func (t *Transport) deliverMet(rpc raft.RPC) {
	if err := t.awaitMeeting(); err != nil {
		rpc.Respond(nil, err)
		return
	}
	t.deliver(rpc)
}
