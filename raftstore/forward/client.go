package forward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"connectrpc.com/connect"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/forward/forwardpb"
	"github.com/setpoint-io/setpoint/raftstore/forward/forwardpb/forwardpbconnect"
	"github.com/setpoint-io/setpoint/raftstore/wire"
)

// Peer is a server to ask.
type Peer struct{ ID, Address string }

// Word is what a member says of itself when it asks the leader for a revision: that it
// was in the raft term after the reads began that it asks for, and after it had seen an
// answer in that term which named a round of the leader's own reads; 0 is none.
type Word struct {
	ID         string
	Term, Seen uint64
}

// Answer is what a leader says: its revision, and the last round of its own reads that
// had begun, if it leads in the term of the word; else 0.
type Answer struct{ Revision, Round uint64 }

// Outcome is what became of one command: a result, or why there is none.
type Outcome struct {
	Result command.Result
	// Err wraps ErrNotProposed or ErrOutcomeUnknown.
	Err error
}

// AllFailed returns n outcomes with the same error.
func AllFailed(n int, err error) []Outcome {
	outcomes := make([]Outcome, n)
	for i := range outcomes {
		outcomes[i].Err = err
	}
	return outcomes
}

// Client asks peers. Its methods may be called from any goroutine; each call is
// one request.
type Client struct {
	httpClient func(serverID, address string) (*http.Client, string)

	mu    sync.Mutex
	known map[Peer]knownPeer
}

// knownPeer is a client made before, for as long as its transport stays the same.
type knownPeer struct {
	transport *http.Client
	baseURL   string
	client    forwardpbconnect.PeerServiceClient
}

// uncompressed: a message is small, and the way to a peer is short.
var uncompressed = connect.WithAcceptCompression("gzip", nil, nil)

// NewClient returns a client that reaches peers by httpClient.
func NewClient(httpClient func(serverID, address string) (client *http.Client, baseURL string)) *Client {
	return &Client{httpClient: httpClient, known: map[Peer]knownPeer{}}
}

func (c *Client) peer(p Peer) (forwardpbconnect.PeerServiceClient, error) {
	if c.httpClient == nil {
		return nil, errors.New("no client for peers configured")
	}
	transport, baseURL := c.httpClient(p.ID, p.Address)
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.known[p]
	if known.transport != transport || known.baseURL != baseURL {
		known = knownPeer{transport, baseURL, forwardpbconnect.NewPeerServiceClient(
			transport, baseURL, connect.WithReadMaxBytes(messageLimitBytes), uncompressed)}
		c.known[p] = known
	}
	return known.client, nil
}

// Propose sends commands to the leader and returns one outcome for each.
func (c *Client) Propose(ctx context.Context, leader Peer, commands []command.Command) []Outcome {
	client, err := c.peer(leader)
	if err != nil {
		return AllFailed(len(commands), fmt.Errorf("%w: %w", ErrNotProposed, err))
	}
	entry := &command.Entry{FormatVersion: command.FormatVersion, Commands: commands}
	request := &forwardpb.ProposeRequest{Entry: entry.Marshal(), Essential: essential(commands)}
	response, err := client.Propose(ctx, connect.NewRequest(request))
	if err != nil {
		return AllFailed(len(commands), requestError(err))
	}
	if len(response.Msg.GetOutcomes()) != len(commands) {
		err := fmt.Errorf("%w: %d outcomes for %d commands", ErrOutcomeUnknown, len(response.Msg.GetOutcomes()), len(commands))
		return AllFailed(len(commands), err)
	}
	outcomes := make([]Outcome, len(commands))
	for i, o := range response.Msg.GetOutcomes() {
		outcomes[i] = fromWire(o)
	}
	return outcomes
}

// essential lists the positions of the commands that are.
func essential(commands []command.Command) (positions []uint32) {
	for i := range commands {
		if commands[i].Essential {
			positions = append(positions, uint32(i))
		}
	}
	return positions
}

// requestError tells a request that never left from one that may have arrived.
func requestError(err error) error {
	var op *net.OpError
	notSent := errors.As(err, &op) && op.Op == "dial"
	switch connect.CodeOf(err) {
	case connect.CodePermissionDenied, connect.CodeUnauthenticated, connect.CodeInvalidArgument,
		connect.CodeUnimplemented, connect.CodeResourceExhausted:
		notSent = true
	}
	if notSent {
		return fmt.Errorf("%w: %w", ErrNotProposed, err)
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
}

func fromWire(o *forwardpb.Outcome) Outcome {
	switch o.GetRefusal() {
	case forwardpb.Refusal_REFUSAL_UNSPECIFIED:
		r := wire.NewReader(o.GetResult())
		result := command.ReadResult(r)
		if r.Err() != nil {
			return Outcome{Err: fmt.Errorf("%w: %w", ErrOutcomeUnknown, r.Err())}
		}
		return Outcome{Result: result}
	case forwardpb.Refusal_REFUSAL_NOT_LEADER:
		return Outcome{Err: fmt.Errorf("%w: %s", ErrNotProposed, o.GetMessage())}
	case forwardpb.Refusal_REFUSAL_OVERLOADED:
		return Outcome{Err: ErrOverloaded}
	case forwardpb.Refusal_REFUSAL_NO_SPACE:
		return Outcome{Err: fmt.Errorf("%w: %s", ErrNoSpace, o.GetMessage())}
	}
	return Outcome{Err: fmt.Errorf("%w: %s", ErrOutcomeUnknown, o.GetMessage())}
}

// ReadIndex returns the revision that a confirmed leader had after the call began.
func (c *Client) ReadIndex(ctx context.Context, leader Peer, word Word) (Answer, error) {
	client, err := c.peer(leader)
	if err != nil {
		return Answer{}, err
	}
	request := &forwardpb.ReadIndexRequest{Id: word.ID, Term: word.Term, Seen: word.Seen}
	response, err := client.ReadIndex(ctx, connect.NewRequest(request))
	if err != nil {
		return Answer{}, fmt.Errorf("read index: %w", err)
	}
	return Answer{Revision: response.Msg.GetRevision(), Round: response.Msg.GetRound()}, nil
}

// ChangeMembers asks the leader for a change. Errors wrap ErrNotLeading, ErrUnsafe,
// ErrUnknownServer, ErrNameTaken or ErrBadChange where the leader said so; after another the
// change may have been made, and may be asked for again.
func (c *Client) ChangeMembers(ctx context.Context, leader Peer, change Change) error {
	client, err := c.peer(leader)
	if err != nil {
		return err
	}
	_, err = client.ChangeMembers(ctx, connect.NewRequest(change.toWire()))
	return changeError(err)
}

// Status asks a server about itself.
func (c *Client) Status(ctx context.Context, peer Peer) (Status, error) {
	client, err := c.peer(peer)
	if err != nil {
		return Status{}, err
	}
	response, err := client.Status(ctx, connect.NewRequest(&forwardpb.StatusRequest{}))
	if err != nil {
		return Status{}, fmt.Errorf("status: %w", err)
	}
	return statusFromWire(response.Msg), nil
}
