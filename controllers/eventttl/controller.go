package eventttl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

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

// Config is what the controller needs for one term.
type Config struct {
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	Logger    *slog.Logger
}

type controller struct{ cfg Config }

// Warm creates the informer that the controller reads.
func Warm(f informers.SharedInformerFactory) error {
	f.Core().V1().Events().Informer()
	return nil
}

// everything is the only key: each pass looks at all Events.
var everything = reconcile.Key{Name: "all events"}

// Run deletes old Events until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	c := &controller{cfg}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "eventttl",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{reconcile.Cache(cfg.Informers.Core().V1().Events().Informer())},
		Feeds:     []reconcile.Feed{reconcile.Once(everything)},
		Workers:   1,
		Logger:    cfg.Logger,
	})
}

func (c *controller) reconcile(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
	all, err := c.cfg.Informers.Core().V1().Events().Lister().List(labels.Everything())
	if err != nil {
		return 0, err
	}
	due, more := plan(all, time.Now())
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
	err := c.cfg.Client.CoreV1().Events(e.Namespace).Delete(ctx, e.Name, metav1.DeleteOptions{
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
		if now.Sub(lastSeen(e)) >= lifetime {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, func(a, b *corev1.Event) int {
		return cmp.Or(lastSeen(a).Compare(lastSeen(b)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return due[:min(len(due), batchLimit)], len(due) > batchLimit
}

// lastSeen is the latest of the moments that an Event tells of itself.
func lastSeen(e *corev1.Event) time.Time {
	at := e.CreationTimestamp.Time
	times := []time.Time{e.FirstTimestamp.Time, e.LastTimestamp.Time, e.EventTime.Time}
	if e.Series != nil {
		times = append(times, e.Series.LastObservedTime.Time)
	}
	for _, t := range times {
		if t.After(at) {
			at = t
		}
	}
	return at
}
