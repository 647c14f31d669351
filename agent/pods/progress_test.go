package pods

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress is what the loop of events and the book of pods do, while they do it.
func TestProgress(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		w.settle()
		m := w.manager
		if err := ask(t, m); err != nil || !m.following.Load() {
			t.Errorf("all goes on: %v, the loop runs: %v", err, m.following.Load())
		}
		m.mu.Lock()
		if err := ask(t, m); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("somebody holds the book: %v", err)
		}
		m.mu.Unlock()
		if err := ask(t, m); err != nil {
			t.Errorf("it goes on again: %v", err)
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

func ask(t *testing.T, m *Manager) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return m.Progress(ctx)
}
