package replicaset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile/adopt"
	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/expect"
)

// act creates or deletes pods. A pass that finds nothing to create ends the
// growth of batches.
func (c *controller) act(ctx context.Context, rs *appsv1.ReplicaSet, seen observed, t todo) error {
	if seen.settled && t.create == 0 {
		c.expect.Complete(rs.UID)
	}
	if t.create > 0 {
		return c.expect.Create(rs.UID, t.create, c.env.Now(), func(int) (types.UID, error) { return c.createOne(ctx, rs) })
	}
	if len(t.remove) > 0 {
		return c.remove(ctx, rs, t.remove)
	}
	return nil
}

func (c *controller) createOne(ctx context.Context, rs *appsv1.ReplicaSet) (types.UID, error) {
	pod, err := c.env.Client.CoreV1().Pods(rs.Namespace).Create(ctx, newPod(rs, c.sets.Kind), metav1.CreateOptions{})
	if err == nil {
		c.env.Events.Eventf(rs, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", pod.Name)
		return pod.UID, nil
	}
	if ctx.Err() == nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		c.env.Events.Eventf(rs, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
	}
	return "", fmt.Errorf("create pod: %w", err)
}

// newPod is a pod after the template, controlled by rs.
func newPod(rs *appsv1.ReplicaSet, kind schema.GroupVersionKind) *corev1.Pod {
	template := rs.Spec.Template.DeepCopy()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    rs.Name + "-",
			Namespace:       rs.Namespace,
			Labels:          maps.Clone(template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{adopt.Reference(rs, kind)},
		},
		Spec: template.Spec,
	}
}

func (c *controller) remove(ctx context.Context, rs *appsv1.ReplicaSet, surplus []*corev1.Pod) error {
	errs := expect.Parallel(len(surplus), func(i int) error { return c.removeOne(ctx, rs, surplus[i]) })
	return errors.Join(errs...)
}

func (c *controller) removeOne(ctx context.Context, rs *appsv1.ReplicaSet, pod *corev1.Pod) error {
	c.expect.Deletion(rs.UID, pod.UID)
	err := c.env.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.expect.Deleted(rs.UID, pod.UID)
		c.env.Events.Eventf(rs, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	c.env.Events.Eventf(rs, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", pod.Name)
	return nil
}

// claim adopts and releases; the result is every pod that is ours afterwards.
func (c *controller) claim(ctx context.Context, rs *appsv1.ReplicaSet, claims adopt.Claims[*corev1.Pod]) ([]*corev1.Pod, error) {
	return adopt.CarryOut(ctx, rs, claims, adopt.Writer[*appsv1.ReplicaSet, *corev1.Pod]{
		Kind:  c.sets.Kind,
		Owner: c.sets.Get(rs.Namespace),
		Patch: c.env.Client.CoreV1().Pods(rs.Namespace).Patch,
	})
}

// withFailure sets or removes the ReplicaFailure condition.
func withFailure(status, before appsv1.ReplicaSetStatus, t todo, failure error, now time.Time) appsv1.ReplicaSetStatus {
	if failure == nil || t.create == 0 && len(t.remove) == 0 {
		status.Conditions = conditions.ReplicaSets.Without(status.Conditions, appsv1.ReplicaSetReplicaFailure)
		return status
	}
	if conditions.ReplicaSets.Find(before.Conditions, appsv1.ReplicaSetReplicaFailure) != nil {
		return status
	}
	reason := "FailedCreate"
	if t.create == 0 {
		reason = "FailedDelete"
	}
	status.Conditions = conditions.ReplicaSets.Set(status.Conditions, appsv1.ReplicaSetCondition{
		Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: reason, Message: failure.Error(),
	}, now)
	return status
}
