package disruption

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// staleTimeout is how long a pod may say that it is to go without being deleted.
const staleTimeout = 2 * time.Minute

// targeted maps a pod that says that it is to go, and is not deleted, to itself.
func targeted(_, after metav1.Object) []reconcile.Key {
	if after == nil || target(after.(*corev1.Pod)) == nil {
		return nil
	}
	return []reconcile.Key{reconcile.KeyOf(after)}
}

// target is the condition of a pod that says that it is to go; nil if it goes or has ended. The node agent's own
// conditions may stay for any time before a pod ends.
func target(pod *corev1.Pod) *corev1.PodCondition {
	c := podstate.Condition(pod, corev1.DisruptionTarget)
	if c == nil || c.Status != corev1.ConditionTrue || c.Reason == corev1.PodReasonTerminationByKubelet || !podstate.Active(pod) {
		return nil
	}
	return c
}

// clearStale takes back what a pod says of its end if nobody has deleted it for a while.
func (c *controller) clearStale(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	pod, err := c.pods.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	condition := target(pod)
	if condition == nil {
		return 0, nil
	}
	now := c.env.Now()
	if wait := condition.LastTransitionTime.Add(staleTimeout).Sub(now); wait > 0 {
		return wait, nil
	}
	next := pod.DeepCopy()
	next.Status.Conditions = conditions.Pods.Set(next.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionFalse, ObservedGeneration: pod.Generation,
	}, now)
	_, err = c.env.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(reconcile.WithCause(ctx, pod), next, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("clear the condition: %w", err)
	}
	return 0, nil
}
