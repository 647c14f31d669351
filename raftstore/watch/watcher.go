package watch

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
)

// MaxBatch is the most events that one call of Next returns.
const MaxBatch = 1024

// Watcher is a cursor into a ring. One goroutine at a time calls Next; Progress
// and Close may be called from others.
type Watcher struct {
	ring   *Ring
	group  *group
	prefix string
	// cursor is the revision up to which everything was returned. It lags behind
	// while nothing under the prefix changes; see progress.
	cursor atomic.Uint64
	epoch  uint64
	closed chan struct{}
}

// Watch returns a watcher of the events after the given revision whose key has
// the prefix; "" is every key. It fails with ErrCompacted if some of them may be
// gone. A revision of the future is no error: events up to it are passed over.
// Close the watcher when done.
func (r *Ring) Watch(prefix string, after uint64) (*Watcher, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after < r.compacted {
		return nil, fmt.Errorf("%w: %d, oldest is %d", ErrCompacted, after, r.compacted)
	}
	w := &Watcher{ring: r, prefix: prefix, epoch: r.epoch, closed: make(chan struct{})}
	w.cursor.Store(after)
	r.join(w)
	return w, nil
}

// Next returns the next events in order, at least one and at most MaxBatch,
// waiting for them if need be. It fails with ErrCompacted when the watcher was
// overtaken, ErrClosed after Close, or the context's error, after which the
// watcher is as good as before.
func (w *Watcher) Next(ctx context.Context) ([]Event, error) {
	for {
		events, wake, err := w.poll()
		if err != nil || len(events) > 0 {
			return events, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-w.closed:
			return nil, ErrClosed
		case <-wake:
		}
	}
}

// poll returns what is there, or else a channel that is closed when looking
// again is worth while.
func (w *Watcher) poll() ([]Event, <-chan struct{}, error) {
	w.ring.mu.RLock()
	defer w.ring.mu.RUnlock()
	if err := w.check(); err != nil {
		return nil, nil, err
	}
	if events := w.collect(); len(events) > 0 {
		return events, nil, nil
	}
	return nil, w.group.armed(), nil
}

// check reports why the watcher cannot go on, if so.
func (w *Watcher) check() error {
	if w.isClosed() {
		return ErrClosed
	}
	cursor := w.cursor.Load()
	if w.epoch != w.ring.epoch || cursor < w.group.lost {
		return fmt.Errorf("%w: watcher of %q at %d, oldest is %d", ErrCompacted, w.prefix, cursor, w.ring.compacted)
	}
	return nil
}

// collect takes up to MaxBatch events and moves the cursor behind them.
func (w *Watcher) collect() []Event {
	cursor := w.cursor.Load()
	revisions := w.group.after(cursor)
	var events []Event
	for len(revisions) > 0 && len(events) < MaxBatch {
		cursor = revisions[0]
		revisions = revisions[1:]
		if e := w.ring.at(cursor); strings.HasPrefix(e.Key, w.prefix) {
			events = append(events, *e)
		}
	}
	if len(revisions) == 0 {
		cursor = max(cursor, w.ring.last)
	}
	w.cursor.Store(cursor)
	return events
}

// Progress returns the revision up to which everything under the prefix has been
// returned by Next: what a bookmark may promise once the caller has delivered
// the last batch.
func (w *Watcher) Progress() uint64 {
	w.ring.mu.RLock()
	defer w.ring.mu.RUnlock()
	return w.progress()
}

func (w *Watcher) progress() uint64 {
	cursor := w.cursor.Load()
	if w.isClosed() || w.epoch != w.ring.epoch || cursor < w.group.lost {
		return cursor
	}
	for _, revision := range w.group.after(cursor) {
		if strings.HasPrefix(w.ring.at(revision).Key, w.prefix) {
			return revision - 1
		}
	}
	return max(cursor, w.ring.last)
}

// Close ends the watcher and releases what the ring keeps for it. A Next that
// waits returns ErrClosed. Closing twice does nothing.
func (w *Watcher) Close() {
	w.ring.mu.Lock()
	defer w.ring.mu.Unlock()
	if w.isClosed() {
		return
	}
	close(w.closed)
	w.ring.leave(w)
}

func (w *Watcher) isClosed() bool {
	select {
	case <-w.closed:
		return true
	default:
		return false
	}
}
