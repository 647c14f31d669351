package reconciletest

import (
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	ktesting "k8s.io/client-go/testing"
)

// The tracker counts no deletions: it does not tell whether one came before a list, and a watch that goes on from the list
// does not tell of one since. An informer whose watch begins late would keep for ever what a controller deleted meanwhile.
// So the versions of the world's lists are those of the tracker, followed by how many objects had been deleted.
const maxGone = 1_000_000

// remove deletes from the tracker; the caller holds mu.
func (w *World) remove(resource schema.GroupVersionResource, ns, name string) error {
	found, err := w.Client.Tracker().Get(resource, ns, name)
	if err != nil {
		return err
	}
	if err := w.Client.Tracker().Delete(resource, ns, name); err != nil {
		return err
	}
	w.gone[resource] = append(w.gone[resource], found)
	return nil
}

func (w *World) onList(a ktesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list, err := w.Client.Tracker().List(a.GetResource(), a.(ktesting.ListActionImpl).Kind, a.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	m := must(meta.ListAccessor(list))
	m.SetResourceVersion(strconv.Itoa(must(strconv.Atoi(m.GetResourceVersion()))*maxGone + len(w.gone[a.GetResource()])))
	return true, list, nil
}

func (w *World) onWatch(a ktesting.Action) (bool, watch.Interface, error) {
	events, err := w.Watch(a)
	return true, events, err
}

// Watch answers a watch: it goes on from a list, and begins with what has happened since. The event of a deletion has a
// version of its own, as from a real API server. Tests whose watches lag build on it.
func (w *World) Watch(a ktesting.Action) (watch.Interface, error) {
	opts := a.(ktesting.WatchActionImpl).ListOptions
	w.mu.Lock()
	defer w.mu.Unlock()
	var since []runtime.Object
	if version, err := strconv.Atoi(opts.ResourceVersion); err == nil && version >= maxGone {
		opts.ResourceVersion = strconv.Itoa(version / maxGone)
		since = w.gone[a.GetResource()][version%maxGone:]
	}
	events, err := w.Client.Tracker().Watch(a.GetResource(), a.GetNamespace(), opts)
	if err != nil {
		return nil, err
	}
	for _, o := range since {
		m := must(meta.Accessor(o))
		_, err := w.Client.Tracker().Get(a.GetResource(), m.GetNamespace(), m.GetName())
		if ns := a.GetNamespace(); err != nil && (ns == "" || ns == m.GetNamespace()) { // otherwise the tracker tells of its successor
			events.(*watch.RaceFreeFakeWatcher).Delete(o)
		}
	}
	v := &versioned{inner: events, world: w, out: make(chan watch.Event), stopped: make(chan struct{}), broken: make(chan struct{})}
	w.watches[v] = true
	go v.run()
	return v, nil
}

// versioned is the watch that an informer gets. It gives the events of deletions versions, keeps events while the world
// holds them, and ends when it is stopped, whether anybody still reads it or not.
type versioned struct {
	inner   watch.Interface
	world   *World
	out     chan watch.Event
	once    sync.Once
	stopped chan struct{}
	broken  chan struct{} // closed by Break

	waiting []watch.Event
}

// run passes events on. It always takes what comes: the tracker panics when nobody does.
func (v *versioned) run() {
	defer v.end()
	for {
		held := v.world.holding()
		out, next := v.out, watch.Event{}
		if held != nil || len(v.waiting) == 0 {
			out = nil
		} else {
			next = v.waiting[0]
		}
		select {
		case e, open := <-v.inner.ResultChan():
			if !open {
				return
			}
			v.waiting = append(v.waiting, v.version(e))
		case out <- next:
			v.waiting = v.waiting[1:]
		case <-held:
		case <-v.broken:
			v.say(watch.Event{Type: watch.Error, Object: &apierrors.NewResourceExpired("the watch broke").ErrStatus})
			return
		case <-v.stopped:
			return
		}
	}
}

// version gives the event of a deletion a version.
func (v *versioned) version(e watch.Event) watch.Event {
	if e.Type == watch.Deleted {
		e.Object = e.Object.DeepCopyObject()
		v.world.mu.Lock()
		must(meta.Accessor(e.Object)).SetResourceVersion(strconv.Itoa(v.world.next()))
		v.world.mu.Unlock()
	}
	return e
}

// say is the last event.
func (v *versioned) say(e watch.Event) {
	select {
	case v.out <- e:
	case <-v.stopped:
	}
}

func (v *versioned) end() {
	v.world.mu.Lock()
	delete(v.world.watches, v)
	v.world.mu.Unlock()
	v.inner.Stop()
	close(v.out)
}

// ResultChan implements watch.Interface.
func (v *versioned) ResultChan() <-chan watch.Event { return v.out }

// Stop implements watch.Interface.
func (v *versioned) Stop() {
	v.once.Do(func() {
		close(v.stopped)
		v.inner.Stop()
	})
}
