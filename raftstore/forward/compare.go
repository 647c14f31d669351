package forward

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/forward/forwardpb"
)

// ErrNoClaim: the member has not come to the log entry, or does not remember.
var ErrNoClaim = errors.New("the member has no hash of its state there")

// Claim is what a member's state was at a log entry that asked for a comparison.
type Claim struct {
	// Member is its id.
	Member string
	// Index is that of the entry. With 0 a member that has come asks the leader for a
	// comparison, and claims nothing.
	Index uint64
	Hash  [command.HashBytes]byte
}

// CompareState tells a member what this one claims, and returns what it claims itself.
// Errors wrap ErrNoClaim if it has nothing to say. A server of a release before this
// question has no answer.
func (c *Client) CompareState(ctx context.Context, member Peer, claim Claim) (hash [command.HashBytes]byte, err error) {
	client, err := c.peer(member)
	if err != nil {
		return hash, err
	}
	response, err := client.CompareState(ctx, connect.NewRequest(&forwardpb.CompareStateRequest{
		Member: claim.Member, Index: claim.Index, Hash: claim.Hash[:],
	}))
	if err != nil {
		return hash, fmt.Errorf("comparing states: %w", err)
	}
	if len(response.Msg.GetHash()) != len(hash) {
		return hash, ErrNoClaim
	}
	return [command.HashBytes]byte(response.Msg.GetHash()), nil
}

// CompareState implements forwardpbconnect.PeerServiceHandler.
func (s *service) CompareState(
	_ context.Context,
	r *connect.Request[forwardpb.CompareStateRequest],
) (*connect.Response[forwardpb.CompareStateResponse], error) {
	claim := Claim{Member: r.Msg.GetMember(), Index: r.Msg.GetIndex()}
	if copy(claim.Hash[:], r.Msg.GetHash()) != len(claim.Hash) {
		return nil, connect.NewError(
			connect.CodeInvalidArgument,
			fmt.Errorf("hash of %d bytes, want %d", len(r.Msg.GetHash()), len(claim.Hash)),
		)
	}
	response := &forwardpb.CompareStateResponse{}
	if hash, known := s.backend.CompareState(claim); known {
		response.Hash = hash[:]
	}
	return connect.NewResponse(response), nil
}
