package eventttl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

const (
	// lifetime is how long an Event stays after it was last seen; upstream's.
	lifetime = time.Hour
	// interval is the pause between two looks at all Events.
	interval = time.Minute
	// batchLimit is how many Events one pass deletes, the oldest first; the next
	// pass follows after batchPause while there are more.
	batchLimit = 500
	batchPause = time.Second
)

// New deletes old Events.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:  "event-ttl-controller",
		Reads: []reconcile.Read{reconcile.Events},
		Run:   run,
		OfAPI: true,
	}
}

type controller struct {
	env    *reconcile.Env
	events reconcile.Cache[*corev1.Event]
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{env, reconcile.Events.From(env)}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "eventttl",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{reconcile.Filled(c.events)},
		Feeds:     []reconcile.Feed{reconcile.Once(everything)},
		Workers:   1,
		Env:       env,
	})
}

// everything is the only key: each pass looks at all Events.
var everything = reconcile.Key{Name: "all events"}

func (c *controller) reconcile(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
	all, err := c.events.List("", nil)
	if err != nil {
		return 0, err
	}
	due, more := plan(all, c.env.Now())
	var errs []error
	for _, e := range due {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		errs = append(errs, c.end(reconcile.WithCause(ctx, e), e))
	}
	if more {
		return batchPause, errors.Join(errs...)
	}
	return interval, errors.Join(errs...)
}

// end deletes an Event unless it was seen again since.
func (c *controller) end(ctx context.Context, e *corev1.Event) error {
	err := c.env.Client.CoreV1().Events(e.Namespace).Delete(ctx, e.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &e.UID, ResourceVersion: &e.ResourceVersion},
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("delete event %s/%s: %w", e.Namespace, e.Name, err)
}

// plan picks the Events to delete, the oldest first; more says that some had to
// be left for the next pass. It is pure.
func plan(all []*corev1.Event, now time.Time) (due []*corev1.Event, more bool) {
	for _, e := range all {
		if now.Sub(lastSeen(e, now)) >= lifetime {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, func(a, b *corev1.Event) int {
		return cmp.Or(lastSeen(a, now).Compare(lastSeen(b, now)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return due[:min(len(due), batchLimit)], len(due) > batchLimit
}

// lastSeen is the latest of the moments that an Event tells of itself. One that is further ahead than a clock is wrong does not count:
// whoever writes an Event may say any, and it would stay until then.
func lastSeen(e *corev1.Event, now time.Time) time.Time {
	at := e.CreationTimestamp.Time
	times := []time.Time{e.FirstTimestamp.Time, e.LastTimestamp.Time, e.EventTime.Time}
	if e.Series != nil {
		times = append(times, e.Series.LastObservedTime.Time)
	}
	for _, t := range times {
		if t.After(at) && t.Sub(now) < lifetime {
			at = t
		}
	}
	return at
}
