package pods

import "context"

// Progress returns when the loop that has the pods of events looked at has turned, and the book of pods can be read, which every step of
// every pod needs. It fails if ctx ends before. Whether the runtime does its work is another question: a new start would not mend it, so
// what waits for the runtime is not asked, nor is the loop before it runs.
func (m *Manager) Progress(ctx context.Context) error {
	if m.following.Load() {
		select {
		case m.turn <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	read := make(chan struct{})
	go func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		close(read)
	}()
	select {
	case <-read:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
