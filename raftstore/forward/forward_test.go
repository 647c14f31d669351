package forward_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/forward"
)

// scripted is a backend whose answers a test chooses.
type scripted struct {
	propose func([]command.Command) []forward.Outcome
	read    func() (forward.Answer, error)
	word    forward.Word
	status  forward.Status
	changed []forward.Change
	refusal error
}

func (s *scripted) Propose(_ context.Context, c []command.Command) []forward.Outcome {
	return s.propose(c)
}
func (s *scripted) ReadIndex(_ context.Context, word forward.Word) (forward.Answer, error) {
	s.word = word
	return s.read()
}
func (s *scripted) Status() forward.Status { return s.status }
func (s *scripted) LeaderGone(_ context.Context, l forward.Led) forward.Vacancy {
	return forward.Vacancy{Gone: l == forward.Led{Leader: "a", Term: 7}, LastTerm: 6, LastIndex: 99}
}
func (s *scripted) CompareState(c forward.Claim) (hash [command.HashBytes]byte, known bool) {
	return c.Hash, c.Index == 5
}

func (s *scripted) ChangeMembers(_ context.Context, c forward.Change) error {
	s.changed = append(s.changed, c)
	return s.refusal
}

// serve returns a client of a handler over the backend.
func serve(t *testing.T, b forward.Backend, authorize func(*http.Request) error) *forward.Client {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(forward.NewHandler(b, authorize))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return forward.NewClient(func(string, string) (*http.Client, string) { return server.Client(), server.URL })
}

func anyone(*http.Request) error { return nil }

var peer = forward.Peer{ID: "server-2", Address: "server-2:1"}

func commands(n int) []command.Command {
	c := make([]command.Command, n)
	for i := range c {
		c[i] = command.Command{Session: 7, Sequence: uint64(i), Fence: 3, Ops: []command.Op{{Kind: command.Put, Key: fmt.Sprint("/k/", i), Value: []byte("v")}}}
	}
	return c
}

func TestCommandsAndOutcomesArriveWhole(t *testing.T) {
	sent := commands(4)
	result := command.Result{Code: command.PreconditionFailed, Revision: 9, Revisions: []uint64{1, 0}, Current: 4, FailedOp: 1, Message: "no"}
	b := &scripted{propose: func(got []command.Command) []forward.Outcome {
		if diff := cmp.Diff(sent, got); diff != "" {
			t.Errorf("commands: %s", diff)
		}
		return []forward.Outcome{
			{Result: result},
			{Err: fmt.Errorf("%w: not leading", forward.ErrNotProposed)},
			{Err: forward.ErrOverloaded},
			{Err: errors.New("leadership lost")},
		}
	}}
	got := serve(t, b, anyone).Propose(t.Context(), peer, sent)
	if diff := cmp.Diff(result, got[0].Result); got[0].Err != nil || diff != "" {
		t.Errorf("result: %v %s", got[0].Err, diff)
	}
	if !errors.Is(got[1].Err, forward.ErrNotProposed) || errors.Is(got[1].Err, forward.ErrOverloaded) {
		t.Errorf("not proposed: %v", got[1].Err)
	}
	if !errors.Is(got[2].Err, forward.ErrOverloaded) {
		t.Errorf("overloaded: %v", got[2].Err)
	}
	if !errors.Is(got[3].Err, forward.ErrOutcomeUnknown) || errors.Is(got[3].Err, forward.ErrNotProposed) {
		t.Errorf("unknown: %v", got[3].Err)
	}
}

func TestFailedRequests(t *testing.T) {
	dead := forward.NewClient(func(string, string) (*http.Client, string) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
		}
		return &http.Client{Transport: &http.Transport{DialContext: dial}}, "http://nowhere"
	})
	silent := serve(t, &scripted{propose: func(c []command.Command) []forward.Outcome {
		time.Sleep(200 * time.Millisecond)
		return make([]forward.Outcome, len(c))
	}}, anyone)
	short := serve(t, &scripted{propose: func([]command.Command) []forward.Outcome { return nil }}, anyone)
	stranger := serve(t, &scripted{}, func(*http.Request) error { return errors.New("who are you") })
	closed := serve(t, &scripted{}, nil)
	for _, tc := range []struct {
		name   string
		client *forward.Client
		want   error
	}{
		{"dial refused", dead, forward.ErrNotProposed},
		{"no answer in time", silent, forward.ErrOutcomeUnknown},
		{"too few outcomes", short, forward.ErrOutcomeUnknown},
		{"not authorized", stranger, forward.ErrNotProposed},
		{"no authorization configured", closed, forward.ErrNotProposed},
		{"no client configured", forward.NewClient(nil), forward.ErrNotProposed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			got := tc.client.Propose(ctx, peer, commands(2))
			if len(got) != 2 || !errors.Is(got[0].Err, tc.want) || !errors.Is(got[1].Err, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestReadIndex(t *testing.T) {
	want := forward.Answer{Revision: 42, Round: 3}
	b := &scripted{read: func() (forward.Answer, error) { return want, nil }}
	client := serve(t, b, anyone)
	word := forward.Word{ID: "server-1", Term: 7, Seen: 2}
	if answer, err := client.ReadIndex(t.Context(), peer, word); answer != want || err != nil || b.word != word {
		t.Errorf("got %v %v, word %v", answer, err, b.word)
	}
	b.read = func() (forward.Answer, error) { return want, errors.New("not the leader") }
	if _, err := client.ReadIndex(t.Context(), peer, word); err == nil {
		t.Error("a follower's refusal is no error")
	}
}

func TestStatusAndMembership(t *testing.T) {
	b := &scripted{status: forward.Status{
		Name: "server-2", ID: "server-2+01020304", Phase: "held", Nonce: "n", Founders: map[string]string{"server-1": "m"},
		Leader: "server-1", LeaderAddress: "server-1:1", Since: time.UnixMilli(1_700_000_000_123), Term: 3, Revision: 9, AppliedIndex: 12, LastIndex: 13,
		SnapshotIndex: 5, LogBytes: 1 << 20, SyncP99: 3 * time.Millisecond,
	}}
	client := serve(t, b, anyone)
	status, err := client.Status(t.Context(), peer)
	if diff := cmp.Diff(b.status, status); err != nil || diff != "" {
		t.Errorf("status: %v %s", err, diff)
	}
	changes := []forward.Change{
		{Kind: forward.Add, Name: "server-4", Address: "server-4:1"}, {Kind: forward.Remove, Name: "server-1"},
		{Kind: forward.Replace, Name: "server-1", Address: "new:1"}, {Kind: forward.Transfer},
		{Kind: forward.Admit, Name: "server-1", ID: "server-1+01020304", Address: "new:1"},
	}
	for _, c := range changes {
		if err := client.ChangeMembers(t.Context(), peer, c); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(changes, b.changed); diff != "" {
		t.Error(diff)
	}
}

func TestRefusalsOfAChangeKeepTheirReason(t *testing.T) {
	b := &scripted{}
	client := serve(t, b, anyone)
	for _, reason := range []error{forward.ErrNotLeading, forward.ErrUnsafe, forward.ErrUnknownServer, forward.ErrNameTaken, forward.ErrBadChange} {
		b.refusal = fmt.Errorf("%w: said the leader", reason)
		err := client.ChangeMembers(t.Context(), peer, forward.Change{Kind: forward.Transfer})
		if !errors.Is(err, reason) || err.Error() != b.refusal.Error() {
			t.Errorf("%v arrived as %v", b.refusal, err)
		}
	}
	b.refusal = errors.New("disk failed")
	if err := client.ChangeMembers(t.Context(), peer, forward.Change{}); err == nil {
		t.Error("an error was lost")
	}
}

// TestOlderServersKnowThatANameIsTaken: by a code after which they do not ask again.
func TestOlderServersKnowThatANameIsTaken(t *testing.T) {
	_, handler := forward.NewHandler(&scripted{refusal: fmt.Errorf("%w: x", forward.ErrNameTaken)}, anyone)
	server := httptest.NewServer(handler)
	defer server.Close()
	answer, err := http.Post(server.URL+"/setpoint.raftstore.forward.v1.PeerService/ChangeMembers", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(text), `"failed_precondition"`) {
		t.Errorf("%s %v", text, err)
	}
}

func TestAVoterSaysWhatItFindsOfTheLeader(t *testing.T) {
	client := serve(t, &scripted{}, anyone)
	for led, gone := range map[forward.Led]bool{{Leader: "a", Term: 7}: true, {Leader: "a", Term: 8}: false, {Leader: "b", Term: 7}: false} {
		got, err := client.LeaderGone(t.Context(), peer, led)
		if want := (forward.Vacancy{Gone: gone, LastTerm: 6, LastIndex: 99}); err != nil || got != want {
			t.Errorf("%+v: %+v, %v", led, got, err)
		}
	}
}

func TestClaims(t *testing.T) {
	client := serve(t, &scripted{}, anyone)
	for index, want := range map[uint64]error{5: nil, 6: forward.ErrNoClaim} {
		claim := forward.Claim{Member: "b", Index: index, Hash: [command.HashBytes]byte{1, 2, 3}}
		hash, err := client.CompareState(t.Context(), peer, claim)
		if !errors.Is(err, want) || err == nil && hash != claim.Hash {
			t.Errorf("entry %d: %x, %v", index, hash, err)
		}
	}
}

func TestALaterTermIsALongerLog(t *testing.T) {
	long, late := forward.Vacancy{LastTerm: 2, LastIndex: 9}, forward.Vacancy{LastTerm: 3, LastIndex: 5}
	if late.CompareLogs(long) <= 0 || long.CompareLogs(late) >= 0 || late.CompareLogs(late) != 0 {
		t.Error("logs are compared by length first")
	}
}
