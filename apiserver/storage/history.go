package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// History reaches further back than the watch history; package raftstore/history has it.
type History interface {
	// At returns the objects of a folder, or that of a key, as they were.
	At(ctx context.Context, prefix string, revision uint64) (*state.Root, error)
	// Changes are those of a key after a revision, oldest first, the newest if there are more than limit.
	Changes(ctx context.Context, key string, after uint64, limit int) (changes []history.Known, holes []history.Hole, more bool, err error)
	ChangeAt(ctx context.Context, revision uint64) (history.Change, bool)
	// Between is what happened in a period; Oldest is the first revision that can be asked for.
	Between(ctx context.Context, w history.Wanted) (*history.Period, error)
	Oldest() uint64
	RevisionAt(ctx context.Context, at time.Time) (uint64, error)
}

var _ History = (*history.History)(nil)

// KeepHistory has the store answer from a history. Call it before the store is used.
func (s *Store) KeepHistory(h History) { s.history = h }

// outOfReach is errCompacted with what history says.
type outOfReach struct{ cause error }

func (e *outOfReach) Error() string        { return e.cause.Error() }
func (e *outOfReach) Is(target error) bool { return target == errCompacted }
func (e *outOfReach) Unwrap() error        { return e.cause }

// reachOf says, behind upstream's words, how far back this server reaches.
func reachOf(err error) string {
	var old *history.TooOld
	var hole *history.Hole
	var purged *purgedError
	switch {
	case errors.As(err, &purged):
		return " For " + purged.Error() + "."
	case errors.As(err, &old) && !old.Since.IsZero():
		return fmt.Sprintf(" This server's begins at %s.", old.Since.UTC().Format(time.RFC3339))
	case errors.As(err, &old):
		return fmt.Sprintf(" The oldest that this server has is %d.", old.Oldest)
	case errors.As(err, &hole):
		return fmt.Sprintf(" This server's history is missing the changes after %d up to %d.", hole.After, hole.Until)
	}
	return ""
}

// rootExactly returns what was under a prefix at a revision: from the watch history if it reaches back so far, else from history. It may
// have other objects as well. The revision is past, and rootOf has what was acknowledged since.
func (s *Store) rootExactly(ctx context.Context, prefix string, revision uint64) (*state.Root, error) {
	root, err := s.log.RootAt(revision)
	if errors.Is(err, errCompacted) && s.history != nil {
		return s.rootOfHistory(ctx, prefix, revision)
	}
	if err != nil {
		return nil, err
	}
	return root, s.unpurged(root, prefix, revision)
}

// rootOfHistory is what history has of a revision.
func (s *Store) rootOfHistory(ctx context.Context, prefix string, revision uint64) (*state.Root, error) {
	root, err := s.history.At(ctx, prefix, revision)
	switch {
	case errors.Is(err, history.ErrTooOld) || errors.Is(err, history.ErrHole):
		return nil, &outOfReach{err}
	case err != nil:
		return nil, unread(err)
	}
	return root, cmp.Or(s.unpurged(root, prefix, revision), emptied(root, prefix)) // the former names who purged
}

// unread is unavailable, with what history says.
func unread(err error) error {
	switch {
	case errors.Is(err, history.ErrBusy):
		return apierrors.NewTooManyRequests(err.Error(), unavailableRetryAfterSeconds)
	case errors.Is(err, history.ErrBehind):
		return apierrors.NewServiceUnavailable(err.Error())
	}
	return unavailable(err)
}

type exactKey struct{}

// IsExact reports whether Exactly was said.
func IsExact(ctx context.Context) bool { return ctx.Value(exactKey{}) != nil }

// Exactly has Get read the object as it was at the resourceVersion that it is given, and not a newer one.
func Exactly(ctx context.Context) context.Context { return context.WithValue(ctx, exactKey{}, true) }

// getRoot is a root with the object as Get was asked for it.
func (t *Table) getRoot(ctx context.Context, namespace, name, resourceVersion string) (*state.Root, error) {
	if resourceVersion == "" || resourceVersion == "0" || !IsExact(ctx) {
		return t.store.rootAtLeast(ctx, resourceVersion)
	}
	revision, err := ParseResourceVersion(resourceVersion)
	if err != nil {
		return nil, err
	}
	root, err := t.rootOf(ctx, namespace, t.key(namespace, name), revision)
	if errors.Is(err, errCompacted) {
		return nil, expired("The provided resource version is too old." + reachOf(err))
	}
	return root, err
}

// purgedValue is why a value is not known that was removed.
const purgedValue = "its values were purged"

// A Past is one change of an object.
type Past struct {
	Recorded
	Time time.Time
	// Before and After are the object as it was and as it became; nil: it was not there.
	Before, After resource.Object
	// Unknown says why Before or After are not known, "" if they are.
	Unknown string
}

// Past are the changes of an object after a revision, oldest first, also of former objects of its name, and the newest if there are more
// than limit.
func (t *Table) Past(
	ctx context.Context, namespace, name string, after uint64, limit int,
) (past []Past, holes []history.Hole, more bool, err error) {
	if t.store.history == nil {
		return nil, nil, false, expired("This server keeps no history.")
	}
	changes, holes, more, err := t.store.history.Changes(ctx, t.key(namespace, name), after, limit)
	if err != nil {
		return nil, nil, false, unread(err)
	}
	for i := range changes {
		past = append(past, t.pastOf(&changes[i]))
	}
	return past, holes, more, nil
}

func (t *Table) pastOf(c *history.Known) Past {
	recorded, _ := RecordedBy(eventOf(&c.Change))
	p := Past{Recorded: recorded, Time: c.Time}
	if c.AfterLost {
		p.Unknown = "what became of it is in a part of history that is missing"
	}
	for _, one := range []struct {
		record *state.Record
		object *resource.Object
	}{{c.Before, &p.Before}, {c.After, &p.After}} {
		if one.record == nil {
			continue
		}
		if len(one.record.Value) == 0 {
			p.Unknown = purgedValue
			continue
		}
		cached, err := t.decode(one.record)
		if err != nil {
			p.Unknown = err.Error()
			continue
		}
		*one.object = cached.object
	}
	return p
}

// eventOf is a change as the watch history had it, but for the object as it became: only its uid is known.
func eventOf(c *history.Change) watch.Event {
	e := watch.Event{Type: watch.Put, Revision: c.Revision, Key: c.Key, Prev: c.Before, Origin: &c.Origin}
	if c.Deleted {
		e.Type = watch.Delete
		return e
	}
	e.Record = &state.Record{Key: c.Key, UID: c.UID, ModRevision: c.Revision}
	return e
}

// eventAt is the change that made a revision, from the watch history or from history.
func (s *Store) eventAt(ctx context.Context, revision uint64) (watch.Event, bool) {
	event, ok := s.log.EventAt(revision)
	if ok || s.history == nil {
		return event, ok
	}
	c, ok := s.history.ChangeAt(ctx, revision)
	return eventOf(&c), ok
}

// RevisionOf is the last revision of a time or before. A time before history begins is an error of 410.
func (s *Store) RevisionOf(ctx context.Context, at time.Time) (uint64, error) {
	if s.history == nil {
		return 0, expired("This server keeps no history.")
	}
	revision, err := s.history.RevisionAt(ctx, at)
	switch {
	case errors.Is(err, history.ErrTooOld):
		return 0, expired("The time is before what history has." + reachOf(err))
	case errors.Is(err, history.ErrHole):
		return 0, expired("The revision of that time is not known." + reachOf(err))
	}
	return revision, unread(err)
}
