package deployment

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/adopt"
)

// act carries out one step; the status comes last, so that it never says more
// than was done.
func (c *controller) act(ctx context.Context, d *appsv1.Deployment, t todo) error {
	if t.selectsAll && d.Status.ObservedGeneration < d.Generation {
		c.env.Events.Event(
			d,
			corev1.EventTypeWarning,
			"SelectingAll",
			"This deployment is selecting all pods. A non-empty selector is required.",
		)
	}
	if t.create != nil {
		if err := c.create(ctx, d, t.create); err != nil {
			return c.createFailed(ctx, d, t, err)
		}
	}
	for _, ch := range t.change {
		if err := c.update(ctx, d, ch); err != nil {
			return err
		}
	}
	for _, rs := range t.remove {
		if err := c.remove(ctx, rs); err != nil {
			return err
		}
	}
	return c.writeStatus(ctx, d, t.status, t.revision)
}

// errCollision says that the name of the new ReplicaSet belongs to another one.
var errCollision = errors.New("template hash collision")

// create creates the new ReplicaSet, or finds that an earlier pass did.
func (c *controller) create(ctx context.Context, d *appsv1.Deployment, rs *appsv1.ReplicaSet) error {
	sets := c.env.Client.AppsV1().ReplicaSets(rs.Namespace)
	made, err := sets.Create(ctx, rs, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		found, err := sets.Get(ctx, rs.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if metav1.IsControlledBy(found, d) && sameTemplate(&found.Spec.Template, &d.Spec.Template) {
			return nil
		}
		return errCollision
	}
	if err != nil {
		return fmt.Errorf("create ReplicaSet %s: %w", rs.Name, err)
	}
	if n := replicasOf(rs.Spec.Replicas); n > 0 {
		c.env.Events.Eventf(d, corev1.EventTypeNormal, "ScalingReplicaSet", "Scaled up replica set %s from 0 to %d", made.Name, n)
	}
	return nil
}

// createFailed writes into the status why there is no new ReplicaSet: a
// collision salts the next hash, anything else is shown as a condition.
func (c *controller) createFailed(ctx context.Context, d *appsv1.Deployment, t todo, failure error) error {
	status := *d.Status.DeepCopy()
	if errors.Is(failure, errCollision) {
		n := int32(1)
		if status.CollisionCount != nil {
			n = *status.CollisionCount + 1
		}
		status.CollisionCount = &n
		return c.writeStatus(ctx, d, status, "") // which brings the next pass
	}
	if ctx.Err() != nil || apierrors.HasStatusCause(failure, corev1.NamespaceTerminatingCause) || d.Spec.ProgressDeadlineSeconds == nil {
		return failure
	}
	c.env.Events.Eventf(d, corev1.EventTypeWarning, reasonCreateFailed, "Failed to create new replica set %q: %v", t.create.Name, failure)
	r := rollout{now: c.env.Now()}
	r.set(&status, appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonCreateFailed, failure.Error())
	return errors.Join(failure, c.writeStatus(ctx, d, status, ""))
}

func (c *controller) update(ctx context.Context, d *appsv1.Deployment, ch change) error {
	from, to := replicasOf(ch.from.Spec.Replicas), replicasOf(ch.to.Spec.Replicas)
	written, err := c.env.Client.AppsV1().ReplicaSets(ch.to.Namespace).Update(ctx, ch.to, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update ReplicaSet %s: %w", ch.to.Name, err)
	}
	c.written.Wrote(written)
	switch {
	case to > from:
		c.env.Events.Eventf(d, corev1.EventTypeNormal, "ScalingReplicaSet", "Scaled up replica set %s from %d to %d", ch.to.Name, from, to)
	case to < from:
		c.env.Events.Eventf(
			d,
			corev1.EventTypeNormal,
			"ScalingReplicaSet",
			"Scaled down replica set %s from %d to %d",
			ch.to.Name,
			from,
			to,
		)
	}
	return nil
}

func (c *controller) remove(ctx context.Context, rs *appsv1.ReplicaSet) error {
	err := c.env.Client.AppsV1().ReplicaSets(rs.Namespace).Delete(ctx, rs.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(rs.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ReplicaSet %s: %w", rs.Name, err)
	}
	return nil
}

// writeStatus writes the status, and the revision annotation with it: a write of
// the Deployment itself would count as a change of it and raise its generation.
// An empty revision leaves the annotation.
func (c *controller) writeStatus(ctx context.Context, d *appsv1.Deployment, status appsv1.DeploymentStatus, revision string) error {
	sameRevision := revision == "" || d.Annotations[revisionAnnotation] == revision
	if sameRevision && apiequality.Semantic.DeepEqual(d.Status, status) {
		return nil
	}
	next := d.DeepCopy()
	next.Status = status
	if !sameRevision {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, revisionAnnotation, revision)
	}
	_, err := c.env.Client.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// claim adopts and releases ReplicaSets; the result is what is ours afterwards.
func (c *controller) claim(
	ctx context.Context,
	d *appsv1.Deployment,
	claims adopt.Claims[*appsv1.ReplicaSet],
) ([]*appsv1.ReplicaSet, error) {
	apps := c.env.Client.AppsV1()
	return adopt.CarryOut(ctx, d, claims, adopt.Writer[*appsv1.Deployment, *appsv1.ReplicaSet]{
		Kind: kind, Owner: apps.Deployments(d.Namespace).Get, Patch: apps.ReplicaSets(d.Namespace).Patch,
	})
}
