package pods

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress is what the loop of events does, while it does it.
func TestProgress(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		w.settle()
		m := w.manager
		if err := ask(w.t, m); err != nil || !m.following.Load() {
			t.Errorf("all goes on: %v, the loop runs: %v", err, m.following.Load())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		m := New(Config{})
		if err := ask(t, m); err != nil {
			t.Errorf("the loop does not run yet, as while the runtime is away: %v", err)
		}
		m.following.Store(true)
		if err := ask(t, m); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the loop does not turn: %v", err)
		}
	})
}

// TestProgressWantsTheBook: outside of a bubble, whose time stands still while somebody waits for a lock.
func TestProgressWantsTheBook(t *testing.T) {
	m := New(Config{})
	m.mu.Lock()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Progress(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("somebody holds the book: %v", err)
	}
	m.mu.Unlock()
	if err := m.Progress(t.Context()); err != nil {
		t.Errorf("it goes on again: %v", err)
	}
}

func ask(t *testing.T, m *Manager) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return m.Progress(ctx)
}
