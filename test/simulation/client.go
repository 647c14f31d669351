package simulation

import (
	"context"
	"errors"
	"fmt"

	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// noPatience is a context that is over: Next returns what is there.
var noPatience = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// client watches a prefix, now on this replica, now on that, and keeps what it
// has learned.
type client struct {
	prefix string
	// seen is the revision up to which it knows everything.
	seen uint64
	view map[string]uint64

	on      *replica
	life    int
	watcher *watch.Watcher
}

// follow lets one client look once.
func (w *World) follow() error {
	c := w.clients[w.random.IntN(clientCount)]
	if c.watcher != nil && (c.life != c.on.lives || w.chance(6)) {
		c.watcher.Close()
		c.watcher = nil
		w.did.Moves++
	}
	if c.watcher == nil {
		return w.attach(c, w.anyReplica())
	}
	return w.look(c)
}

func (w *World) attach(c *client, r *replica) error {
	watcher, err := r.state.Ring().Watch(c.prefix, c.seen)
	if err == nil {
		c.on, c.life, c.watcher = r, r.lives, watcher
		w.note("client of %q on %d at %d", c.prefix, r.name, c.seen)
		return nil
	}
	return w.relist(c, r, err)
}

// relist is right only where the history is gone.
func (w *World) relist(c *client, r *replica, why error) error {
	compacted, _ := r.state.Ring().Bounds()
	if !errors.Is(why, watch.ErrCompacted) || compacted <= c.seen {
		return fmt.Errorf("a watch of %q from %d on replica %d, which holds all after %d: %w", c.prefix, c.seen, r.name, compacted, why)
	}
	w.note("client of %q lists anew on %d", c.prefix, r.name)
	c.watcher = nil
	w.did.Relists++
	if _, err := r.deliver(len(w.log)); err != nil {
		return err
	}
	root := r.state.Root()
	if err := w.compare(root, c.prefix); err != nil {
		return err
	}
	c.seen, c.view = root.Revision, map[string]uint64{}
	for rec := range root.All(c.prefix) {
		c.view[rec.Key] = rec.ModRevision
	}
	return nil
}

// look takes what is there, compares it with the model, and checks how far the
// watch claims to be.
func (w *World) look(c *client) error {
	events, err := c.watcher.Next(noPatience)
	switch {
	case errors.Is(err, watch.ErrCompacted):
		return w.relist(c, c.on, err)
	case err != nil && !errors.Is(err, context.Canceled):
		return err
	case err == nil:
		if err := w.take(c, events); err != nil {
			return err
		}
	}
	progress := c.watcher.Progress()
	w.note("client of %q at %d, progress %d, %d events", c.prefix, c.seen, progress, len(events))
	if missed := w.model.between(c.seen, progress, c.prefix); len(missed) > 0 {
		return fmt.Errorf("progress %d of %q runs ahead of the change %d", progress, c.prefix, missed[0].revision)
	}
	c.seen = max(c.seen, progress)
	return nil
}

func (w *World) take(c *client, events []watch.Event) error {
	last := events[len(events)-1].Revision
	want := w.model.between(c.seen, last, c.prefix)
	if len(want) != len(events) {
		return fmt.Errorf("%d events of %q from %d to %d, want %d", len(events), c.prefix, c.seen, last, len(want))
	}
	for i := range events {
		if !same(&events[i], &want[i]) {
			return fmt.Errorf("event %d of %q is %+v, want %+v", i, c.prefix, events[i], want[i])
		}
		if want[i].now == nil {
			delete(c.view, want[i].key)
		} else {
			c.view[want[i].key] = want[i].revision
		}
	}
	if rest := w.model.between(last, w.model.entryEnd(last), c.prefix); len(rest) > 0 {
		return fmt.Errorf("an entry was shown in part: up to %d, not %d", last, rest[0].revision)
	}
	c.seen = last
	w.did.Events += len(events)
	return nil
}

func same(e *watch.Event, c *change) bool {
	return e.Revision == c.revision && e.Key == c.key && (e.Type == watch.Delete) == (c.now == nil) &&
		sameRecord(e.Record, c.now) && sameRecord(e.Prev, c.before)
}

func sameRecord(rec *state.Record, o *object) bool {
	if rec == nil || o == nil {
		return rec == nil && o == nil
	}
	return rec.ModRevision == o.mod && string(rec.Value) == o.value && rec.UID == o.uid
}

// settle lets a client see the rest: then it knows what there is.
func (w *World) settle(c *client) error {
	for range len(w.log) {
		if c.watcher != nil && c.life != c.on.lives {
			c.watcher = nil
		}
		if c.watcher == nil {
			if err := w.attach(c, w.anyReplica()); err != nil {
				return err
			}
			continue
		}
		if c.seen == w.model.revision {
			break
		}
		if err := w.look(c); err != nil {
			return err
		}
	}
	want := w.model.at(w.model.revision, c.prefix)
	for key, o := range want {
		if c.view[key] != o.mod {
			return fmt.Errorf("a client of %q knows %s at %d, it is at %d", c.prefix, key, c.view[key], o.mod)
		}
	}
	if len(want) != len(c.view) {
		return fmt.Errorf("a client of %q knows %d objects, there are %d", c.prefix, len(c.view), len(want))
	}
	return nil
}
