package state

import (
	"context"
	"sync"
)

// signal wakes all who wait for the next broadcast.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// armed returns a channel that the next broadcast closes.
func (s *signal) armed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// WaitRevision returns the first root seen that has reached the revision, or the
// context's error.
func (s *State) WaitRevision(ctx context.Context, revision uint64) (*Root, error) {
	return s.wait(ctx, func(r *Root) bool { return r.Revision >= revision })
}

// WaitIndex returns the first root seen that includes the log entry at index, or
// the context's error.
func (s *State) WaitIndex(ctx context.Context, index uint64) (*Root, error) {
	return s.wait(ctx, func(r *Root) bool { return r.Index >= index })
}

func (s *State) wait(ctx context.Context, reached func(*Root) bool) (*Root, error) {
	for {
		if root := s.Root(); reached(root) {
			return root, nil
		}
		published := s.waiters.armed()
		// What was published between the look and the arming woke nobody.
		if root := s.Root(); reached(root) {
			return root, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-published:
		}
	}
}
