package transport

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// absenceCheck is how often a message to a peer that is away looks whether it still has a
// sense.
const absenceCheck = time.Second

var errLeaving = errors.New("this server is stopping")

// AppendEntries implements raft.Transport. Heartbeats come this way too.
//
// Entries for a peer that is away wait here until it answers a heartbeat. Raft would double the time between
// its tries, up to ten seconds, and cannot be told that the peer is back: a peer that had been away got no
// entries for as long again, and its reads waited.
func (t *Transport) AppendEntries(
	id raft.ServerID,
	target raft.ServerAddress,
	request *raft.AppendEntriesRequest,
	response *raft.AppendEntriesResponse,
) error {
	if isHeartbeat(request) {
		return t.beat(id, target, request, response)
	}
	err := t.appendEntries(id, target, request, response)
	if err == nil || !t.awaitPeer(id, request.Term) {
		return err
	}
	return t.appendEntries(id, target, request, response)
}

func (t *Transport) appendEntries(
	id raft.ServerID,
	target raft.ServerAddress,
	request *raft.AppendEntriesRequest,
	response *raft.AppendEntriesResponse,
) error {
	select {
	case <-t.leaving:
		// While raft shuts down it sends what a peer refuses again without a pause.
		return errLeaving
	default:
	}
	sent := time.Now()
	err := t.NetworkTransport.AppendEntries(id, target, request, response)
	if err == nil {
		t.answered(id, sent, request, response)
	}
	return err
}

// isHeartbeat tells the leader's sign of life, which names no place in the log.
func isHeartbeat(r *raft.AppendEntriesRequest) bool {
	return r.PrevLogEntry == 0 && r.LeaderCommitIndex == 0 && len(r.Entries) == 0
}

// awaitPeer waits until the peer shows that it is there. It is false when this server
// leads in the term no longer, or leaves, or when the peer is no member any more.
func (t *Transport) awaitPeer(id raft.ServerID, term uint64) bool {
	there := t.nextSign(id)
	check := time.NewTicker(absenceCheck)
	defer check.Stop()
	for t.leads(term) && t.isMember(string(id)) {
		select {
		case <-there:
			return true
		case <-check.C:
		case <-t.leaving:
			return false
		}
	}
	return false
}

func (t *Transport) nextSign(id raft.ServerID) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peer(id)
	if p.sign == nil {
		p.sign = make(chan struct{})
	}
	return p.sign
}

// HeardOf notes that the peer is there.
func (t *Transport) HeardOf(id raft.ServerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heardOf(id)
}

// heardOf is called under t.mu.
func (t *Transport) heardOf(id raft.ServerID) {
	if p := t.peer(id); p.sign != nil {
		close(p.sign)
		p.sign = nil
	}
}

// Leave ends the waiting for peers that are away. Raft's own shutdown waits for it.
func (t *Transport) Leave() { t.leave.Do(func() { close(t.leaving) }) }
