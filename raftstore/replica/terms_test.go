package replica

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/replica/logbridge"
	"github.com/setpoint-io/setpoint/raftstore/replica/termstore"
	"github.com/setpoint-io/setpoint/raftstore/replica/transport"
)

// amongFakes is a replica with files, and two voters beside it whom the test speaks for.
// They grant every vote and take every entry.
type amongFakes struct {
	*Replica
	t     *testing.T
	fakes map[string]*transport.Transport
}

const farAhead = 1 << 40

// openAmongFakes opens server-1 among server-2 and server-3. It stands for election only
// when it is told.
func openAmongFakes(t *testing.T, dir string) *amongFakes {
	storage, err := OpenFiles(t.Context(), dir, testLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	a := &amongFakes{t: t, fakes: map[string]*transport.Transport{}}
	for _, id := range []string{"server-2", "server-3"} {
		a.fakes[id] = a.fake(id)
	}
	a.Replica, err = Open(t.Context(), Config{
		ID: "server-1", AdvertiseAddress: "server-1:1", Storage: storage,
		InitialServers: []Server{{"server-1", "server-1:1"}, {"server-2", "server-2:1"}, {"server-3", "server-3:1"}},
		Timing:         Timing{HeartbeatTimeout: time.Minute, ElectionTimeout: time.Minute},
		Fatal:          func(err error) { t.Errorf("stopped: %v", err) }, Logger: testLogger(t),
		Dial: func(_ context.Context, _, name string) (net.Conn, error) {
			near, far := net.Pipe()
			go a.fakes[name].HandleConn(far)
			return near, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if a.Beginning().Phase == Fresh {
		if err := a.Found(map[string]string{}, ""); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func (a *amongFakes) fake(id string) *transport.Transport {
	no := func(uint64) bool { return false }
	f := transport.New(transport.Config{
		ID: id, Address: id + ":1", Name: MemberName, Leads: no, Follows: no,
		Introduce: func(to string) transport.Greeting { return transport.Greeting{To: to, From: id} },
		Meet:      func(transport.Greeting) error { return nil },
		Refuses:   func([]*raft.Log) error { return nil },
		Stopped:   func() error { return nil },
		Logger:    testLogger(a.t), Raft: logbridge.New(testLogger(a.t)),
		Addresses: func(id string) ([]string, error) { return []string{id + ":1"}, nil },
		Dial: func(context.Context, string, string) (net.Conn, error) {
			if a.Replica == nil {
				return nil, syscall.ECONNREFUSED
			}
			near, far := net.Pipe()
			go a.HandleConn(far)
			return near, nil
		},
	})
	f.MeetAll(a.t.Context(), 0, nil)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case rpc := <-f.Consumer():
				rpc.Respond(agreeable(rpc.Command), nil)
			case <-done:
				return
			}
		}
	}()
	a.t.Cleanup(func() { close(done); f.Close(); f.CloseConns() })
	return f
}

func agreeable(request any) any {
	switch m := request.(type) {
	case *raft.RequestVoteRequest:
		return &raft.RequestVoteResponse{Term: m.Term, Granted: true}
	case *raft.RequestPreVoteRequest:
		return &raft.RequestPreVoteResponse{Term: m.Term, Granted: true}
	case *raft.AppendEntriesRequest:
		return &raft.AppendEntriesResponse{Term: m.Term, Success: true, LastLog: m.PrevLogEntry + uint64(len(m.Entries))}
	}
	return nil
}

func header(from string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(from), Addr: []byte(from + ":1")}
}

// heartbeat sends one, and returns whether the replica takes from for the leader of the term.
func (a *amongFakes) heartbeat(from string, term uint64) bool {
	var response raft.AppendEntriesResponse
	request := &raft.AppendEntriesRequest{RPCHeader: header(from), Term: term, Leader: []byte(from + ":1")}
	if err := a.fakes[from].AppendEntries("server-1", "", request, &response); err != nil {
		a.t.Errorf("heartbeat: %v", err)
	}
	return response.Success
}

// askVote asks for a vote as one that a leader hands over to, and returns whether it was given.
func (a *amongFakes) askVote(from string, term uint64) bool {
	var response raft.RequestVoteResponse
	request := &raft.RequestVoteRequest{
		RPCHeader: header(from), Term: term, Candidate: []byte(from + ":1"),
		LastLogIndex: farAhead, LastLogTerm: farAhead, LeadershipTransfer: true,
	}
	if err := a.fakes[from].RequestVote("server-1", "", request, &response); err != nil {
		a.t.Errorf("vote: %v", err)
	}
	return response.Granted
}

func (a *amongFakes) storedTerm() uint64 {
	term, err := a.stable.GetUint64([]byte(termstore.TermKey))
	if err != nil {
		a.t.Error(err)
	}
	return term
}

// TestATermNeverGoesBack: while the first heartbeat of a new leader arrives, another server
// asks for a vote in the next term. Once the vote is given, the term of it stays.
func TestATermNeverGoesBack(t *testing.T) {
	a := openAmongFakes(t, t.TempDir())
	defer a.Close()
	given := 0
	for range 60 {
		term := a.Term() + 1
		granted := false
		var both sync.WaitGroup
		both.Go(func() { a.heartbeat("server-2", term) })
		both.Go(func() { granted = a.askVote("server-3", term+1) })
		both.Wait()
		if err := a.Failed(); err != nil {
			t.Fatal(err)
		}
		if !granted {
			continue
		}
		given++
		if now, stored := a.Term(), a.storedTerm(); now <= term || stored <= term {
			t.Fatalf("voted in term %d, then went back to %d, on disk to %d", term+1, now, stored)
		}
		if a.heartbeat("server-2", term) {
			t.Fatalf("voted in term %d, then followed the leader of %d", term+1, term)
		}
	}
	if given == 0 {
		t.Error("no vote was given: the test shows nothing")
	}
}

// TestADeposedLeaderStoresNothingInItsSuccessorsTerm: the first heartbeat of the successor
// arrives, then a client's write.
func TestADeposedLeaderStoresNothingInItsSuccessorsTerm(t *testing.T) {
	a := openAmongFakes(t, t.TempDir())
	defer a.Close()
	for range 3 {
		if err := a.Stand("server-1"); err != nil {
			t.Fatal(err)
		}
		waitLeader(t, a.Replica)
		term := a.Term()
		if !a.heartbeat("server-2", term+1) {
			t.Fatalf("the leader of term %d is not followed", term+1)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := a.Propose(ctx, &command.Entry{FormatVersion: command.FormatVersion, Commands: []command.Command{
			{Ops: []command.Op{{Kind: command.Put, Key: "/x", Value: []byte("x")}}},
		}})
		cancel()
		if !errors.Is(err, ErrNotLeader) {
			t.Errorf("a deposed leader was given a write: %v", err)
		}
		if a.Term() != term+1 {
			t.Fatalf("in term %d behind a heartbeat of %d", a.Term(), term+1)
		}
		var last raft.Log
		if index, err := a.log.LastIndex(); err != nil || a.log.GetLog(index, &last) != nil {
			t.Fatalf("last entry %d: %v", index, err)
		}
		if last.Term > term {
			t.Fatalf("leader of term %d stored entry %d in term %d, which is its successor's", term, last.Index, last.Term)
		}
	}
}

// TestHeartbeatsAreAnsweredBesideTheMainLoop: and the main loop hears of them all the same.
func TestHeartbeatsAreAnsweredBesideTheMainLoop(t *testing.T) {
	a := openAmongFakes(t, t.TempDir())
	defer a.Close()
	for range 2 { // the first goes through the main loop
		if !a.heartbeat("server-2", 5) {
			t.Fatal("the leader of term 5 is not followed")
		}
	}
	heard := a.raft.LastContact()
	time.Sleep(5 * time.Millisecond)
	if !a.heartbeat("server-2", 5) || a.heartbeat("server-3", 4) {
		t.Error("wrong answer beside the main loop")
	}
	for limit := time.Now().Add(5 * time.Second); !a.raft.LastContact().After(heard); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("raft does not know that the leader lives")
		}
	}
	if _, id := a.raft.LeaderWithID(); id != "server-2" || a.Term() != 5 {
		t.Errorf("follows %s in term %d", id, a.Term())
	}
}

// TestAVoteCutShortIsNoVote: the power fails after the term of a vote was stored and before
// its candidate.
func TestAVoteCutShortIsNoVote(t *testing.T) {
	dir := t.TempDir()
	a := openAmongFakes(t, dir)
	if !a.askVote("server-2", 5) {
		t.Fatal("no vote in term 5")
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	storage, err := OpenFiles(t.Context(), filepath.Clean(dir), testLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	stable := storage.terms(&diskGuard{fail: func(error) {}, limit: time.Minute})
	for _, key := range []string{termstore.TermKey, termstore.VoteTermKey} {
		if err := stable.SetUint64([]byte(key), 6); err != nil {
			t.Fatal(err)
		}
	}
	if err := storage.Close(); err != nil {
		t.Fatal(err)
	}
	a = openAmongFakes(t, dir)
	defer a.Close()
	if a.askVote("server-2", 6) {
		t.Error("the vote of term 5 was given again in term 6, whatever the candidate's log")
	}
	if !a.askVote("server-3", 7) {
		t.Error("no vote in term 7")
	}
}
