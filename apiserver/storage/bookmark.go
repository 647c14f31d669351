package storage

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// bookmarkInterval is how often a watch tells how far it has seen.
	bookmarkInterval = time.Minute
	// bookmarkBeforeEnd is how long before the end of a watch its last bookmark
	// comes, so that the client goes on from there and not from its last event.
	bookmarkBeforeEnd = 2 * time.Second
)

// bookmarks says when a watch sends its next bookmark: in time, or when nudged.
type bookmarks struct {
	due time.Time

	mu     sync.Mutex
	nudged bool
	wake   context.CancelFunc // ends the wait that is under way
}

// schedule plans the next bookmark, the last one shortly before the watch ends.
func (b *bookmarks) schedule(ctx context.Context) {
	now := time.Now()
	b.due = now.Add(bookmarkInterval)
	if end, ok := ctx.Deadline(); ok {
		if last := end.Add(-bookmarkBeforeEnd); last.After(now) && last.Before(b.due) {
			b.due = last
		}
	}
}

// patience derives a context that ends when a bookmark is to be sent.
func (b *bookmarks) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithDeadline(ctx, b.due)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wake = cancel
	if b.nudged {
		cancel()
	}
	return ctx, cancel
}

func (b *bookmarks) nudge() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nudged = true
	if b.wake != nil {
		b.wake()
	}
}

// take reports whether a bookmark is to be sent now, and forgets the nudge.
func (b *bookmarks) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.nudged || !time.Now().Before(b.due)
	b.nudged = false
	return now
}

// nudgeable are the watches that Store.Nudge reaches.
type nudgeable struct {
	mu       sync.Mutex
	watchers map[*watcher]struct{}
}

func (n *nudgeable) add(w *watcher) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watchers == nil {
		n.watchers = map[*watcher]struct{}{}
	}
	n.watchers[w] = struct{}{}
}

func (n *nudgeable) remove(w *watcher) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.watchers, w)
}

// Nudge makes every watch opened with WatchOptions.Nudged send a bookmark as soon
// as it has sent what it has, so that caches learn how new they are. It does not
// wait for them.
func (s *Store) Nudge() {
	s.nudgeable.mu.Lock()
	defer s.nudgeable.mu.Unlock()
	for w := range s.nudgeable.watchers {
		w.bookmarks.nudge()
	}
}

// sendBookmarkIfDue tells how far the watch has seen. All events up to there
// were handed to the client before.
func (w *watcher) sendBookmarkIfDue(ctx context.Context) bool {
	if !w.options.Bookmarks || !w.bookmarks.take() {
		return true
	}
	w.bookmarks.schedule(ctx)
	return w.send(ctx, watch.Bookmark, w.bookmark(max(w.events.Progress(), w.start)))
}

func (w *watcher) bookmark(revision uint64) runtime.Object {
	obj := w.table.kind.New()
	if w.table.kind.Bookmark != nil {
		w.table.kind.Bookmark(obj)
	}
	obj.SetResourceVersion(formatRevision(revision))
	return obj
}
