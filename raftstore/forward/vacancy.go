package forward

import (
	"cmp"
	"context"
	"fmt"

	"connectrpc.com/connect"

	"github.com/setpoint-io/setpoint/raftstore/forward/forwardpb"
)

// Led is a leadership: a member's in a raft term.
type Led struct {
	Leader string
	Term   uint64
}

// Vacancy is what a voter says of a leader that another found gone.
type Vacancy struct {
	// Gone: this voter also finds that the leader refuses connections, and knows of no other leader and no later
	// term.
	Gone bool
	// LastTerm and LastIndex are those of the last entry in its log. Raft gives no vote to
	// a log that ends earlier.
	LastTerm, LastIndex uint64
}

// CompareLogs is negative if v's log ends before that of other.
func (v Vacancy) CompareLogs(other Vacancy) int {
	return cmp.Or(cmp.Compare(v.LastTerm, other.LastTerm), cmp.Compare(v.LastIndex, other.LastIndex))
}

// LeaderGone asks a voter whether the leader's process has ended. A server of a release
// before this question has no answer.
func (c *Client) LeaderGone(ctx context.Context, voter Peer, l Led) (Vacancy, error) {
	client, err := c.peer(voter)
	if err != nil {
		return Vacancy{}, err
	}
	response, err := client.LeaderGone(ctx, connect.NewRequest(&forwardpb.LeaderGoneRequest{Leader: l.Leader, Term: l.Term}))
	if err != nil {
		return Vacancy{}, fmt.Errorf("leader gone: %w", err)
	}
	m := response.Msg
	return Vacancy{Gone: m.GetGone(), LastTerm: m.GetLastTerm(), LastIndex: m.GetLastIndex()}, nil
}
