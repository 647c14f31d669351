package reconcile

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// Reasons of events about keys that do not get where they should.
const (
	reasonFailing = "FailedSync"
	reasonCircle  = "WritingInCircles"
)

// tell makes an event on the object of a key, if a cache has it.
func (l *loop[K]) tell(key K, reason, format string, args ...any) {
	if l.cfg.Env.Events == nil {
		return
	}
	if o := l.object(key); o != nil {
		l.cfg.Env.Events.Eventf(o, corev1.EventTypeWarning, reason, format, args...)
	}
}

// object is what the first source that knows the key's name has: a loop's own kind stands first.
func (l *loop[K]) object(key K) runtime.Object {
	named, ok := any(key).(Key)
	if !ok {
		return nil
	}
	for _, source := range l.cfg.Sources {
		if source.Informer == nil {
			continue
		}
		found, exists, err := source.Informer.GetStore().GetByKey(named.String())
		if o, is := found.(runtime.Object); err == nil && exists && is {
			return o
		}
	}
	return nil
}

// worthTelling leaves out what ends by itself, and where no event can be made.
func worthTelling(err error) bool {
	return !errors.Is(err, ErrStale) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
