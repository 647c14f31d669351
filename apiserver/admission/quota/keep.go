package quota

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

const (
	// recountInterval is how often Keep counts everything, in case it was wrong or
	// somebody wrote another status; it is upstream's, and clients rely on it.
	recountInterval = 5 * time.Minute
	// retryInterval is how long Keep waits after a failure.
	retryInterval = time.Second
)

// Keep shows in the status of new and changed quotas what they limit and what is
// used, until ctx ends. The leader runs it; what it writes carries the Origin of ctx.
func (q *Quota) Keep(ctx context.Context) error {
	if q.table == nil {
		return nil
	}
	for ctx.Err() == nil {
		if err := q.keep(ctx); err != nil && ctx.Err() == nil {
			wait(ctx, retryInterval) // a lost election or majority; the next round says more
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// keep goes through all quotas, then follows changes until it is time to go through
// all again.
func (q *Quota) keep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recountInterval)
	defer cancel()
	changes, err := q.table.Watch(ctx, storage.WatchOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	defer changes.Stop()
	counted := map[types.UID]corev1.ResourceList{} // the limits that were counted for
	for e := range changes.ResultChan() {
		current, ok := storage.Uncache(e.Object).(*corev1.ResourceQuota)
		if !ok {
			continue
		}
		if e.Type == watch.Deleted {
			delete(counted, current.UID)
			continue
		}
		if hard, ok := counted[current.UID]; ok && apiequality.Semantic.DeepEqual(hard, current.Spec.Hard) {
			continue // as upstream, a status that somebody else wrote stands until the next charge
		}
		if err := q.recount(ctx, current); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		counted[current.UID] = current.Spec.Hard
	}
	return nil
}

// recount writes what is used, counted in one view, if the status says otherwise.
func (q *Quota) recount(ctx context.Context, of *corev1.ResourceQuota) error {
	_, err := q.table.Write(ctx, of.Namespace, of.Name, func(v *storage.View) (*storage.Change, error) {
		if v.Current == nil {
			return nil, nil
		}
		current := v.Current.Copy().(*corev1.ResourceQuota)
		used, err := q.count(v, current)
		if err != nil {
			return nil, err
		}
		status := corev1.ResourceQuotaStatus{Hard: current.Spec.Hard.DeepCopy(), Used: used}
		if apiequality.Semantic.DeepEqual(status, current.Status) {
			return nil, nil
		}
		current.Status = status
		return &storage.Change{Object: current}, nil
	})
	return err
}
