package storage

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/state"
	ring "github.com/setpoint-io/setpoint/raftstore/watch"
)

// errCompacted is the store's word for "that revision left the ring".
var errCompacted = ring.ErrCompacted

// watchBuffer is how many events may wait for one client's socket. A client
// that stays behind is overtaken by the ring and gets 410, never more memory.
const watchBuffer = 64

// WatchOptions says from where to watch and what.
type WatchOptions struct {
	Selection
	ResourceVersion string
	// SendInitialEvents asks for the current objects first (a streaming list); nil means: only if ResourceVersion is "" or "0".
	SendInitialEvents *bool
	Bookmarks         bool
	// Led watches begin and go on only while this replica has a leader: without one it would tell of nothing for ever,
	// and its clients would not know. They end with an ERROR event, 503.
	Led bool
	// Nudged watches, if they send bookmarks, send one whenever Store.Nudge is called.
	Nudged bool
	// Plain watches hand out the shared objects themselves, which nobody may change, instead of a *Cached around each.
	Plain bool
	// FirstApart watches get their first object as a copy of their own instead of a *Cached:
	// what is sent of it may differ from what later events say of the same object.
	FirstApart bool
}

// Watch streams the changes of the selected objects until ctx ends, Stop is called, or the client falls too far behind (an ERROR event
// with 410). As in Kubernetes, a revision that is gone from the start gives that event too.
func (t *Table) Watch(ctx context.Context, o WatchOptions) (watch.Interface, error) {
	revision, err := ParseResourceVersion(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{table: t, options: o, cancel: cancel, results: make(chan watch.Event, watchBuffer)}
	err = w.open(ctx, revision)
	if apierrors.IsResourceExpired(err) {
		go w.refuse(ctx, err)
		return w, nil
	}
	if err != nil {
		cancel()
		return nil, err
	}
	go w.run(ctx)
	return w, nil
}

// watcher is one client's stream. Its goroutine closes results.
type watcher struct {
	table   *Table
	options WatchOptions
	cancel  context.CancelFunc
	results chan watch.Event

	initial   *state.Root // sent first if not nil
	start     uint64
	sentFirst bool
	events    *ring.Watcher
	bookmarks bookmarks
}

// Stop implements watch.Interface.
func (w *watcher) Stop() { w.cancel() }

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.results }

func (w *watcher) streamingList() bool {
	return w.options.SendInitialEvents != nil && *w.options.SendInitialEvents
}

func (w *watcher) open(ctx context.Context, revision uint64) error {
	root, err := w.awaitLeader(ctx)
	if err != nil {
		return err
	}
	fromNow := revision == 0
	noInitial := w.options.SendInitialEvents != nil && !*w.options.SendInitialEvents
	if fromNow || w.streamingList() {
		if root == nil || root.Revision < revision {
			if root, err = w.table.store.rootAtLeast(ctx, w.options.ResourceVersion); err != nil {
				return err
			}
		}
		if !noInitial {
			w.initial = root
		}
		revision = root.Revision
	}
	w.start = revision
	if !fromNow && !w.streamingList() && w.table.store.purgedSince(w.table.namespacePrefix(w.options.Namespace), revision) {
		return expired(fmt.Sprintf("too old resource version: %d: values were purged since, list again", revision))
	}
	w.events, err = w.table.store.log.Watch(w.table.namespacePrefix(w.options.Namespace), revision)
	if errors.Is(err, errCompacted) {
		return expired(fmt.Sprintf("too old resource version: %d", revision))
	}
	return unavailable(err)
}

// awaitLeader waits for a leader as long as a read does: a client that is refused lists again. If it waited it returns what the leader has
// then, so that nobody waits for a leader again.
func (w *watcher) awaitLeader(ctx context.Context) (*state.Root, error) {
	if !w.options.Led || w.table.store.log.Led().Err() == nil {
		return nil, nil
	}
	root, err := w.table.store.log.ReadIndex(ctx)
	return root, unavailable(err)
}

// refuse is run for a watch that cannot begin.
func (w *watcher) refuse(ctx context.Context, err error) {
	defer close(w.results)
	defer w.cancel()
	w.fail(ctx, err)
}

func (w *watcher) run(ctx context.Context) {
	defer close(w.results)
	defer w.cancel()
	defer w.events.Close()
	if d := w.table.dynamic; d != nil {
		defer context.AfterFunc(d.Until, w.cancel)()
	}
	if w.options.Led {
		defer context.AfterFunc(w.table.store.log.Led(), w.events.Close)()
	}
	w.bookmarks.schedule(ctx)
	if w.options.Nudged {
		w.table.store.nudgeable.add(w)
		defer w.table.store.nudgeable.remove(w)
	}
	if w.initial != nil && !w.sendInitial(ctx) {
		return
	}
	w.initial = nil
	for w.sendNext(ctx) {
	}
}

func (w *watcher) sendInitial(ctx context.Context) bool {
	for r := range w.table.ahead(w.initial.All(w.table.namespacePrefix(w.options.Namespace)), 0) {
		cached, err := w.table.pick(w.options.Selection, r)
		if err != nil {
			return w.fail(ctx, err)
		}
		if cached != nil && !w.send(ctx, watch.Added, cached) {
			return false
		}
	}
	if !w.streamingList() || !w.options.Bookmarks {
		return true
	}
	bookmark := w.bookmark(w.initial.Revision)
	if err := storage.AnnotateInitialEventsEndBookmark(bookmark); err != nil {
		return w.fail(ctx, err)
	}
	return w.send(ctx, watch.Bookmark, bookmark)
}

// sendNext sends the next batch, and a bookmark if it is time for one.
func (w *watcher) sendNext(ctx context.Context) bool {
	events, err := w.next(ctx)
	switch {
	case err == nil:
		return w.sendBatch(ctx, events) && w.sendBookmarkIfDue(ctx)
	case ctx.Err() != nil:
		return false
	case errors.Is(err, ring.ErrClosed):
		return w.fail(ctx, unavailable(raftstore.ErrNoLeader))
	case errors.Is(err, errCompacted):
		return w.fail(ctx, expired("the watch fell behind and its history is gone: list again"))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return w.sendBookmarkIfDue(ctx)
	default:
		return w.fail(ctx, unavailable(err))
	}
}

// next waits for events, or until it is time for a bookmark.
func (w *watcher) next(ctx context.Context) ([]ring.Event, error) {
	if !w.options.Bookmarks {
		return w.events.Next(ctx)
	}
	waitCtx, cancel := w.bookmarks.patience(ctx)
	defer cancel()
	return w.events.Next(waitCtx)
}

func (w *watcher) sendBatch(ctx context.Context, events []ring.Event) bool {
	for _, e := range events {
		kind, obj, err := w.translate(e)
		if err != nil {
			return w.fail(ctx, err)
		}
		if obj != nil && !w.send(ctx, kind, obj) {
			return false
		}
	}
	return true
}

// translate turns a change of a key into what it means under the selector: an object that enters it is ADDED, one that leaves it DELETED.
func (w *watcher) translate(e ring.Event) (watch.EventType, runtime.Object, error) {
	is, err := w.matching(e.Record)
	if err != nil {
		return "", nil, err
	}
	if is != nil && e.Prev != nil && w.options.everything() {
		return watch.Modified, is, nil // whatever it was
	}
	was, err := w.matching(e.Prev)
	if err != nil {
		return "", nil, err
	}
	switch {
	case is != nil && was != nil:
		return watch.Modified, is, nil
	case is != nil:
		return watch.Added, is, nil
	case was != nil:
		return watch.Deleted, w.lastState(was, e.Revision), nil
	default:
		return "", nil, nil
	}
}

func (w *watcher) matching(r *record.Record) (*Cached, error) {
	if r == nil {
		return nil, nil
	}
	return w.table.pick(w.options.Selection, r)
}

// lastState is the object as it was, at the revision of its deletion.
func (w *watcher) lastState(was *Cached, revision uint64) *Cached {
	gone := shallowCopy(was.object)
	gone.SetResourceVersion(formatRevision(revision))
	return &Cached{object: gone}
}

func (w *watcher) send(ctx context.Context, kind watch.EventType, obj runtime.Object) bool {
	if cached, ok := obj.(*Cached); ok {
		obj = w.form(cached)
	}
	event := watch.Event{Type: kind, Object: obj}
	select {
	case w.results <- event: // there is room nearly always; to wait for two costs thrice as much
		return true
	default:
	}
	select {
	case w.results <- event:
		return true
	case <-ctx.Done():
		return false
	}
}

// form is what the client's encoder gets of an object.
func (w *watcher) form(cached *Cached) runtime.Object {
	first := !w.sentFirst
	w.sentFirst = true
	switch {
	case w.options.Plain:
		return cached.object
	case w.options.FirstApart && first:
		return shallowCopy(cached.object)
	default:
		return cached
	}
}

// fail ends the stream with an ERROR event.
func (w *watcher) fail(ctx context.Context, err error) bool {
	w.send(ctx, watch.Error, statusOf(err))
	return false
}
