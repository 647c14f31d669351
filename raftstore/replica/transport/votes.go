package transport

import (
	"errors"
	"io"
	"syscall"

	"github.com/hashicorp/raft"
)

// RequestVote implements raft.Transport.
func (t *Transport) RequestVote(
	id raft.ServerID,
	target raft.ServerAddress,
	request *raft.RequestVoteRequest,
	response *raft.RequestVoteResponse,
) error {
	if err := t.awaitMeeting(); err != nil {
		return err
	}
	return afresh(func() error { return t.NetworkTransport.RequestVote(id, target, request, response) })
}

// RequestPreVote implements raft.WithPreVote.
func (t *Transport) RequestPreVote(
	id raft.ServerID,
	target raft.ServerAddress,
	request *raft.RequestPreVoteRequest,
	response *raft.RequestPreVoteResponse,
) error {
	if err := t.awaitMeeting(); err != nil {
		return err
	}
	return afresh(func() error { return t.NetworkTransport.RequestPreVote(id, target, request, response) })
}

// afresh sends a message again when its connection turns out to have ended. A peer that
// has been away leaves such connections in the pool, and raft asks for a vote only once
// before it waits out an election timeout. Who asks twice gets the same answer.
func afresh(send func() error) (err error) {
	for range peerConnections + 1 {
		if err = send(); !hungUp(err) {
			break
		}
	}
	return err
}

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
