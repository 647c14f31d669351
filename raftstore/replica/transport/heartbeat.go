package transport

import "github.com/hashicorp/raft"

// SetHeartbeatHandler implements raft.Transport. The handler that raft offers is not used.
//
// Raft would have it called on the goroutine of the connection, beside its main loop, so
// that a follower which writes to its disk still answers the leader. But the handler also
// sets raft's term and state. Between two lines of the main loop it can take the term
// back, after a vote was given in a later one, or move it on, while the main loop stores
// an entry as the leader of the old one (hashicorp/raft issue 695).
func (t *Transport) SetHeartbeatHandler(func(raft.RPC)) {}

// Consumer implements raft.Transport: what raft's main loop gets.
func (t *Transport) Consumer() <-chan raft.RPC { return t.messages }

// heartbeat is called for each heartbeat, on the goroutine of its connection. It changes
// nothing of raft's.
//
// The leader of the term in which this server follows gets its answer at once: that after
// the heartbeat was sent this server was in that term. This was so at the moment follows
// looked, whatever the main loop does meanwhile, and it is all that a leader may conclude.
// The main loop gets the heartbeat too and notes that the leader lives.
//
// Any other heartbeat waits for the main loop, which answers it: it may change the term
// or the state.
func (t *Transport) heartbeat(rpc raft.RPC) {
	request, ok := rpc.Command.(*raft.AppendEntriesRequest)
	if !ok || !t.follows(request.Term) {
		t.deliver(rpc)
		return
	}
	t.note(raft.RPC{Command: request, RespChan: make(chan raft.RPCResponse, 1)})
	rpc.Respond(&raft.AppendEntriesResponse{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax},
		Term:      request.Term, Success: true,
	}, nil)
}

// note gives the main loop a heartbeat that is being answered: at once if it waits for messages, else by pass, which is one more goroutine
// to wake.
func (t *Transport) note(beat raft.RPC) {
	select {
	case t.messages <- beat:
		return
	default:
	}
	select {
	case t.beats <- beat:
	default: // one waits already, which says the same
	}
}

// pass hands on what comes from the network, and heartbeats answered already, until the
// transport is closed.
func (t *Transport) pass() {
	for {
		select {
		case rpc := <-t.NetworkTransport.Consumer():
			t.take(rpc)
		case rpc := <-t.beats:
			t.deliver(rpc)
		case <-t.stream.closed:
			return
		}
	}
}

// take delivers what comes from the network, but for entries that are refused.
func (t *Transport) take(rpc raft.RPC) {
	if asksForVotes(rpc) && !t.hasMet() {
		go t.deliverMet(rpc) // entries do not wait for it
		return
	}
	request, ok := rpc.Command.(*raft.AppendEntriesRequest)
	if ok {
		t.ledBy(request)
	}
	if ok && len(request.Entries) > 0 {
		if err := t.refuses(request.Entries); err != nil {
			rpc.Respond(&raft.AppendEntriesResponse{}, err)
			return
		}
	}
	t.deliver(rpc)
}

// deliver waits until raft's main loop takes the message. A server that has stopped itself
// promises nothing any more; a snapshot has to be read from its connection all the same.
func (t *Transport) deliver(rpc raft.RPC) {
	if _, streams := rpc.Command.(*raft.InstallSnapshotRequest); !streams {
		if err := t.stopped(); err != nil {
			rpc.Respond(nil, err)
			return
		}
	}
	select {
	case t.messages <- rpc:
	case <-t.stream.closed:
		rpc.Respond(nil, errStreamClosed)
	}
}
