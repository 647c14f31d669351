package transport

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// voter is a transport that grants every vote.
func voter(id string, dial func() net.Conn) *Transport {
	t := New(Config{
		ID: id, Address: id, Logger: slog.New(slog.DiscardHandler), Raft: hclog.NewNullLogger(),
		Name:      func(id string) string { return id },
		Addresses: func(id string) ([]string, error) { return []string{id}, nil },
		Leads:     func(uint64) bool { return false },
		Introduce: func(to string) Greeting { return Greeting{To: to, From: id, Life: "l"} },
		Meet:      func(Greeting) error { return nil },
		Stopped:   func() error { return nil },
		Refuses:   func([]*raft.Log) error { return nil },
		Dial: func(context.Context, string, string) (net.Conn, error) {
			if conn := dial(); conn != nil {
				return conn, nil
			}
			return nil, syscall.ECONNREFUSED
		},
	})
	t.MeetAll(context.Background(), 0, nil)
	go func() {
		for {
			select {
			case rpc := <-t.Consumer():
				rpc.Respond(&raft.RequestVoteResponse{Granted: true}, nil)
			case <-t.stream.closed:
				return
			}
		}
	}()
	return t
}

// stop ends it, and its connections, as the end of its process would.
func (t *Transport) stop() {
	t.Close()
	t.CloseConns()
}

func TestAVoteIsAskedOfTheNextLifeOfAPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var peer atomic.Pointer[Transport]
		asker := voter("a", func() net.Conn {
			there := peer.Load()
			if there == nil {
				return nil
			}
			near, far := net.Pipe()
			go there.HandleConn(far)
			return near
		})
		defer asker.stop()
		ask := func() error {
			response := &raft.RequestVoteResponse{}
			err := asker.RequestVote("b", "", &raft.RequestVoteRequest{}, response)
			if err == nil && !response.Granted {
				err = errors.New("not granted")
			}
			return err
		}
		for life := range 3 {
			there := voter("b", nil)
			peer.Store(there)
			for range 2 {
				if err := ask(); err != nil {
					t.Errorf("life %d: %v", life, err)
				}
			}
			peer.Store(nil)
			there.stop()
			synctest.Wait()
		}
		if err := ask(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("of a peer that is gone: %v", err)
		}
	})
}
