package statefulset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/adopt"
	"github.com/setpoint-io/setpoint/controllers/reconcile/revisions"
)

// history gathers the set's revisions, oldest first, after adopting orphans.
func (c *controller) history(ctx context.Context, set *appsv1.StatefulSet, selector labels.Selector) ([]*appsv1.ControllerRevision, error) {
	owned, err := c.revisions.Owned(set)
	if err != nil {
		return nil, err
	}
	orphans, err := c.revisions.Orphans(set.Namespace)
	if err != nil {
		return nil, err
	}
	claims := adopt.Claim(set, selector, owned, orphans)
	claims.Release = nil // one of other labels is only not looked at
	apps := c.env.Client.AppsV1()
	history, err := adopt.CarryOut(ctx, set, claims, adopt.Writer[*appsv1.StatefulSet, *appsv1.ControllerRevision]{
		Kind: kind, Owner: apps.StatefulSets(set.Namespace).Get, Patch: apps.ControllerRevisions(set.Namespace).Patch,
	})
	revisions.Sort(history)
	return history, err
}

// revise makes the revision of the present template exist and be the newest. It returns the set as it is with the
// collisions that were met.
func (c *controller) revise(ctx context.Context, set *appsv1.StatefulSet,
	history []*appsv1.ControllerRevision) (*appsv1.StatefulSet, revised, error) {
	r, err := revise(set, history)
	if err != nil {
		return set, r, err
	}
	update := r.update
	switch {
	case r.create:
		set, update, err = c.createRevision(ctx, set, update)
	case r.raise:
		update, err = c.env.Client.AppsV1().ControllerRevisions(set.Namespace).Update(ctx, update, metav1.UpdateOptions{})
	}
	if err != nil {
		return set, r, fmt.Errorf("revision: %w", err)
	}
	if r.current == r.update {
		r.current = update
	}
	r.update = update
	return set, r, nil
}

// createRevision creates a revision, or finds that an earlier pass did. A name that other data has is a collision: the
// next one is salted.
func (c *controller) createRevision(ctx context.Context, set *appsv1.StatefulSet,
	revision *appsv1.ControllerRevision) (*appsv1.StatefulSet, *appsv1.ControllerRevision, error) {
	for {
		made, err := revisions.Create(ctx, c.env.Client, revision)
		if !errors.Is(err, revisions.ErrCollision) {
			return set, made, err
		}
		set = set.DeepCopy()
		set.Status.CollisionCount = new(ptr.Deref(set.Status.CollisionCount, 0) + 1)
		revision = revisionOfData(set, revision.Data.Raw, revision.Revision)
	}
}

// trim deletes revisions that nobody needs.
func (c *controller) trim(ctx context.Context, set *appsv1.StatefulSet, r revised, history []*appsv1.ControllerRevision,
	pods []*corev1.Pod) error {
	return revisions.Delete(ctx, c.env.Client, expendable(set, r, history, pods)...)
}
