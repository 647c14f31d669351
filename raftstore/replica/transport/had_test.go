package transport

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func TestWhatAPeerHad(t *testing.T) {
	leads := func(term, commit uint64) *raft.AppendEntriesRequest {
		return &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ID: []byte(peerID)}, Term: term, LeaderCommitIndex: commit}
	}
	for name, c := range map[string]struct {
		acknowledged []*raft.AppendEntriesRequest
		sent         []*raft.AppendEntriesRequest
		// committed is the index known, in inTerm.
		committed, inTerm, want uint64
	}{
		"nothing":                                  {committed: 9, inTerm: 3, want: 0},
		"heartbeats":                               {acknowledged: []*raft.AppendEntriesRequest{{Term: 3}}, committed: 9, inTerm: 3, want: 0},
		"what it was told is committed":            {acknowledged: []*raft.AppendEntriesRequest{entries(3, 7, 8, 9)}, want: 7},
		"not what it does not have":                {acknowledged: []*raft.AppendEntriesRequest{entries(3, 9, 5, 6)}, want: 6},
		"what was committed since":                 {acknowledged: []*raft.AppendEntriesRequest{entries(3, 7, 8, 9)}, committed: 8, inTerm: 3, want: 8},
		"not what others have":                     {acknowledged: []*raft.AppendEntriesRequest{entries(3, 7, 8, 9)}, committed: 20, inTerm: 3, want: 9},
		"not what was committed in another term":   {acknowledged: []*raft.AppendEntriesRequest{entries(3, 7, 8, 9)}, committed: 20, inTerm: 4, want: 7},
		"what it had in an earlier term":           {acknowledged: []*raft.AppendEntriesRequest{entries(3, 7, 8, 9), {Term: 4}}, want: 7},
		"not an earlier term's with a later one's": {acknowledged: []*raft.AppendEntriesRequest{entries(3, 7, 8, 9), {Term: 4}}, committed: 9, inTerm: 4, want: 7},
		"what it had committed as a leader":        {sent: []*raft.AppendEntriesRequest{leads(3, 7), leads(4, 5)}, want: 7},
		"nothing of a leader without a name":       {sent: []*raft.AppendEntriesRequest{{Term: 3, LeaderCommitIndex: 7}}, want: 0},
	} {
		transport := heard(c.acknowledged...)
		for _, request := range c.sent {
			transport.ledBy(request)
		}
		got := transport.Had(peerID, func(term uint64) uint64 {
			if term != c.inTerm {
				return 0
			}
			return c.committed
		})
		if got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		if again := transport.Had(peerID, func(uint64) uint64 { return 0 }); again != c.want {
			t.Errorf("%s: later %d, want %d", name, again, c.want)
		}
	}
}

// TestAStoppedServer gives no vote, acknowledges nothing, and asks for no vote.
func TestAStoppedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := errors.New("stopped")
		there := voter("b", nil)
		defer there.stop()
		asker := voter("a", func() net.Conn {
			near, far := net.Pipe()
			go there.HandleConn(far)
			return near
		})
		defer asker.stop()
		ask := map[string]func(*Transport) error{
			"vote": func(from *Transport) error {
				return from.RequestVote("b", "", &raft.RequestVoteRequest{}, &raft.RequestVoteResponse{})
			},
			"pre-vote": func(from *Transport) error {
				return from.RequestPreVote("b", "", &raft.RequestPreVoteRequest{}, &raft.RequestPreVoteResponse{})
			},
			"entries": func(from *Transport) error {
				return from.appendEntries("b", "", entries(3, 7, 8, 9), &raft.AppendEntriesResponse{})
			},
		}
		for name, send := range ask {
			if err := send(asker); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		there.stopped = func() error { return stopped }
		for name, send := range ask {
			if err := send(asker); err == nil || err.Error() != stopped.Error() {
				t.Errorf("%s of a server that has stopped: %v", name, err)
			}
		}
		there.stopped, asker.stopped = asker.stopped, there.stopped
		for _, name := range []string{"vote", "pre-vote"} {
			if err := ask[name](asker); !errors.Is(err, stopped) {
				t.Errorf("%s asked by a server that has stopped: %v", name, err)
			}
		}
	})
}

// TestVotesWaitForTheMeeting: those that are asked for, and those that are given; entries do not wait.
func TestVotesWaitForTheMeeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unmet := New(Config{
			ID: "b", Address: "b", Logger: slog.New(slog.DiscardHandler), Raft: hclog.NewNullLogger(),
			Name:      func(id string) string { return id },
			Addresses: func(id string) ([]string, error) { return []string{id}, nil },
			Stopped:   func() error { return nil },
			Dial:      func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("called") },
		})
		defer unmet.stop()
		results := make(chan error, 1)
		go func() {
			results <- unmet.RequestVote("a", "", &raft.RequestVoteRequest{}, &raft.RequestVoteResponse{})
		}()
		given := raft.RPC{Command: &raft.RequestVoteRequest{}, RespChan: make(chan raft.RPCResponse, 1)}
		unmet.take(given)
		go unmet.take(raft.RPC{Command: &raft.AppendEntriesRequest{}, RespChan: make(chan raft.RPCResponse, 1)})
		if rpc := <-unmet.Consumer(); asksForVotes(rpc) {
			t.Error("the request for a vote did not wait")
		}
		synctest.Wait()
		select {
		case err := <-results:
			t.Errorf("it asked for a vote: %v", err)
		case <-unmet.Consumer():
			t.Error("it was asked for a vote")
		default:
		}
		unmet.MeetAll(t.Context(), 0, nil)
		if rpc := <-unmet.Consumer(); !asksForVotes(rpc) {
			t.Errorf("got %T", rpc.Command)
		}
		if err := <-results; err == nil {
			t.Error("it did not ask for a vote")
		}
	})
}
