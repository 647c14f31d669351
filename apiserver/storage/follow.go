package storage

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Changed is called with every change of a table, in order and one at a time: was is nil for a new object, is
// is nil for a deleted one. The objects are shared: do not change them.
type Changed func(was, is resource.Object)

// Follower keeps something that is derived from a table up to date. It is like an informer, but its user can
// tell up to which revision it is complete.
type Follower struct {
	table   *Table
	some    Selection
	changed Changed
	logger  *slog.Logger
	objects map[string]resource.Object // what changed was told of; of Run alone

	mu       sync.Mutex
	revision uint64        // all changes up to here were told
	advanced chan struct{} // closed and made anew when revision grows
	nudge    func()        // asks the watch how new it is; nil between two watches
}

// Follow returns a follower that tells changed of what is in the table, once Run runs.
func (t *Table) Follow(changed Changed, logger *slog.Logger) *Follower {
	return t.FollowSome(Selection{}, changed, logger)
}

// FollowSome is Follow of the selected objects alone; others are not kept.
func (t *Table) FollowSome(some Selection, changed Changed, logger *slog.Logger) *Follower {
	return &Follower{
		table: t, some: some, changed: changed, logger: logger, objects: map[string]resource.Object{}, advanced: make(chan struct{}),
	}
}

// followRetryInterval is how long a follower waits when the table cannot be read.
const followRetryInterval = 100 * time.Millisecond

// Run follows until ctx ends. When it has fallen behind the ring it begins anew, and tells only of the difference.
func (f *Follower) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := f.follow(ctx); err != nil && ctx.Err() == nil {
			f.logger.Debug("following begins anew", "table", f.table.prefix, "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(followRetryInterval):
			}
		}
	}
}

func (f *Follower) follow(ctx context.Context) error {
	page, err := f.table.List(ctx, ListOptions{Selection: f.some, ResourceVersion: "0"})
	if err != nil {
		return err
	}
	f.replace(page)
	opened, err := f.table.Watch(ctx, WatchOptions{Selection: f.some, ResourceVersion: page.ResourceVersion, Bookmarks: true})
	if err != nil {
		return err
	}
	w := opened.(*watcher)
	defer w.Stop()
	f.open(page.ResourceVersion, w.bookmarks.nudge)
	defer f.open("", nil)
	for event := range w.ResultChan() {
		if err := f.take(event); err != nil {
			return err
		}
	}
	return nil
}

// replace tells of the difference between what was told and the page.
func (f *Follower) replace(page *Page) {
	gone := f.objects
	f.objects = make(map[string]resource.Object, len(page.Items))
	for _, item := range page.Items {
		key := keyOf(item.object)
		was := gone[key]
		delete(gone, key)
		f.objects[key] = item.object
		if was == nil || was.GetResourceVersion() != item.object.GetResourceVersion() {
			f.changed(was, item.object)
		}
	}
	for _, was := range gone {
		f.changed(was, nil)
	}
}

func (f *Follower) take(event watch.Event) error {
	switch event.Type {
	case watch.Error:
		return errCompacted
	case watch.Bookmark:
		f.advance(event.Object.(resource.Object).GetResourceVersion())
		return nil
	}
	is := event.Object.(*Cached).object
	key := keyOf(is)
	was := f.objects[key]
	if event.Type == watch.Deleted {
		delete(f.objects, key)
		f.changed(was, nil)
	} else {
		f.objects[key] = is
		f.changed(was, is)
	}
	f.advance(is.GetResourceVersion())
	return nil
}

func keyOf(o resource.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// open begins a watch at a revision, or, without nudge, ends one.
func (f *Follower) open(revision string, nudge func()) {
	f.mu.Lock()
	f.nudge = nudge
	f.mu.Unlock()
	f.advance(revision)
}

// advance wakes those who wait in Reach.
func (f *Follower) advance(revision string) {
	to, _ := ParseResourceVersion(revision) // of our own making
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revision = max(f.revision, to)
	close(f.advanced)
	f.advanced = make(chan struct{})
}

// Reach waits until every change up to the revision was told, or ctx ends.
func (f *Follower) Reach(ctx context.Context, revision uint64) error {
	for {
		f.mu.Lock()
		reached, advanced, nudge := f.revision >= revision, f.advanced, f.nudge
		f.mu.Unlock()
		if reached {
			return nil
		}
		if nudge != nil {
			nudge()
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
