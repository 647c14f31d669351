package pods

import "context"

// Progress returns when the book of pods can be read, which every step of every pod needs, and fails if ctx ends before. Whether the
// runtime does its work is another question: a new start would not mend it.
func (m *Manager) Progress(ctx context.Context) error {
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
