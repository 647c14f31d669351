package transport

import (
	"sync"

	"github.com/hashicorp/raft"
)

// drainedPipeline keeps a pipeline of the network transport from locking up.
//
// Raft stops reading answers at the first that is no success, but may be sending
// one more request at that moment. The transport hands a request on only when the
// one before it was answered and that answer was read, so the sender would wait
// for ever: the follower gets heartbeats and no entries until the leader changes.
// Here answers after the first failure are thrown away instead.
type drainedPipeline struct {
	raft.AppendPipeline
	// sends is told of each request before it is sent, heard of each answer before raft is.
	sends   func(*raft.AppendEntriesRequest)
	heard   func(raft.AppendFuture)
	answers chan raft.AppendFuture
	closed  chan struct{}
	once    sync.Once
}

// AppendEntriesPipeline implements raft.Transport.
func (t *Transport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	inner, err := t.NetworkTransport.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err
	}
	p := &drainedPipeline{AppendPipeline: inner, answers: make(chan raft.AppendFuture), closed: make(chan struct{})}
	p.sends = func(request *raft.AppendEntriesRequest) { t.sends(id, request) }
	p.heard = func(answer raft.AppendFuture) {
		t.answered(id, answer.Start(), answer.Request(), answer.Response())
	}
	go p.run()
	return p, nil
}

// AppendEntries implements raft.AppendPipeline.
func (p *drainedPipeline) AppendEntries(
	request *raft.AppendEntriesRequest,
	response *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	p.sends(request)
	return p.AppendPipeline.AppendEntries(request, response)
}

// run ends when the pipeline is closed.
func (p *drainedPipeline) run() {
	failed := false
	for {
		select {
		case answer := <-p.AppendPipeline.Consumer():
			p.heard(answer)
			if failed {
				continue
			}
			// Set before raft can have read the answer, and stopped reading.
			failed = !answer.Response().Success
			select {
			case p.answers <- answer:
			case <-p.closed:
				return
			}
		case <-p.closed:
			return
		}
	}
}

// Consumer implements raft.AppendPipeline.
func (p *drainedPipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// Close implements raft.AppendPipeline.
func (p *drainedPipeline) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.AppendPipeline.Close()
}
