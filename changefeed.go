package setpoint

import (
	"context"
	"sync"
)

// feedLimit bounds the names that wait for a reader; beyond it the reader is
// told that anything may have changed.
const feedLimit = 1024

// changeFeed hands names of changed nodes to one reader that may be absent for
// long: only the leader's controllers read. Names that wait are merged.
type changeFeed struct {
	out  chan string
	wake chan struct{}

	mu      sync.Mutex
	pending map[string]struct{}
}

func newChangeFeed() *changeFeed {
	return &changeFeed{out: make(chan string), wake: make(chan struct{}, 1), pending: map[string]struct{}{}}
}

// add notes a changed node; it never blocks.
func (f *changeFeed) add(node string) {
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
func (f *changeFeed) run(ctx context.Context) error {
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

func (f *changeFeed) take() map[string]struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.pending
	f.pending = map[string]struct{}{}
	return taken
}
