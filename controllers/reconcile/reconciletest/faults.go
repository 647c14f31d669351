package reconciletest

import (
	"cmp"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
)

// Outcome is what becomes of a write.
type Outcome int

// Outcomes of a write.
const (
	Applied    Outcome = iota // it is stored and answered
	Refused                   // it is not stored, and the answer is an internal error
	Conflicted                // it is not stored, and the answer is a conflict
	Lost                      // it is stored, and the answer is a timeout
)

// Intercept asks f before each write that goes through a client. It gets "verb resource/sub ns/name", where a generated
// name is still its prefix. It is called by the goroutine that writes, by several at once if several write. Nil ends it.
func (w *World) Intercept(f func(write string) Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.intercept = f
}

// onWrite decides what becomes of a write, before all other reactors.
func (w *World) onWrite(a ktesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	f := w.intercept
	w.mu.Unlock()
	if f == nil || !slices.Contains([]string{"create", "update", "patch", "delete"}, a.GetVerb()) {
		return false, nil, nil
	}
	resource, name := a.GetResource(), nameOf(a)
	switch f(textOf(a, name)) {
	case Refused:
		return true, nil, apierrors.NewInternalError(fmt.Errorf("no write for now"))
	case Conflicted:
		return true, nil, apierrors.NewConflict(resource.GroupResource(), name, fmt.Errorf("somebody else wrote"))
	case Lost:
		handled, _, err := w.write(a)
		if err == nil {
			err = apierrors.NewTimeoutError("no answer in time", 0)
		}
		return handled, nil, err
	}
	return false, nil, nil
}

// write carries out a write. It is not handled if only the clientset's own tracker can do it.
func (w *World) write(a ktesting.Action) (handled bool, obj runtime.Object, err error) {
	switch a.GetVerb() {
	case "create":
		return w.onCreate(a)
	case "update":
		return w.onUpdate(a)
	case "patch":
		return w.onPatch(a)
	}
	return w.onDelete(a)
}

func nameOf(a ktesting.Action) string {
	switch a := a.(type) {
	case ktesting.DeleteAction:
		return a.GetName()
	case ktesting.PatchAction:
		return a.GetName()
	case ktesting.CreateAction: // an update is one too
		m := must(meta.Accessor(a.GetObject()))
		return cmp.Or(m.GetName(), m.GetGenerateName())
	}
	return ""
}

// Hold keeps all events from all informers: their view gets stale. Those of the time are delivered by Release, or lost by Break.
func (w *World) Hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil {
		w.held = make(chan struct{})
	}
}

// Release ends Hold: every event is delivered, in its order.
func (w *World) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release()
}

// release is Release; the caller holds mu.
func (w *World) release() {
	if w.held != nil {
		close(w.held)
		w.held = nil
	}
}

// holding is closed when events are not held any more; nil if they are not held.
func (w *World) holding() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held
}

// Break ends Hold, and every watch: the events of the time are lost, and informers have to list again.
func (w *World) Break() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for v := range w.watches {
		close(v.broken)
	}
	clear(w.watches)
	w.release()
}

// NewCaches ends all informers and begins with none, as a server that starts does.
func (w *World) NewCaches() {
	w.endInformers()
	w.beginInformers()
}
