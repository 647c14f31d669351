package replica

import (
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

// contactTransport is raft's network transport, and remembers when each peer
// answered last: raft keeps that to itself.
type contactTransport struct {
	*raft.NetworkTransport
	mu       sync.Mutex
	contacts map[raft.ServerID]time.Time
	accepted map[raft.ServerID]acceptance
}

// acceptance is the newest message of a leader's term that a peer accepted. What
// it proves, it proves of the time after sent, not of the answer's arrival.
type acceptance struct {
	term uint64
	sent time.Time
}

func newContactTransport(stream *streamLayer, addressOf func(raft.ServerID) (raft.ServerAddress, error), logger hclog.Logger) *contactTransport {
	return &contactTransport{
		contacts: map[raft.ServerID]time.Time{}, accepted: map[raft.ServerID]acceptance{},
		NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream: stream, MaxPool: peerConnections, Timeout: messageTimeout, Logger: logger,
			ServerAddressProvider: targetProvider(addressOf),
		}),
	}
}

type targetProvider func(raft.ServerID) (raft.ServerAddress, error)

// ServerAddr implements raft.ServerAddressProvider.
func (f targetProvider) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	address, err := f(id)
	return peerTarget(id, address), err
}

// EncodePeer implements raft.Transport. The network transport would name the
// server by the joined string that only Dial understands.
func (t *contactTransport) EncodePeer(_ raft.ServerID, address raft.ServerAddress) []byte {
	return []byte(address)
}

// AppendEntries implements raft.Transport. Heartbeats come this way too.
func (t *contactTransport) AppendEntries(id raft.ServerID, target raft.ServerAddress, request *raft.AppendEntriesRequest, response *raft.AppendEntriesResponse) error {
	sent := time.Now()
	err := t.NetworkTransport.AppendEntries(id, target, request, response)
	if err == nil {
		t.answered(id, sent, request, response)
	}
	return err
}

// answered notes a peer's answer to a message.
func (t *contactTransport) answered(id raft.ServerID, sent time.Time, request *raft.AppendEntriesRequest, response *raft.AppendEntriesResponse) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.contacts[id] = time.Now()
	known := t.accepted[id]
	newer := request.Term > known.term || request.Term == known.term && sent.After(known.sent)
	if response.Success && newer {
		t.accepted[id] = acceptance{request.Term, sent}
	}
}

// acceptedSince reports whether the peer took this server for the leader of the
// term at some time after since.
func (t *contactTransport) acceptedSince(id raft.ServerID, term uint64, since time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.accepted[id]
	return known.term == term && !known.sent.Before(since)
}

// lastContact returns when the peer last answered this leader, zero if never.
func (t *contactTransport) lastContact(id raft.ServerID) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.contacts[id]
}
