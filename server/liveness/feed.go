package liveness

import (
	"context"
	"sync"
)

// feedLimit bounds the names that wait for a reader; beyond it the reader is
// told that anything may have changed.
const feedLimit = 1024

// feed hands names of changed nodes to one reader that may be absent for long: only the
// leader reads. It is safe for concurrent use.
type feed struct {
	out  chan string
	wake chan struct{}

	mu      sync.Mutex
	pending map[string]struct{}
}

// newFeed returns an empty feed. Run delivers what is added.
func newFeed() *feed {
	return &feed{out: make(chan string), wake: make(chan struct{}, 1), pending: map[string]struct{}{}}
}

// changes is where the names come out; the empty name stands for all.
func (f *feed) changes() <-chan string { return f.out }

// add notes a changed node; it never blocks.
func (f *feed) add(node string) {
	f.mu.Lock()
	_, everything := f.pending[""]
	switch {
	case everything:
	case len(f.pending) >= feedLimit:
		f.pending = map[string]struct{}{"": {}}
	default:
		f.pending[node] = struct{}{}
	}
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default: // it is awake
	}
}

// run delivers until ctx ends.
func (f *feed) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		}
		for node := range f.take() {
			select {
			case f.out <- node:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// take returns the names that wait, and forgets them.
func (f *feed) take() map[string]struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.pending
	f.pending = map[string]struct{}{}
	return taken
}
