package transport

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
)

// fakePipeline hands requests on as the library's does: one at a time, each after
// the answer before it was read. All answers are failures.
type fakePipeline struct {
	handed  chan *fakeFuture
	answers chan raft.AppendFuture
	closed  chan struct{}
}

type fakeFuture struct {
	raft.AppendFuture
	response raft.AppendEntriesResponse
}

func (f *fakeFuture) Response() *raft.AppendEntriesResponse { return &f.response }

func (p *fakePipeline) AppendEntries(*raft.AppendEntriesRequest, *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	f := &fakeFuture{}
	select {
	case p.handed <- f:
		return f, nil
	case <-p.closed:
		return nil, errors.New("closed")
	}
}

func (p *fakePipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

func (p *fakePipeline) Close() error { close(p.closed); return nil }

func (p *fakePipeline) answer() {
	for {
		select {
		case f := <-p.handed:
			select {
			case p.answers <- f:
			case <-p.closed:
				return
			}
		case <-p.closed:
			return
		}
	}
}

func TestSenderDoesNotWaitForAnswersNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &fakePipeline{make(chan *fakeFuture), make(chan raft.AppendFuture), make(chan struct{})}
		go inner.answer()
		p := &drainedPipeline{AppendPipeline: inner, answers: make(chan raft.AppendFuture), closed: make(chan struct{}),
			sends: func(*raft.AppendEntriesRequest) {}, heard: func(raft.AppendFuture) {}}
		go p.run()
		if _, err := p.AppendEntries(nil, nil); err != nil {
			t.Fatal(err)
		}
		if first := <-p.Consumer(); first.Response().Success {
			t.Error("the first answer is not the failure")
		}
		// Nobody reads from here on.
		for range 5 {
			if _, err := p.AppendEntries(nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}
