package transport

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

const (
	// peerConnections is how many idle connections are kept to each peer.
	peerConnections = 3
	// messageTimeout bounds one message; snapshots get more by their size.
	messageTimeout = 5 * time.Second
)

// Config is what a Transport needs; all fields are required, but Dial on a lone
// server, Introduce and Meet, and Beat.
type Config struct {
	// ID is the member id, Address where the others reach it, host:port.
	ID, Address string
	// Dial opens an authenticated connection to a server by its name.
	Dial func(ctx context.Context, address, name string) (net.Conn, error)
	// Name returns the server's name in a member id.
	Name func(id string) string
	// Addresses are where a member may be now, host:port, the best first.
	Addresses func(id string) ([]string, error)
	// Leads reports whether this server leads in the term, Follows whether it follows in it
	// and its term is that one, IsMember whether the newest configuration has the member id.
	Leads, Follows func(term uint64) bool
	IsMember       func(id string) bool
	// Introduce is what this member says to another when one calls the other, Meet
	// judges what that one said: an error refuses the connection, and both tell it.
	// Both nil: nothing is said.
	Introduce func(to string) Greeting
	Meet      func(Greeting) error
	// Refuses says why this server takes no such entries from a leader now, or nil. The
	// leader hears it as that of a message which did not arrive.
	Refuses func(entries []*raft.Log) error
	// Beat is how far apart heartbeats to a peer are while nothing is late; 0: as far as raft has them. With two fifths of the
	// followers' patience and of the leader's lease, whichever is less, two arrive within either, and a fifth is left.
	Beat time.Duration
	// Stopped says why this server has stopped itself, or nil: it gives no vote then, asks
	// for none and acknowledges nothing.
	Stopped func() error
	Logger  *slog.Logger
	// Raft is for the library's own output.
	Raft hclog.Logger
}

// Transport is raft's network transport over connections that others dial and
// accept. It remembers when each peer answered last: raft keeps that to itself.
type Transport struct {
	*raft.NetworkTransport
	stream         *streamLayer
	leads, follows func(term uint64) bool
	// isMember and refuses: see Config.
	isMember func(id string) bool
	refuses  func([]*raft.Log) error
	stopped  func() error
	// met is closed when the others were met; see MeetAll.
	met chan struct{}
	// messages are for raft's main loop; beats, of which one waits, are heartbeats that
	// were answered.
	messages, beats chan raft.RPC

	leave   sync.Once
	leaving chan struct{}

	mu       sync.Mutex
	term     uint64 // the highest that a peer answered with
	contacts map[raft.ServerID]time.Time
	accepted map[raft.ServerID]acceptance
	peers    map[raft.ServerID]*progress
	rhythms  map[raft.ServerID]*rhythm
	// held is what heartbeats wait for; nil: none waits. hurrying is how many calls of InHurry there are.
	held     *wait
	hurrying int
	every    time.Duration // Config.Beat
}

// New returns a transport; its Close and CloseConns end what it started.
func New(cfg Config) *Transport {
	stream := newStreamLayer(cfg)
	t := &Transport{
		stream: stream, leads: cfg.Leads, follows: cfg.Follows, isMember: cfg.IsMember, refuses: cfg.Refuses,
		stopped: cfg.Stopped, met: make(chan struct{}), leaving: make(chan struct{}),
		messages: make(chan raft.RPC), beats: make(chan raft.RPC, 1),
		contacts: map[raft.ServerID]time.Time{}, accepted: map[raft.ServerID]acceptance{}, peers: map[raft.ServerID]*progress{},
		rhythms: map[raft.ServerID]*rhythm{}, every: cfg.Beat,
		NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream: stream, MaxPool: peerConnections, Timeout: messageTimeout, Logger: cfg.Raft,
			ServerAddressProvider: target{},
		}),
	}
	t.NetworkTransport.SetHeartbeatHandler(t.heartbeat)
	go t.pass()
	return t
}

// target makes the library pass on the member id where it would pass an address:
// Dial knows best where the member is now.
type target struct{}

// ServerAddr implements raft.ServerAddressProvider.
func (target) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	return raft.ServerAddress(id), nil
}

// HandleConn serves one raft connection that a peer opened, already authenticated, if it
// calls this member, and reports whether it did. It returns when the connection is closed.
func (t *Transport) HandleConn(conn net.Conn) bool { return t.stream.greeted(conn) }

// CloseConns closes all connections, in both directions: raft's own shutdown
// leaves them open. Later ones are closed at once.
func (t *Transport) CloseConns() { t.stream.closeConns() }

// acceptance is the newest message of a leader's term that a peer accepted. What
// it proves, it proves of the time after sent, not of the answer's arrival.
type acceptance struct {
	term uint64
	sent time.Time
}

// EncodePeer implements raft.Transport. The network transport would name the
// server by the id that only Dial understands.
func (t *Transport) EncodePeer(_ raft.ServerID, address raft.ServerAddress) []byte {
	return []byte(address)
}

// answered notes a peer's answer to a message.
func (t *Transport) answered(id raft.ServerID, sent time.Time, request *raft.AppendEntriesRequest, response *raft.AppendEntriesResponse) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.contacts[id] = time.Now()
	t.term = max(t.term, response.Term)
	t.heardOf(id)
	known := t.accepted[id]
	newer := request.Term > known.term || request.Term == known.term && sent.After(known.sent)
	if response.Success && newer {
		t.accepted[id] = acceptance{request.Term, sent}
	}
	if response.Success {
		t.peer(id).acknowledged(request)
	}
}

// AcceptedSince reports whether the peer took this server for the leader of the
// term at some time after since.
func (t *Transport) AcceptedSince(id raft.ServerID, term uint64, since time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.accepted[id]
	return known.term == term && !known.sent.Before(since)
}

// TermHeard is the highest term that a peer has answered entries or a heartbeat with.
func (t *Transport) TermHeard() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.term
}

// LastContact returns when the peer last answered this leader, zero if never.
func (t *Transport) LastContact(id raft.ServerID) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.contacts[id]
}
