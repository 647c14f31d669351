package transport

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// TestAHeartbeatOfTheTermDoesNotWait: the follower's main loop is busy, as with its disk.
func TestAHeartbeatOfTheTermDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		follower := New(Config{
			ID: "b", Address: "b", Logger: slog.New(slog.DiscardHandler), Raft: hclog.NewNullLogger(),
			Follows: func(term uint64) bool { return term == 5 }, Stopped: func() error { return nil },
		})
		defer follower.stop()
		leader := New(Config{
			ID: "a", Address: "a", Logger: slog.New(slog.DiscardHandler), Raft: hclog.NewNullLogger(),
			Name:      func(id string) string { return id },
			Addresses: func(id string) ([]string, error) { return []string{id}, nil },
			Dial: func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				go follower.HandleConn(far)
				return near, nil
			},
		})
		defer leader.stop()
		beat := func(term uint64) (accepted, answered bool) {
			var response raft.AppendEntriesResponse
			request := &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{Addr: []byte("a")}, Term: term}
			err := leader.AppendEntries("b", "", request, &response)
			return response.Success && response.Term == term, err == nil
		}
		for range 3 {
			if accepted, answered := beat(5); !accepted || !answered {
				t.Fatalf("heartbeat of the term: accepted %v, answered %v", accepted, answered)
			}
		}
		// One of the three waits for the main loop, which is here.
		if rpc := <-follower.Consumer(); rpc.Command.(*raft.AppendEntriesRequest).Term != 5 {
			t.Errorf("the main loop got %+v", rpc.Command)
		}
		for _, other := range []uint64{4, 6} {
			go func() {
				time.Sleep(time.Second)
				rpc := <-follower.Consumer()
				for rpc.Command.(*raft.AppendEntriesRequest).Term == 5 {
					rpc = <-follower.Consumer()
				}
				rpc.Respond(&raft.AppendEntriesResponse{Term: other, Success: true}, nil)
			}()
			asked := time.Now()
			if _, answered := beat(other); !answered || time.Since(asked) != time.Second {
				t.Errorf("heartbeat of term %d: answered %v after %v, want the main loop's answer", other, answered, time.Since(asked))
			}
		}
	})
}
